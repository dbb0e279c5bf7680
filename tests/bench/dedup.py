"""Dedup of generated documents: time and memory, and what is found beside datatrove's MinHash.

The first table needs no text: signatures are made up, a segment of them per 100,000 documents,
with 5 % exact and 5 % near-duplicates anywhere, and dedup runs on the files that the map would
leave. The second signs real documents and planted versions of them with both implementations.
"""

import argparse
import json
import re
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import zstandard

from pipelines.dedup.drops import Drops, drop_path
from pipelines.dedup.exact import text_hashes
from pipelines.dedup.minhash import NUM_BANDS, NUM_SLOTS, sign, signatures_of
from pipelines.dedup.phases import Dedup, Deduplicated
from pipelines.dedup.sieve import Sieve, pack_signatures
from pipelines.engine.phases import Phases
from pipelines.engine.runner import Runner, silence_beam
from pipelines.segments.identity import holdout_hashes, order_hashes, sample_hashes
from pipelines.segments.plan import Plan, PlannedSegment, load_plan
from pipelines.wudao import WudaoOptions
from shards.manifest import WORK
from shards.range import EVERYTHING
from tests.bench import inputs, memory
from tests.bench.clock import children_cpu
from tests.bench.inputs import FOLDER, ROOT
from tests.bench.table import render

SCRIPT = Path(__file__).with_name("datatrove_minhash.py")
MEMORY = ("tree RSS MB", "tree PSS MB", "largest process PSS MB")
NUM_PLANTED, NUM_SEGMENTS = 3000, 7
SEGMENT_DOCUMENTS = 100_000
CASES = (("exact", "local", 1), ("minhash", "local", 1), ("minhash", "local", 2),
         ("minhash", "components", 1))  # fmt: skip
"""--dedup, --clusters, workers."""


