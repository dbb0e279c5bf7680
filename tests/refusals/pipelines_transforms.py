"""Pipelines of transforms that fail as they run."""

from tests.refusals.pipelines_tokenizers import changed
from tests.refusals.refusal import raised
from tests.refusals.scenes import MODEL

PIPE = f"""
import logging
from typing import Optional
import apache_beam as beam
import pyarrow as pa
from apache_beam.transforms.window import FixedWindows
from apache_beam.typehints.row_type import RowTypeConstraint
from pipelines.transforms import *
logging.disable(logging.CRITICAL)
T = "sentencepiece:{MODEL}"
OTHER = "hf:tokenizer.json"
pipeline = beam.Pipeline("FnApiRunner")
def of(**fields):
    return pipeline | "Of" >> beam.Create([beam.Row(**fields)])
def typed(types, *rows):
    kind = RowTypeConstraint.from_fields([*types.items()])
    return pipeline | "Of" >> beam.Create([beam.Row(**row) for row in rows]).with_output_types(kind)
def read():
    return pipeline | ReadCorpus("wudao")
def tokens():
    return (read().kept | Tokenize(T)).kept
def batch(function):
    return beam.Map(function).with_output_types(pa.RecordBatch)
def write(**options):
    return WriteDataset("out", tokenizer=T, **options)
def both():
    return read(), pipeline | "Two" >> ReadCorpus("wudao")
def year(kind):
    return "Year " + str(kind) >> batch(lambda b: b.append_column("year", pa.nulls(len(b), kind)))
def with_ids(b):
    return b.append_column("new", b["id"])
def run(_):
    pipeline.run().wait_until_finish()
"""
RUNNING = (
    "run(read().kept | JudgeQuality('en=gopher'))",
    "run((read().kept | Clean()).kept | 'Again' >> Clean())",
    "run(read().kept | ToRows('nothing'))",
    "run(read().kept | batch(lambda b: b.drop_columns(['text'])) | Clean())",
    "run(of(text='a\\0b') | FromRows())",
    "run(of(text='a', source='a b') | FromRows())",
    "run(typed({'text': str, 'n': int}, {'text': 'a', 'n': 1.5}) | FromRows())",
    "run(of(text='a') | beam.WindowInto(FixedWindows(60)) | FromRows() | write())",
    "run(of(text='a') | FromRows() | beam.WindowInto(FixedWindows(60)) | write())",
    "run(tokens() | batch(lambda b: b.drop_columns(['order'])) | write())",
    "run(tokens() | batch(lambda b: b.append_column('reason', b['text'])) | write())",
)
WRITING = (
    "one, two = both(); run((one.kept, two.kept) | beam.Flatten() | write(dropped=[one, two]))",
    "run((read().kept | Tokenize(OTHER)).kept | write())",
    "kept = tokens(); run((kept, kept | batch(with_ids)) | beam.Flatten() | write())",
    "kept = tokens(); run((kept | year(pa.int64()), kept | year(pa.string())) | beam.Flatten()"
    " | write())",
    "kept = tokens(); run(kept | write(dropped=[kept | batch(lambda b: b)]))",
)
model = changed(lambda _: None)

ROWS = tuple(
    raised(x.replace("\\\\", ""), f"{PIPE}{x}", scene=model, writes=("out", "out/.work*"))
    for x in (*RUNNING, *WRITING)
)
