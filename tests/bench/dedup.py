"""Dedup of generated documents: time and memory, and what is found beside datatrove's MinHash.

The first table needs no text: signatures are made up, a segment of them per 100,000 documents, with
5 % exact and 5 % near-duplicates anywhere, and dedup runs on the files that the map would leave. The
second signs real documents and planted versions of them with both implementations.
"""

import argparse
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from pipelines import minhash
from pipelines.dedup_phases import Dedup, Deduplicated
from pipelines.document import holdout_hashes, order_hashes, sample_hashes
from pipelines.minhash import NUM_SLOTS
from pipelines.phases import Phases
from pipelines.plan import Plan, PlannedSegment, load_plan
from pipelines.runner import Runner, hush
from pipelines.sieve import Sieve, packed
from pipelines.wudao import WudaoOptions
from shards.manifest import WORK
from tests.bench import memory
from tests.bench.inputs import FOLDER, ROOT
from tests.bench.table import render

SEGMENT_DOCUMENTS = 100_000
CASES = (("exact", "local", 1), ("minhash", "local", 1), ("minhash", "local", 2),
         ("minhash", "components", 1))  # fmt: skip
"""--dedup, --clusters, workers."""


def measure(num_documents: int) -> str:
    """Return the table of seconds and memory for so many generated documents."""
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
    head = ("", "clusters", "workers", "seconds", "tree RSS MB", "largest process PSS MB", "dropped")
    return (
        f"{num_documents:,} documents, {size / num_documents:.0f} bytes each on disk, made in "
        f"{made:.0f} s\n{render(head, rows)}"
    )


def generate(folder: Path, num_documents: int) -> None:
    """Write the files of segments and a plan, as the map would."""
    planned = []
    for number, start in enumerate(range(0, num_documents, SEGMENT_DOCUMENTS)):
        ids = np.arange(start, min(start + SEGMENT_DOCUMENTS, num_documents))
        sieve = Sieve(documents(ids, num_documents), threshold=WudaoOptions().minhash_threshold)
        stem = folder / WORK / "map" / f"s{number:05}"
        sieved = sieve.write(stem)
        documents_left = int(sieve.stay.sum())
        planned.append(
            PlannedSegment(
                stem=stem.name, source="s", documents=documents_left, longest=1, sieved=sieved
            )
        )
    plan = Plan(
        generation="g0001-00000000",
        fingerprint="0" * 64,
        dtype="uint16",
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
            "signature": packed(minhash._finished(values)),
        }
    )
    return table.take(np.argsort(order))


def _row(folder: Path, dedup: str, clusters: str, workers: int) -> list[str]:
    for phase in ("dedup", "components", "drops", "mates"):
        shutil.rmtree(folder / WORK / phase, ignore_errors=True)
    command = [sys.executable, "-m", "tests.bench.dedup", "--run", str(folder), "--dedup", dedup]
    command += ["--clusters", clusters, "--workers", str(workers)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        marks = memory._watch(process)  # type: ignore[arg-type]  # text or bytes, it reads neither
        assert process.stdout
        seconds, dropped = process.stdout.read().split()
    memory_used = [f"{value / 1e6:,.0f}" for value in (marks.tree_rss, marks.process_pss)]
    return [dedup, clusters if dedup == "minhash" else "", str(workers), seconds, *memory_used,
            f"{int(dropped):,}"]  # fmt: skip


def run(folder: Path, options: WudaoOptions) -> Deduplicated:
    """Return what dedup of a folder that generate() made comes to."""
    hush()
    plan = load_plan(folder / WORK, (folder / "plan").read_text())
    with Runner((), num_workers=options.workers) as runner:
        return Dedup(Phases(folder / WORK, runner), plan, folder, options).run()


@dataclass(frozen=True)
class Planted:
    """Real documents, and at the end versions of the first of them."""

    texts: list[str]
    pairs: np.ndarray
    """int[n, 2]: document and version."""
    similarity: np.ndarray
    """float[n]"""


def _main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.dedup", description=__doc__)
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--run", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--dedup", default="minhash", help=argparse.SUPPRESS)
    parser.add_argument("--clusters", default="local", help=argparse.SUPPRESS)
    parser.add_argument("--workers", type=int, default=1, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if not asked.run:
        print(measure(asked.documents))
        return
    started = time.monotonic()
    options = WudaoOptions(dedup=asked.dedup, clusters=asked.clusters, workers=asked.workers)
    found = run(asked.run, options)
    print(f"{time.monotonic() - started:.1f} {found.dropped('s')}")


if __name__ == "__main__":
    _main()
