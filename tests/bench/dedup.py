"""Measures dedup's time and memory, and compares the duplicates that it finds with datatrove's.

The first two tables need no text. They generate signatures, with one segment per 100,000 documents,
5 % exact duplicates and 5 % near-duplicates anywhere, and run dedup on the files that ProcessSplits
would write. The third table runs both implementations on real documents and planted versions of
these.

    python -m tests.bench.dedup FOLDER DEDUP CLUSTERS WORKERS

runs dedup of a folder in a separate process.
"""

import itertools
import json
import os
import re
import shutil
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa

from pipelines.dedup.drops import Drops, drop_path
from pipelines.dedup.minhash import NUM_BANDS, NUM_SLOTS
from pipelines.dedup.plan import DedupPlan, DedupResult
from pipelines.dedup.segment_dedup import SegmentDedup, pack_signatures
from pipelines.execute.job_store import JobStore
from pipelines.execute.runner import Runner, silence_beam
from pipelines.execute.stage import (
    LazyPlan,
    Records,
    Stage,
    list_items,
    run_here,
    stage_records,
)
from pipelines.plans import KINDS, STAGES
from pipelines.process.processor import Job
from pipelines.segments.identity import holdout_hashes, order_hashes, sample_hashes
from pipelines.segments.index import PreviousGeneration, SegmentEntry, SegmentIndex, load_index
from pipelines.wudao import WudaoOptions
from shards.manifest import WORK
from shards.range import FULL_RANGE
from shards.storage.files import list_files
from shards.text_hash import text_hashes
from tests.bench.cost import run_measured
from tests.bench.inputs import NO_REAL_TEXT, REAL_TEXT, Text, cached_folder, english, fresh_path
from tests.bench.table import render
from tests.pipelines.dedup.plain import sign, signatures_of

SCRIPT = Path(__file__).with_name("datatrove_steps.py")
GENERATION = "g0001-00000000"
NEW, EXISTING = 100_000, (0, 1_000_000, 10_000_000)
"""The number of documents that an append adds, and the numbers of earlier documents."""
NUM_PLANTED, NUM_SEGMENTS = 3000, 7
SEGMENT_DOCUMENTS = 100_000
CASES = (("exact", 1), ("minhash", 1), ("minhash", 2))
"""The value of --dedup, and the number of workers."""


def measure(num_documents: int) -> str:
    """Return the table of time and memory for a number of documents."""
    ids = range(num_documents)
    folder = cached_folder(f"dedup-{num_documents}", lambda to: generate(to, ids, num_documents))
    size = sum(path.stat().st_size for path in (folder / WORK / "map").iterdir())
    rows = [[" ".join(map(str, case)), *_dedup_in_process(folder, *case)] for case in CASES]
    head = ("--dedup, --workers", *FIGURES)
    each = f"{size / num_documents:.0f} bytes each on disk"
    return f"{num_documents:,} documents, {each}\n{render(head, rows)}"


def generate(folder: Path, ids: range, total: int) -> None:
    """Write the segments and the index of some of `total` documents as ProcessSplits does."""
    starts = range(ids.start, ids.stop, SEGMENT_DOCUMENTS)
    parts = (np.arange(at, min(at + SEGMENT_DOCUMENTS, ids.stop)) for at in starts)
    write_plan(folder, (SegmentDedup(documents(part, total)) for part in parts))


def write_plan(folder: Path, dedupers: Iterable[SegmentDedup]) -> None:
    """Write the segments, one after the other, and the index of the segments."""
    planned = []
    for number, deduper in enumerate(dedupers):
        stem = folder / WORK / "map" / f"s{number:05}"
        planned.append(
            SegmentEntry(
                stem=stem.name,
                source="s",
                rows=len(deduper.kept),
                documents=int(deduper.kept.sum()),
                tokens=0,
                longest=1,
                rejects=0,
                held_bytes=0,
                table_bytes=0,
                dedup_counts=deduper.write(stem),
            )
        )
    plan = SegmentIndex(
        generation=GENERATION,
        fingerprint="0" * 64,
        dtype="uint16",
        texts=False,
        segments=tuple(planned),
    )
    plan.save(folder / WORK)
    (folder / "plan").write_text(plan.name)


