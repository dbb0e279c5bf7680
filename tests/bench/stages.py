"""The chain against its stages: what a run spends beyond the work that it is made of.

Runs of the whole pipeline over one file, in this process. Before or after each batch that the
chain works on, in turn, every stage does the same batch alone: the bare function, without filters
and audit. So both meet the same text and the same moods of the machine, and text that a cache has
seen is seen by either first equally often.
"""

import itertools
import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa

from pipelines import compiled
from pipelines.corpus.document import Rejected
from pipelines.corpus.options import Options
from pipelines.corpus.sources import Corpus, match_corpora
from pipelines.dedup import tasks as dedup_tasks
from pipelines.engine.runner import Runner
from pipelines.filters.clean import Clean
from pipelines.filters.fingerprint import Fingerprint
from pipelines.filters.langid import LanguageIdentifier
from pipelines.map import mapper as mapping
from pipelines.map.builder import SegmentBuilder
from pipelines.map.chain import Chain, load_chain
from pipelines.map.intake import Intake
from pipelines.map.mapper import Mapper
from pipelines.merge import tasks
from pipelines.quality import Quality
from pipelines.readers.reading import open_reader, splits
from pipelines.readers.record import Damage, Record
from pipelines.run.build import Build
from pipelines.text import TextOptions
from shards.storage.lock import locked
from tests.bench import inputs, recipes
from tests.bench.clock import Clock
from tests.bench.table import render

STAGES = ("read", "document", "clean", "langid", "quality", "tokenize", "fingerprint")
"""Stages that are also run alone."""

FILES = ("segment", "dedup", "merge")
"""Stages that write files: they are timed where they run, the same seconds count on both sides."""

ONCE = ("handing out tasks", "plan and commit", "rest of the run")
"""What a run pays for each task, however much text is in it."""

ROUNDS = 3

CHAINS = {
    "en": ("glm", recipes.PAPERS, recipes.FINEWEB),
    "zh": ("glm", recipes.FINEWEB2),
}
"""The quality profiles of each chain, by language; glm is a length and nothing else."""

identify, judge_quality = LanguageIdentifier.identify, Quality.judge
"""As they are without a clock around them."""

Items = Sequence[Record | Damage]


@dataclass
class Duel:
    """Seconds of the stages alone and in the chain, and of all that is not the chain's."""

    alone: Clock = field(default_factory=Clock)
    chain: Clock = field(default_factory=Clock)
    outside: Clock = field(default_factory=Clock)
    """Loading models, and the stages' own turns."""
    total: Clock = field(default_factory=Clock)


def measure() -> str:
    """Return for each chain its stages, itself, and its share of what they would reach."""
    return "\n\n".join(
        _measured(text, quality) for text in inputs.texts() for quality in CHAINS[text.language]
    )


def _measured(text: inputs.Text, quality: str) -> str:
    duel = Duel()
    output = inputs.FOLDER / "output-stages"
    for _ in range(ROUNDS):
        shutil.rmtree(output, ignore_errors=True)
        engines, options = _run(text, quality, output, duel)
    account = json.loads((output / "report.json").read_bytes())["accounting"]
    (megabytes,) = (sum(source["bytes"].values()) / 1e6 for source in account.values())
    shutil.rmtree(output)
    return (
        f"{text.language}, {quality}: {engines}; language identified by the first "
        f"{options.lid_chars} characters; {ROUNDS} runs of {megabytes:.1f} MB of text\n"
        f"{_table(duel, ROUNDS * megabytes)}"
    )


def _run(text: inputs.Text, quality: str, output: Path, duel: Duel) -> tuple[str, Options]:
    options = TextOptions(
        input=(str(text.path),),
        text_field=text.field,
        output=output,
        tokenizer=text.tokenizer,
        quality=(f"{text.language}={quality}",),
        split_bytes=1 << 30,
    )
    with ExitStack() as stack:
        enter = stack.enter_context
        files, corpora = match_corpora("pipelines.text", options)
        (corpus,) = corpora.values()
        enter(locked(output))
        runner = enter(Runner((), num_workers=0))
        native = compiled.available()
        with duel.outside.measure("models"):
            run = Build(corpus, corpora, files=files, runner=runner, native=native)
            chain = load_chain(options, native=native, run=run.job.run)
        for patched in _timers(duel, chain=chain, corpus=corpus):
            enter(patched)
        with duel.total.measure("chain"):
            run.make()
        return ", ".join(run.chain.engines.values()), options


def _timers(duel: Duel, *, chain: Chain, corpus: Corpus) -> Iterator[Any]:
    """Yield the patches that put a clock around each step of the pipeline."""
    clock = duel.chain
    turn = Turn(duel.alone, chain, corpus)

    def batches(reader: Iterable[Record | Damage], *, cut: Any = mapping.group_records) -> Any:
        return _with_turns(clock.timed_items("read", cut(reader)), duel, turn)

    def timed(owner: Any, name: str, label: str, *, by: Clock = clock) -> Any:
        return patch.object(owner, name, by.timed(label, getattr(owner, name)))

    yield patch.object(mapping, "group_records", batches)
    for step in chain.steps:
        yield timed(type(step), "__call__", step.name)
    yield timed(Intake, "read", "document")
    yield timed(Quality, "judge", "quality")
    yield timed(LanguageIdentifier, "identify", "langid")
    yield timed(mapping, "run", "judge")
    yield timed(mapping, "_reject", "rejects")
    yield timed(Mapper, "map", "map")
    yield timed(SegmentBuilder, "add", "segment")
    yield timed(SegmentBuilder, "close", "segment")
    yield timed(dedup_tasks, "run_task", "dedup")
    yield timed(tasks, "run_merge", "merge")
    yield timed(Runner, "run", "runner")
    yield timed(Build, "plan", "plan and commit")
    yield timed(Build, "commit", "plan and commit")