def measure(num_documents: int) -> str:
    """Return the table of seconds and memory for so many documents."""
    folder = FOLDER / f"dedup-{num_documents}"
    started = time.monotonic()
    if not folder.exists():
        unfinished = folder.with_name(f"{folder.name}.unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        generate(unfinished, num_documents)
        unfinished.rename(folder)
    made = time.monotonic() - started
    size = sum(path.stat().st_size for path in (folder / WORK / "map").iterdir())
    rows = [_row(folder, *case) for case in CASES]
    head = ("", "clusters", "workers", "seconds", "CPU s", *MEMORY, "dropped")
    return (
        f"{num_documents:,} documents, {size / num_documents:.0f} bytes each on disk, made in "
        f"{made:.0f} s\n{render(head, rows)}"
    )


def generate(folder: Path, num_documents: int) -> None:
    """Write the files of segments and a plan, as the map would."""
    starts = range(0, num_documents, SEGMENT_DOCUMENTS)
    ids = (np.arange(at, min(at + SEGMENT_DOCUMENTS, num_documents)) for at in starts)
    write_plan(folder, (Sieve(documents(part, num_documents)) for part in ids))


def write_plan(folder: Path, sieves: Iterable[Sieve]) -> None:
    """Write the files of segments, one after the other, and a plan."""
    planned = []
    for number, sieve in enumerate(sieves):
        stem = folder / WORK / "map" / f"s{number:05}"
        planned.append(
            PlannedSegment(
                stem=stem.name,
                source="s",
                rows=len(sieve.kept),
                documents=int(sieve.kept.sum()),
                tokens=0,
                longest=1,
                rejects=0,
                held_bytes=0,
                table_bytes=0,
                sieved=sieve.write(stem),
            )
        )
    plan = Plan(
        generation="g0001-00000000",
        fingerprint="0" * 64,
        dtype="uint16",
        texts=False,
        segments=tuple(planned),
    )
    plan.save(folder / WORK)
    (folder / "plan").write_text(plan.name)


def documents(ids: np.ndarray, total: int) -> pa.Table:
    """Return documents by order, with hashes and signatures; one in ten repeats another."""
    order = order_hashes("s", "f", positions=ids, ordinals=np.zeros(len(ids), np.int32), seed=0)
    kind = sample_hashes("s", "kind", ids, seed=0) % np.uint64(20)
    other = (sample_hashes("s", "other", ids, seed=0) % np.uint64(total)).astype(np.int64)
    family = np.where(kind < 2, other, ids)  # 0: equal to another, 1: near to it
    slots = np.arange(NUM_SLOTS)
    values = holdout_hashes("s", "slot", (family[:, None] * NUM_SLOTS + slots).reshape(-1), seed=0)
    values = values.reshape(-1, NUM_SLOTS)
    noise = sample_hashes("s", "noise", (ids[:, None] * NUM_SLOTS + slots).reshape(-1), seed=0)
    noise = noise.reshape(-1, NUM_SLOTS)
    # Of a near-duplicate 0 to 30 % of the slots differ.
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


@dataclass(frozen=True, kw_only=True)
class Spent:
    """What one dedup took and found."""

    seconds: float
    cpu_seconds: float
    marks: memory.Marks
    dropped: int
    known: int
    """Of these, because of earlier generations."""

    @property
    def memory(self) -> list[str]:
        """MB, as MEMORY names them."""
        marks = (self.marks.tree_rss, self.marks.tree_pss, self.marks.process_pss)
        return [f"{value / 1e6:,.0f}" for value in marks]


def spend(folder: Path, dedup: str, clusters: str, workers: int) -> Spent:
    """Run dedup of a folder that generate() made in a process of its own."""
    for phase in ("dedup", "known", "components", "drops", "slots"):
        shutil.rmtree(folder / WORK / phase, ignore_errors=True)
    command = [sys.executable, "-m", "tests.bench.dedup", "--run", str(folder), "--dedup", dedup]
    command += ["--clusters", clusters, "--workers", str(workers)]
    before = children_cpu()
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        marks = memory._watch(process)  # type: ignore[arg-type]  # text or bytes, it reads neither
        assert process.stdout
        seconds, dropped, known = process.stdout.read().split()
    return Spent(
        seconds=float(seconds),
        cpu_seconds=children_cpu() - before,
        marks=marks,
        dropped=int(dropped),
        known=int(known),
    )


def _row(folder: Path, dedup: str, clusters: str, workers: int) -> list[str]:
    spent = spend(folder, dedup, clusters, workers)
    return [
        dedup,
        clusters if dedup == "minhash" else "",
        str(workers),
        f"{spent.seconds:.1f}",
        f"{spent.cpu_seconds:.1f}",
        *spent.memory,
        f"{spent.dropped:,}",
    ]


def run(folder: Path, options: WudaoOptions) -> Deduplicated:
    """Return what dedup of a folder that generate() made comes to."""
    silence_beam()
    plan = load_plan(folder / WORK, (folder / "plan").read_text())
    with Runner((), num_workers=options.workers) as runner:
        return Dedup(
            Phases(folder / WORK, runner),
            plan,
            folder,
            dedup=options.dedup,
            clusters=options.clusters,
            threshold=options.minhash_threshold,
        ).run()


@dataclass(frozen=True)
class Planted:
    """Documents, and behind them a version of each: stretches replaced by those of others."""

    texts: list[str]
    similarity: np.ndarray
    """float[len(texts) / 2]: Jaccard of the words' 5-grams of document and version."""


def compare(python: str) -> str:
    """Return the table of planted pairs found, by similarity, here and by datatrove.

    Args:
        python: An interpreter that has datatrove.
    """
    if not inputs.REAL_TEXT.exists():
        return "skipped: it takes the real text of ../shared/data/bench"
    planted = plant(_words(inputs.REAL_TEXT.with_name("en.jsonl.zst"), NUM_PLANTED))
    found, notes = [], []
    for name, dropped in (
        ("threshold 0.7", partial(_ours, planted.texts, threshold=0.7)),
        ("threshold 0", partial(_ours, planted.texts, threshold=0.0)),
        ("datatrove", partial(_datatrove, planted.texts, python)),
    ):
        started = _cpu()
        gone = dropped()
        pairs = gone.reshape(2, -1).any(axis=0)
        right = int((pairs & (planted.similarity >= 0.7)).sum())
        notes.append(
            f"{name}: {_cpu() - started:.1f} CPU s, {gone.sum():,} dropped, of these "
            f"{100 * right / gone.sum():.1f} % at 0.7 or more"
        )
        found.append(pairs)
    rows = []
    for low in np.arange(0.3, 1.0, 0.1):
        mine = (planted.similarity >= low) & (planted.similarity < low + 0.1)
        theory = (1 - (1 - planted.similarity[mine] ** 8) ** NUM_BANDS).mean()
        shares = [theory, *(pairs[mine].mean() for pairs in found)]
        rows.append(
            [
                f"{low:.1f} to {low + 0.1:.1f}",
                f"{mine.sum():,}",
                *(f"{100 * share:.1f} %" for share in shares),
            ]
        )
    head = ("similarity", "pairs", "theory of bands", "threshold 0.7", "threshold 0", "datatrove")
    return "\n".join([render(head, rows), *notes])


def plant(documents: Sequence[Sequence[str]]) -> Planted:
    """Return documents (words) and versions of them with similarities from 0.3 to 1."""
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
    return Planted([*texts, *versions], np.array(similarity))


def _words(path: Path, num: int) -> list[list[str]]:
    """Return the words of documents of 250 words each, without what is no letter."""
    found = []
    with zstandard.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            words = re.sub("[^a-z]+", " ", json.loads(line)["text"].lower()).split()[:250]
            if len(words) == 250:
                found.append(words)
            if len(found) == num:
                break
    return found


def _ours(texts: list[str], *, threshold: float) -> np.ndarray:
    """Return which texts dedup drops, in several segments."""
    folder = FOLDER / "dedup-planted"
    shutil.rmtree(folder, ignore_errors=True)
    order = order_hashes("s", "f", positions=np.arange(len(texts)),
                         ordinals=np.zeros(len(texts), np.int32), seed=0)  # fmt: skip
    high, low = text_hashes(texts)
    table = pa.table({"order": order, "hash_high": high, "hash_low": low,
                      "signature": pack_signatures(sign(texts))})  # fmt: skip
    parts = [np.arange(at, len(texts), NUM_SEGMENTS) for at in range(NUM_SEGMENTS)]
    parts = [part[np.argsort(order[part])] for part in parts]
    sieves = [Sieve(table.take(part)) for part in parts]
    write_plan(folder, sieves)
    found = run(folder, WudaoOptions(dedup="minhash", minhash_threshold=threshold))
    gone = np.zeros(len(texts), bool)
    for part, sieve in zip(parts, sieves, strict=True):
        gone[part[~sieve.kept]] = True
    drops = Drops.load([drop_path(folder / WORK, name) for name in found.drops], EVERYTHING)
    for number, (part, sieve) in enumerate(zip(parts, sieves, strict=True)):
        gone[part[sieve.kept][drops.rows(number)]] = True
    shutil.rmtree(folder)
    return gone


def _datatrove(texts: list[str], python: str) -> np.ndarray:
    """Return which texts datatrove removes."""
    folder = FOLDER / "dedup-datatrove"
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "in").mkdir(parents=True)
    lines = [json.dumps({"text": text, "id": str(at)}) for at, text in enumerate(texts)]
    (folder / "in" / "texts.jsonl").write_text("\n".join(lines))
    command = [python, str(SCRIPT), str(folder / "in"), str(folder / "out")]
    subprocess.run(command, check=True, cwd=ROOT, capture_output=True)
    gone = np.zeros(len(texts), bool)
    for path in (folder / "out" / "removed").glob("*.jsonl"):
        for line in path.read_text().splitlines():
            gone[int(json.loads(line)["id"])] = True
    shutil.rmtree(folder)
    return gone


def _cpu() -> float:
    """Return the CPU seconds of this process and of those under it that have ended."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def _main() -> None:
    """Run dedup once, in a process of its own, and print seconds and documents dropped."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--run", type=Path, required=True)
    parser.add_argument("--dedup", required=True)
    parser.add_argument("--clusters", required=True)
    parser.add_argument("--workers", type=int, required=True)
    asked = parser.parse_args()
    started = time.monotonic()
    options = WudaoOptions(dedup=asked.dedup, clusters=asked.clusters, workers=asked.workers)
    found = run(asked.run, options)
    print(f"{time.monotonic() - started:.1f} {found.dropped('s')} {found.known('s')}")


if __name__ == "__main__":
    _main()
