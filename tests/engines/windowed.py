"""A pipeline of rows in windows, as a script: OUTPUT START SECONDS, then Beam's flags.

From START (in seconds since 1970), ten rows per second arrive. If numbers of windows replace the
flags, the script runs a bounded pipeline for the rows of each window.
"""

import random
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from apache_beam import WindowInto
from apache_beam.transforms.periodicsequence import PeriodicImpulse
from apache_beam.transforms.window import FixedWindows, TimestampedValue

from pipelines.execute import beam
from pipelines.execute.runner import with_engine_flags
from pipelines.transforms import Clean, FromRows, WriteDataset
from tests.pipelines.write.pipes import TOKENIZER

WINDOW = 6
"""The length of a window in seconds."""

STEP = 0.5
"""The time between impulses in seconds."""

BATCH = 5
"""The number of rows per impulse."""

_WORDS = ("mill", "river", "bridge", "bell", "garden", "lamp", "harbour", "field")


def stream(output: str, start: int, seconds: int, flags: Sequence[str]) -> None:
    """Write the rows of a stream, window by window, to a dataset."""
    options = beam.PipelineOptions(with_engine_flags(flags), streaming=True)
    pipeline = beam.Pipeline(options=options)
    write(pipeline | PeriodicImpulse(start, start + seconds, STEP), output, start)
    pipeline.run().wait_until_finish()


def append(output: str, start: int, windows: Sequence[int]) -> None:
    """Append the rows of some windows, each window in a bounded pipeline."""
    for window in windows:
        pipeline = beam.Pipeline(runner=beam.FnApiRunner())
        first = start + window * WINDOW
        moments = [first + number * STEP for number in range(round(WINDOW / STEP))]
        values = [TimestampedValue(moment, moment) for moment in moments]
        created = pipeline | beam.Create(values) | "Timed" >> beam.Map(lambda moment: moment)
        write(created, output, start)
        pipeline.run().wait_until_finish()


def write(moments: Any, output: str, start: int) -> None:
    """Turn times into rows, and write the rows' windows to a dataset."""
    row_type = beam.RowTypeConstraint.from_fields([("text", str), ("number", int)])
    rows = (
        moments
        | "Spread" >> beam.Reshuffle()
        | WindowInto(FixedWindows(WINDOW))
        | "Rows" >> beam.FlatMap(rows_at, start).with_output_types(row_type)
    )
    clean = rows | FromRows(id="number") | Clean()
    sink = WriteDataset(output, tokenizer=TOKENIZER, shards=2, validation=0, dropped=[clean])
    _ = clean.kept | sink


def rows_at(moment: Any, start: int) -> Iterator[Any]:
    """Yield the rows that arrive at a time."""
    first = round((float(moment) - start) / STEP) * BATCH
    for number in range(first, first + BATCH):
        yield beam.Row(text=text_of(number), number=number)


def text_of(number: int) -> str:
    """Return the text of a row; two consecutive rows have the same text."""
    return " ".join(random.Random(number // 2).choices(_WORDS, k=20))


if __name__ == "__main__":
    folder, began, others = sys.argv[1], int(sys.argv[2]), sys.argv[4:]
    if others[0].isdecimal():
        append(folder, began, [int(number) for number in others])
    else:
        stream(folder, began, int(sys.argv[3]), others)
