"""A corpus whose records can end the process that reads them."""

import os
import sys
from collections.abc import Mapping
from typing import Any

from pipelines.corpus.document import Document
from pipelines.corpus.options import Options
from pipelines.corpus.spec import CorpusSpec, text_columns
from pipelines.job.command import main
from pipelines.read.input_format import InputFormat

EXIT = "This text ends its reader"


def documents(record: Mapping[str, Any], _: Options) -> tuple[Document, ...]:
    text = str(record["text"])
    if EXIT in text:
        os._exit(7)
    return (Document(text),)


CORPUS = CorpusSpec(
    name="deadly",
    about="Texts that may kill.",
    pattern="*.jsonl",
    options=Options,
    input_format=InputFormat(text_fields=("text",)),
    provenance=text_columns(),
    documents=documents,
)

if __name__ == "__main__":
    sys.exit(main("tests.pipelines.deadly", sys.argv[1:]))
