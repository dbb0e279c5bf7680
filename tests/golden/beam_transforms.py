"""Runs the pipelines' steps as Beam transforms, and prints counters and dropped records.

python -m tests.golden.beam_transforms apart|joined|rows
"""

import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

import apache_beam as beam
import pyarrow as pa
from apache_beam.metrics.metric import MetricsFilter

from pipelines.transforms import (
    Clean,
    Decontaminate,
    FilterUrls,
    FromRows,
    IdentifyLanguage,
    JudgeQuality,
    MaskPersonalData,
    ReadCorpus,
    Steps,
    Tokenize,
    ToRows,
    UserFilter,
    WriteDataset,
)
from shards.manifest import read_manifest

TOKENIZER = "sentencepiece:tok.model"
_WEB = {"web": "in"}
_BOTH = {"web": "in", "asked": "zhihu:asked"}


class Watched:
    """Stores the batches that pass, by name of collection; the pipelines run in this process."""

    batches: ClassVar[dict[str, list[pa.RecordBatch]]] = {}


class _See(beam.DoFn):
    def __init__(self, name: str) -> None:
        self._name = name

    def process(self, batch: pa.RecordBatch) -> None:
        Watched.batches.setdefault(self._name, []).append(batch)


def _watch(name: str, collection: Any) -> None:
    _ = collection | f"See {name}" >> beam.ParDo(_See(name))


def _run(make: Callable[[beam.Pipeline], None]) -> None:
    """Run a pipeline, then print its counters and the batches that were collected."""
    Watched.batches.clear()
    pipeline = beam.Pipeline("FnApiRunner")
    make(pipeline)
    result = pipeline.run()
    result.wait_until_finish()
    found = result.metrics().query(MetricsFilter().with_namespace("corpusmill"))
    lines = (
        f"{counter.key.step.partition('/')[0]}: {counter.key.metric.name} = {counter.committed}"
        for counter in found["counters"]
    )
    print(*sorted(lines), sep="\n")
    for name, batches in sorted(Watched.batches.items()):
        fields = (f"{field.name} {field.type}" for field in batches[0].schema)
        print(f"{name}: {', '.join(fields)}")
        rows = [row for batch in batches for row in batch.to_pylist()]
        print(*sorted(map(_line, rows)), sep="\n")


def _line(row: Mapping[str, Any]) -> str:
    place = f"{row['source']} {row['path']}:{row['position']}+{row['length']}"
    shown = {
        name: len(value) if isinstance(value, bytes) else value
        for name, value in row.items()
        if name in _SHOWN
    }
    return f"  {place} {len(row['text'] or '')} {shown}"


_SHOWN = ("id", "group", "bytes", "order", "reason", "raw", "repaired", "language", "prompt_tokens")


def _read(given: Mapping[str, str] = _WEB, **more: Any) -> ReadCorpus:
    return ReadCorpus("text", input=given, provenance=("url", "title"), min_chars=5, **more)


def _steps() -> Mapping[str, Any]:
    return {
        "addresses": FilterUrls("urls.txt"),
        "clean": Clean(),
        "language": IdentifyLanguage("zh", "en", threshold=0.7, chars=600),
        "quality": JudgeQuality("en=gopher", thresholds=["gopher.min_words=100"]),
        "benchmark": Decontaminate("benchmark.txt"),
        "personal": MaskPersonalData(),
        "own": UserFilter("mine:no_ads?word=cello"),
        "tokens": Tokenize(TOKENIZER),
    }


def apart() -> None:
    """Run each step as its own transform, with near-duplicates, metrics and dropped texts."""

    def make(pipeline: beam.Pipeline) -> None:
        outputs = [pipeline | _read(split_bytes=9_000)]
        steps = _steps()
        for name, step in steps.items():
            outputs.append(outputs[-1].kept | name >> step)
        for name, output in zip(("read", *steps), outputs, strict=True):
            _watch(f"{name} dropped", output.dropped)
            _watch(f"{name} quarantined", output.quarantined)
        _ = outputs[-1].kept | WriteDataset(
            "apart",
            tokenizer=TOKENIZER,
            dropped=outputs,
            metrics=[step for step in steps.values() if step.fields],
            dedup="minhash",
            minhash_threshold=0.6,
            validation="5%",
            shards=2,
            keep_dropped=True,
            max_reject_rate=0.5,
        )

    _run(make)


def joined() -> None:
    """Run all steps as one transform, on a sample, with exact duplicates and small shards."""

    def make(pipeline: beam.Pipeline) -> None:
        read = pipeline | _read(_BOTH, sample=0.8, seed=4)
        steps = Steps(*[*_steps().values()][1:])
        judged = read.kept | steps
        _watch("dropped", judged.dropped)
        unknown = read.quarantined | beam.Map(_without_raw).with_output_types(pa.RecordBatch)
        print(steps.adds, steps.needs, [field.name for field in steps.fields])
        _ = judged.kept | WriteDataset(
            "joined",
            tokenizer=TOKENIZER,
            dropped=[read.dropped, unknown, read.splits, judged],
            dedup="exact",
            validation=0,
            shard_tokens="1k",
            max_reject_rate=1,
        )

    _run(make)


def _without_raw(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a batch of quarantined rows after removing the column of raw bytes."""
    at = batch.schema.get_field_index("raw")
    return batch.set_column(at, "raw", pa.nulls(batch.num_rows, pa.large_binary()))


def rows() -> None:
    """Convert documents to rows and back, and write rows that Beam creates."""

    def make(pipeline: beam.Pipeline) -> None:
        read = pipeline | _read()
        given = read.kept | ToRows("id", "url")
        loud = given | beam.Map(_shouted).with_output_types(given.element_type)
        made = pipeline | "Made" >> beam.Create(
            [
                beam.Row(
                    text=f"Text {at // 2} of these.", key=at // 3, weight=at / 4, kind=f"k{at % 2}"
                )
                for at in range(8)
            ]
        )
        own = made | "Own" >> FromRows(source="own", id="key", group="kind", seed=2)
        plain = made | "Plain" >> FromRows()
        _watch("own", own)
        _watch("plain", plain)
        for name, kept, options in (
            ("loud", loud | FromRows(), {"dropped": [read], "max_reject_rate": 1}),
            ("made", (own, plain) | beam.Flatten(), {"keep_segments": True}),
        ):
            sink = WriteDataset(name, tokenizer=TOKENIZER, dedup="none", validation=0, **options)
            _ = kept | name >> sink

    _run(make)
    for name in ("loud", "made"):
        made = read_manifest(Path(name))
        print(made.number, [generation.accounting for generation in made.generations])
    left = sorted(path.suffix for path in Path("made/.work").rglob("*") if path.is_file())
    print("left", left)
    shutil.rmtree("made/.work")  # the names of the files there are random


def _shouted(row: Any) -> Any:
    return beam.Row(**{**row.as_dict(), "text": row.text.upper()})


def main() -> None:
    {"apart": apart, "joined": joined, "rows": rows}[sys.argv[1]]()


if __name__ == "__main__":
    # Beam sends functions of a script by value; functions of a module share `Watched`.
    from tests.golden import beam_transforms

    beam_transforms.main()
