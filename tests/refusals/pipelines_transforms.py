"""Pipelines of transforms that fail as they run."""

from tests.refusals.pipelines_tokenizers import changed
from tests.refusals.refusal import raised
from tests.refusals.scenes import MODEL

PIPE = f"""
import logging
from typing import Optional
import apache_beam as beam
import pyarrow as pa
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
    return "Batch" >> beam.Map(function).with_output_types(pa.RecordBatch)
def write(**options):
    return WriteDataset("out", tokenizer=T, **options)
def both():
    return read(), pipeline | "Two" >> ReadCorpus("wudao")
def with_ids(b):
    return b.append_column("new", b["id"])
def run(_):
    pipeline.run().wait_until_finish()
"""
RUNNING = {
    "run(read().kept | JudgeQuality('en=gopher'))": (
        "UserError: a batch has no column 'language', which quality needs; it has position,"
        " length, ordinal, order, holdout, bytes, group, prompt, text, id, category, source, path."
        " ReadCorpus and FromRows make whole batches; IdentifyLanguage adds language, which"
        " JudgeQuality needs [while running 'JudgeQuality/Judge/…']"
    ),
    "run((read().kept | Clean()).kept | 'Again' >> Clean())": (
        "UserError: clean adds a column 'repaired' to batches that have one: give each transform"
        " once, and call a field of rows otherwise [while running 'Again/Judge/…']"
    ),
    "run(read().kept | ToRows('nothing'))": (
        "UserError: ToRows: a batch has no column 'nothing'; it has position, length, ordinal,"
        " order, holdout, bytes, group, prompt, text, id, category, source, path [while running"
        " 'ToRows/To rows']"
    ),
    "run(read().kept | batch(lambda b: b.drop_columns(['text'])) | Clean())": (
        "UserError: a batch has no column 'text', which clean needs; it has position, length,"
        " ordinal, order, holdout, bytes, group, prompt, id, category, source, path. ReadCorpus"
        " and FromRows make whole batches; IdentifyLanguage adds language, which JudgeQuality"
        " needs [while running 'Clean/Judge/…']"
    ),
    "run(of(text='a\\0b') | FromRows())": (
        "UserError: FromRows: a row's text has a NUL character: leave such rows out before [while"
        " running 'FromRows/From rows']"
    ),
    "run(of(text='a', source='a b') | FromRows())": (
        "UserError: FromRows: 'a b' cannot be the name of a source, which names a folder: use"
        " letters, digits and ._-; rename the field if it means something else [while running"
        " 'FromRows/From rows']"
    ),
    "run(typed({'text': str, 'n': int}, {'text': 'a', 'n': 1.5}) | FromRows())": (
        "UserError: FromRows: a row's n is 1.5, and its type a whole number [while running"
        " 'FromRows/From rows']"
    ),
    "run(tokens() | batch(lambda b: b.drop_columns(['order'])) | write())": (
        "UserError: WriteDataset was given a batch without a column 'order'; it has position,"
        " length, ordinal, holdout, bytes, group, prompt, text, id, category, source, path,"
        " tokens, prompt_tokens. Batches of ReadCorpus have all it needs; rows of your own get it"
        " from FromRows [while running 'WriteDataset/Write kept']"
    ),
    "run(tokens() | batch(lambda b: b.append_column('reason', b['text'])) | write())": (
        "UserError: WriteDataset was given rows with a column 'reason', as those that are left out"
        " have it: give these as dropped=[…], or call the column otherwise [while running"
        " 'WriteDataset/Write kept']"
    ),
}
WRITING = {
    "one, two = both(); run((one.kept, two.kept) | beam.Flatten() | write(dropped=[one, two]))": (
        "UserError: part-2026010101.json of the input 'wudao' was read twice, and its documents"
        " would count twice: give WriteDataset one ReadCorpus for each file; for another file of"
        " the same name, give each ReadCorpus a name of its own, input='NAME=PATH' [while running"
        " 'WriteDataset/Find duplicates, merge, commit']"
    ),
    "run((read().kept | Tokenize(OTHER)).kept | write())": (
        "UserError: WriteDataset was given tokens of another tokenizer (…) than its own (…): give"
        " Tokenize and WriteDataset the same [while running 'WriteDataset/Write kept']"
    ),
    "kept = tokens(); run((kept, kept | batch(with_ids)) | beam.Flatten() | write())": (
        "UserError: some documents of the source 'wudao' have a column 'new' and some have not: a"
        " source's documents have the same columns. Add it to all or none, or give them a `source`"
        " of their own [while running 'WriteDataset/Find duplicates, merge, commit']"
    ),
    "kept = tokens(); run(kept | write(dropped=[kept | batch(lambda b: b)]))": (
        "UserError: WriteDataset(dropped=[…]) was given rows without a column 'reason': give it"
        " what transforms drop or quarantine, and what they keep as its input [while running"
        " 'WriteDataset/Write dropped 0']"
    ),
}
model = changed(lambda _: None)

ROWS = tuple(
    raised(x.replace("\\\\", ""), f"{PIPE}{x}", says, scene=model, writes=("out", "out/.work*"))
    for x, says in [*RUNNING.items(), *WRITING.items()]
)