def documents(ids: np.ndarray, total: int) -> pa.Table:
    """Return documents by order, with hashes and signatures; one in ten is a duplicate."""
    order = order_hashes("s", "f", positions=ids, ordinals=np.zeros(len(ids), np.int32), seed=0)
    kind = sample_hashes("s", "kind", ids, seed=0) % np.uint64(20)
    other = (sample_hashes("s", "other", ids, seed=0) % np.uint64(total)).astype(np.int64)
    family = np.where(kind < 2, other, ids)  # 0: equal, 1: a near-duplicate
    slots = np.arange(NUM_SLOTS)
    values = holdout_hashes("s", "slot", (family[:, None] * NUM_SLOTS + slots).reshape(-1), seed=0)
    values = values.reshape(-1, NUM_SLOTS)
    noise = sample_hashes("s", "noise", (ids[:, None] * NUM_SLOTS + slots).reshape(-1), seed=0)
    noise = noise.reshape(-1, NUM_SLOTS)
    # In a near-duplicate 0 to 30 % of the slots differ.
    limit = (noise[:, :1] >> np.uint64(32)) * np.uint64(3) // np.uint64(10)
    differ = (kind == 1)[:, None] & ((noise & np.uint64(2**32 - 1)) < limit)
    values = np.where(differ, noise, values).astype(np.uint32)
    high = order_hashes("s", "text", positions=np.where(kind == 0, other, ids),
                        ordinals=np.zeros(len(ids), np.int32), seed=0)  # fmt: skip
    table = pa.table(
        {
            "order": order,
            "hash_high": high,
            "hash_low": high,
            "signature": pack_signatures(signatures_of(values)),
        }
    )
    return table.take(np.argsort(order))


def _dedup_in_process(folder: Path, dedup: str, workers: int) -> list[str]:
    """Run dedup, in a new process, on a folder that generate() wrote, and return the FIGURES."""
    for phase in ("dedup", "known", "drops", "merge"):
        shutil.rmtree(folder / WORK / phase, ignore_errors=True)
    words = (folder, dedup, workers)
    cost = run_measured([sys.executable, "-m", "tests.bench.dedup", *words])
    seconds, dropped, known = cost.out.split()
    return [seconds, f"{cost.cpu:.1f}", f"{cost.rss / 1e6:,.0f}", dropped, known]


FIGURES = ("seconds", "CPU s", "RSS MB", "dropped", "known")
"""The results of `_dedup_in_process`; `known` counts documents dropped because of earlier
generations."""


def measure_append(existing: Sequence[int]) -> str:
    """Return the table of appending NEW documents to each number of earlier ones, uncached."""
    rows = []
    for number in existing:
        folder = fresh_path("dedup-append")
        earlier = ()
        if number:
            generate(folder, range(number), number + NEW)
            found = run(folder, WudaoOptions(dedup="minhash"))
            previous = SimpleNamespace(
                name=GENERATION, signatures=found.signatures, audit=(), accounting={}
            )
            earlier = (PreviousGeneration.of(previous, dedup="minhash"),)
            shutil.rmtree(folder / WORK)
        generate(folder, range(number, number + NEW), number + NEW)
        plan = load_index(folder / WORK, (folder / "plan").read_text())
        grown = replace(plan, generation="g0002-00000000", previous=earlier)
        grown.save(folder / WORK)
        (folder / "plan").write_text(grown.name)
        tables = [*folder.glob("g*/signatures/*.arrow")]
        size = sum(path.stat().st_size for path in tables)
        for path in tables:
            _forget(path)
        figures = _dedup_in_process(folder, "minhash", 1)
        rows.append([f"{number:,}", f"{size / 1e6:,.0f}", *figures])
        shutil.rmtree(folder)
    return render(("earlier documents", "signatures MB", *FIGURES), rows)


def _forget(path: Path) -> None:
    """Drop a file from the page cache."""
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(descriptor)


def run(folder: Path, options: WudaoOptions) -> DedupResult:
    """Run dedup on a folder that generate() wrote, and return the result."""
    silence_beam()
    plan = load_index(folder / WORK, (folder / "plan").read_text())
    store = JobStore(folder / WORK, "bench")
    job = Job(options=replace(options, output=folder), corpora={}, versions={}, run="bench")
    with Runner((), num_workers=options.workers) as runner, store.in_memory():

        def answer(stage: Stage) -> Records:
            kind = KINDS[stage.name]
            listed = list_items(store, stage, list_files(folder / WORK / stage.name))
            run_here(store, stage.name, kind, job, listed, runner)
            return stage_records(store, kind, stage)

        stages = DedupPlan(plan, dedup=options.dedup, threshold=options.minhash_threshold).stages()
        return LazyPlan(stages, answer, STAGES).result()