def _with_turns(
    batches: Iterable[Items], duel: Duel, turn: Callable[[int], None]
) -> Iterator[Items]:
    """Yield the chain's batches; the stages alone have their turn before or after each."""
    turn = duel.outside.timed("turns", turn)
    for number, items in enumerate(batches):
        if number % 2:
            turn(len(items))
        yield items
        if not number % 2:
            turn(len(items))


class Turn:
    """The stages alone, one after the other, on the next records of the same file."""

    def __init__(self, clock: Clock, chain: Chain, corpus: Corpus) -> None:
        self._clock = clock
        self._chain = chain
        (self._clean,) = (step for step in chain.steps if isinstance(step, Clean))
        (self._fingerprint,) = (step for step in chain.steps if isinstance(step, Fingerprint))
        self._corpus = corpus
        files, _ = match_corpora(corpus.module, corpus.options)
        cut = [
            split
            for file in files
            for split in splits(file, corpus.reading, split_bytes=corpus.options.split_bytes)
        ]
        readers = [open_reader(split, corpus.reading) for split in cut]
        self._items = itertools.chain.from_iterable(readers)

    def __call__(self, num_records: int) -> None:
        """Work on so many records."""
        measure, chain, options = self._clock.measure, self._chain, self._corpus.options
        with measure("read"):
            items = list(itertools.islice(self._items, num_records))
        with measure("document"):
            texts = [text for item in items if (text := self._text(item))]
        column = pa.array(texts, pa.large_string())
        with measure("clean"):
            column, _ = self._clean.cleaner.repaired(column)
        texts = column.to_pylist()
        with measure("langid"):
            labels, scores = identify(chain.identify.identifier, texts)
        wanted = chain.identify.languages or set(labels)
        sure = (scores >= options.language_threshold).tolist()
        with measure("quality"):
            judged = judge_quality(chain.judge.quality, texts, labels)
        rows = zip(judged.texts, labels, sure, judged.reasons, strict=True)
        texts = [
            text
            for text, label, certain, reason in rows
            if certain and label in wanted and not reason
        ]
        with measure("tokenize"):
            chain.tokenizer.encode_batch(texts)
        column = pa.array(texts, pa.large_string())
        with measure("fingerprint"):
            self._fingerprint.fingerprinter.fingerprints(column)

    def _text(self, item: Record | Damage) -> str:
        if isinstance(item, Damage):
            return ""
        try:
            (document,) = self._corpus.recipe.documents(item.value, self._corpus.options)
        except Rejected:
            return ""
        return "" if document.reason else document.text


def _table(duel: Duel, megabytes: float) -> str:
    alone, chain = duel.alone.cpu, duel.chain.cpu
    stages = [(name, alone[name], chain[name]) for name in STAGES]
    stages += [(name, chain[name], chain[name]) for name in FILES]
    between = _between(duel)
    least, whole = sum(row[1] for row in stages), sum(row[2] for row in stages)
    whole += sum(between.values())

    def row(name: str, bare: float, spent: float) -> list[str]:
        rate = f"{megabytes / bare:,.1f}" if bare else ""
        return [
            name,
            f"{bare:.3f}" if bare else "",
            rate,
            f"{spent:.3f}",
            f"{spent - bare:+.3f}",
            f"{100 * (spent - bare) / whole:+.1f} %",
        ]

    rows = [row(*stage) for stage in stages]
    rows += [row(name, 0, spent) for name, spent in between.items()]
    rows.append(row("all", least, whole))
    head = ("", "alone s", "MB/s", "in the chain s", "difference s", "of the chain")
    once = sum(between[name] for name in ONCE)
    return (
        f"{render(head, rows)}\n"
        f"CPU seconds. Stages alone: {megabytes / least:.2f} MB/s per core; "
        f"the chain: {megabytes / whole:.2f} MB/s, {100 * least / whole:.1f} % of that; "
        f"without what is paid by the task and not by the byte ({', '.join(ONCE)}): "
        f"{100 * least / (whole - once):.1f} %. "
        f"Not counted: models loaded by a worker, {duel.outside.cpu['models'] / ROUNDS:.2f} s a run"
    )


def _between(duel: Duel) -> dict[str, float]:
    """Return the seconds that are in no stage, by what they go into."""
    chain, outside = duel.chain.cpu, duel.outside.cpu
    steps = sum(chain[name] for name in ("read", "document", "judge", "segment"))
    mapped = chain["map"] - outside["turns"]
    tasks_alone = mapped + chain["dedup"] + chain["merge"]
    handing_out = chain["runner"] - outside["turns"] - tasks_alone
    rest = duel.total.cpu["chain"] - chain["runner"] - chain["plan and commit"]
    return {
        "filters between stages": chain["judge"] - sum(chain[name] for name in STAGES[2:]),
        "rejects": chain["rejects"],
        "rest of the map": mapped - steps - chain["rejects"],
        "handing out tasks": handing_out,
        "plan and commit": chain["plan and commit"],
        "rest of the run": rest,
    }
