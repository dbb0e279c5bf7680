"""The corpus of a dataset that a pipeline made: a name for it, and nothing to read."""

from collections.abc import Mapping
from typing import Any

from pipelines.corpus.document import Document
from pipelines.corpus.options import Options
from pipelines.corpus.recipe import Recipe, always, strings
from pipelines.readers.reading import Reading


def documents(record: Mapping[str, Any], options: Options) -> tuple[Document]:
    """Refuse: no command reads for a pipeline."""
    raise NotImplementedError


RECIPE = Recipe(
    name="pipeline",
    about="What a pipeline of pipelines.transforms handed to WriteDataset.",
    pattern=(),
    options=Options,
    reading=always(Reading(text_fields=("text",))),
    provenance=strings(),
    documents=documents,
)