def compare(python: str) -> str:
    """Return the table of the planted pairs that our dedup and datatrove find, by similarity.

    Args:
        python: An interpreter that has datatrove.
    """
    if not REAL_TEXT.exists():
        return NO_REAL_TEXT
    texts, similarity = plant(_words(english(), NUM_PLANTED))
    implementations = {
        "threshold 0.7": partial(_ours, texts, threshold=0.7),
        "threshold 0": partial(_ours, texts, threshold=0.0),
        "datatrove": partial(_datatrove, texts, python),
    }
    found = [dropped().reshape(2, -1).any(axis=0) for dropped in implementations.values()]
    rows = []
    for low in np.arange(0.3, 1.0, 0.1):
        mine = (similarity >= low) & (similarity < low + 0.1)
        theory = (1 - (1 - similarity[mine] ** 8) ** NUM_BANDS).mean()
        shares = [theory, *(pairs[mine].mean() for pairs in found)]
        cells = (f"{100 * share:.1f} %" for share in shares)
        rows.append([f"{low:.1f} to {low + 0.1:.1f}", f"{mine.sum():,}", *cells])
    return render(("similarity", "pairs", "theory of bands", *implementations), rows)


def plant(documents: Sequence[Sequence[str]]) -> tuple[list[str], np.ndarray]:
    """Return documents, followed by a version of each that contains a stretch of another document.

    Also return float[n]: the Jaccard similarity, from 0.3 to 1, of each document and its version,
    by 5-grams of words.
    """
    rng = np.random.default_rng(0)
    texts, versions, similarity = [], [], []
    for number, words in enumerate(documents):
        wanted = rng.uniform(0.3, 1.0)
        size = round(len(words) * (1 - wanted) / (1 + wanted))
        at = int(rng.integers(0, len(words) - size + 1))
        other = documents[(number + 1) % len(documents)]
        version = [*words[:at], *other[:size], *words[at + size :]]
        one, two = (
            {tuple(each[i : i + 5]) for i in range(len(each) - 4)} for each in (words, version)
        )
        texts.append(" ".join(words))
        versions.append(" ".join(version))
        similarity.append(len(one & two) / len(one | two))
    return [*texts, *versions], np.array(similarity)


def _words(text: Text, num: int) -> list[list[str]]:
    """Return the first 250 words of some documents, each word with its letters only."""
    words = (re.sub("[^a-z]+", " ", each.lower()).split()[:250] for each in text.read())
    return [*itertools.islice((each for each in words if len(each) == 250), num)]


def _ours(texts: list[str], *, threshold: float) -> np.ndarray:
    """Return, for each text, whether our dedup drops it, with the texts in several segments."""
    folder = fresh_path("dedup-planted")
    order = order_hashes("s", "f", positions=np.arange(len(texts)),
                         ordinals=np.zeros(len(texts), np.int32), seed=0)  # fmt: skip
    high, low = text_hashes(texts)
    table = pa.table({"order": order, "hash_high": high, "hash_low": low,
                      "signature": pack_signatures(sign(texts))})  # fmt: skip
    parts = [np.arange(at, len(texts), NUM_SEGMENTS) for at in range(NUM_SEGMENTS)]
    parts = [part[np.argsort(order[part])] for part in parts]
    dedupers = [SegmentDedup(table.take(part)) for part in parts]
    write_plan(folder, dedupers)
    found = run(folder, WudaoOptions(dedup="minhash", minhash_threshold=threshold))
    gone = np.zeros(len(texts), bool)
    for part, deduper in zip(parts, dedupers, strict=True):
        gone[part[~deduper.kept]] = True
    drops = Drops.load([drop_path(folder / WORK, name) for name in found.drops], FULL_RANGE)
    for number, (part, deduper) in enumerate(zip(parts, dedupers, strict=True)):
        gone[part[deduper.kept][drops.rows(number)]] = True
    shutil.rmtree(folder)
    return gone


def _datatrove(texts: list[str], python: str) -> np.ndarray:
    """Return, for each text, whether datatrove removes it."""
    folder = fresh_path("dedup-datatrove")
    (folder / "in").mkdir(parents=True)
    lines = [json.dumps({"text": text, "id": str(at)}) for at, text in enumerate(texts)]
    (folder / "in" / "texts.jsonl").write_text("\n".join(lines))
    run_measured([python, SCRIPT, "minhash", folder / "in", folder / "out"])
    gone = np.zeros(len(texts), bool)
    for path in (folder / "out" / "removed").glob("*.jsonl"):
        for line in path.read_text().splitlines():
            gone[int(json.loads(line)["id"])] = True
    shutil.rmtree(folder)
    return gone


def _main() -> None:
    """Run dedup once, and print the time and the numbers of dropped and known documents."""
    folder, dedup, workers = sys.argv[1:]
    started = time.monotonic()
    options = WudaoOptions(dedup=dedup, workers=int(workers))
    found = run(Path(folder), options)
    seen = sum(sum(record.seen_before["s"].values()) for record in found.records)
    print(f"{time.monotonic() - started:.1f} {found.dropped('s')} {seen}")


if __name__ == "__main__":
    _main()
