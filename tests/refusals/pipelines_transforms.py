"""Transforms with invalid arguments or inputs, and pipelines that fail while they run."""

from tests.refusals.pipelines_tokenizers import changed
from tests.refusals.refusal import in_python
from tests.refusals.setups import MODEL, all_of, dataset, with_file

PIPE = f"""
import logging
import apache_beam as beam
import pyarrow as pa
from apache_beam.testing.test_stream import TestStream
from apache_beam.transforms.trigger import AccumulationMode, AfterCount
from apache_beam.transforms.window import FixedWindows
from apache_beam.typehints.row_type import RowTypeConstraint
from pipelines.transforms import *
logging.disable(logging.CRITICAL)
T = "sentencepiece:{MODEL}"
OTHER = "hf:tokenizer.json"
pipeline = beam.Pipeline("FnApiRunner")
NINE = beam.WindowInto(FixedWindows(9))
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
    return "Batch" >> beam.Map(function).with_output_types(pa.RecordBatch)
def stream(of):
    return of | TestStream() | batch(lambda _: None)
def write(output="out", **options):
    return WriteDataset(output, tokenizer=T, **options)
def both():
    return read(), pipeline | "Two" >> ReadCorpus("wudao")
def year(kind):
    return "Year " + str(kind) >> batch(lambda b: b.append_column("year", pa.nulls(len(b), kind)))
def with_ids(b):
    return b.append_column("new", b["id"])
def repeated(trigger):
    return beam.WindowInto(
        FixedWindows(9), trigger=trigger, allowed_lateness=9,
        accumulation_mode=AccumulationMode.ACCUMULATING)
def run(_):
    pipeline.run().wait_until_finish()
"""
MAKING = (
    "ReadCorpus('pile')",
    "ReadCorpus('wudoa')",
    "ReadCorpus('wudao', titel='never')",
    "ReadCorpus('text', input='in', dedup='none')",
    "ReadCorpus('text', input='in', provenance='source')",
    "IdentifyLanguage(['zh'])",
    "FilterUrls('none.txt')",
    "UserFilter('rules:tokenize')",
    "UserFilter('clean=rules:one')",
    "Steps()",
    "Steps(MaskPersonalData(), Clean(), MaskPersonalData())",
    "ToRows(year=list)",
    "FromRows(source='a/b')",
    "write(dedub='exact')",
    "write(split_bytes=4)",
    "write(dedup='fuzzy')",
    "write(metrics=['gopher.words'])",
)
COMPOSING = (
    "pipeline | beam.Create([1]) | FromRows()",
    "of(a=1) | FromRows()",
    "of(text='') | FromRows(id='url')",
    "of(text='', ordinal=1) | FromRows()",
    "of(text='', order=1) | FromRows()",
    "of(text='a', at=[1]) | FromRows()",
    "read() | write()",
    "read().kept | write('data')",
    "read().kept | NINE | write('data')",
    "read().kept | NINE | write(overwrite=True)",
    "kept = read().kept; kept | write(dropped=[kept | NINE])",
    "read().kept | repeated(AfterCount(1)) | write()",
    "stream(beam.Pipeline()) | write()",
    "stream(pipeline) | NINE | write()",
    "kept = read().kept; kept | write(dropped=[kept])",
    "one, two = both(); one.kept | write(), two.kept | 'Again' >> write()",
)
RUNNING = (
    "read().kept | JudgeQuality('en=gopher')",
    "(read().kept | Clean()).kept | 'Again' >> Clean()",
    "read().kept | ToRows('nothing')",
    "read().kept | batch(lambda b: b.drop_columns(['text'])) | Clean()",
    "of(text='a\\0b') | FromRows()",
    "of(text='a', source='a b') | FromRows()",
    "typed({'text': str, 'n': int}, {'text': 'a', 'n': 1.5}) | FromRows()",
    "tokens() | batch(lambda b: b.drop_columns(['order'])) | write()",
    "tokens() | batch(lambda b: b.append_column('reason', b['text'])) | write()",
    "(read().kept | Tokenize(OTHER)).kept | write()",
)
FLATTENED = (
    "one, two = both(); run((one.kept, two.kept) | beam.Flatten() | write(dropped=[one, two]))",
    "kept = tokens(); run((kept, kept | batch(with_ids)) | beam.Flatten() | write())",
    "kept = tokens(); run((kept | year(pa.int64()), kept | year(pa.string())) | beam.Flatten()"
    " | write())",
    "kept = tokens(); run(kept | write(dropped=[kept | batch(lambda b: b)]))",
)
setup = all_of(
    dataset,
    changed(lambda _: None),
    with_file("rules.py", "def tokenize(batch): pass\none = tokenize\n"),
)

ROWS = tuple(
    in_python(x, f"{PIPE}{x}", setup=setup, may_write=("out", "out/.work*"))
    for x in (*MAKING, *COMPOSING, *(f"run({x})" for x in RUNNING), *FLATTENED)
)
