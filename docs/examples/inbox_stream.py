"""Files that arrive in a folder become a dataset: a generation for each minute with new files.

python inbox_stream.py 'INBOX/*.jsonl' OUTPUT TOKENIZER --runner=PrismRunner …

Each line is a record with `url` and `text`. A file is read once, when it is first seen, so move it
into the folder whole.
"""

import json
import sys
from collections.abc import Iterator
from typing import NamedTuple

import apache_beam as beam
from apache_beam.io import ReadAllFromText
from apache_beam.io.fileio import MatchContinuously
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.transforms.window import FixedWindows

from pipelines.transforms import Clean, FromRows, IdentifyLanguage, Steps, WriteDataset

SECONDS = 60
"""The length of a window and the allowed lateness of rows, in seconds."""


class Page(NamedTuple):
    """A line of an input file."""

    url: str
    text: str


def pages(line: str) -> Iterator[Page]:
    """Yield the page of a line that has one."""
    record = json.loads(line)
    if record.get("text"):
        yield Page(record["url"], record["text"])


def main(inbox: str, output: str, tokenizer: str, *flags: str) -> None:
    """Run the pipeline until it is stopped."""
    options = PipelineOptions([*flags], streaming=True)
    with beam.Pipeline(options=options) as pipeline:
        lines = (
            pipeline
            | MatchContinuously(inbox, interval=5)
            | beam.WindowInto(FixedWindows(SECONDS), allowed_lateness=SECONDS)
            | beam.Map(lambda file: file.path)
            | ReadAllFromText()
        )
        rows = lines | beam.FlatMap(pages).with_output_types(Page)
        steps = rows | FromRows(id="url") | Steps(Clean(), IdentifyLanguage("zh", "en"))
        _ = steps.kept | WriteDataset(output, tokenizer=tokenizer, dropped=[steps])


if __name__ == "__main__":
    main(*sys.argv[1:])
