"""What a dataset of very many documents costs to open: `python -m tests.bench.documents`.

The tables are real, a row a document; every shard is the same one under another name (a hard
link), so that 10⁹ documents fit on any disk. The tokens are holes in a file. Figures are of one
fresh process with the files in the page cache.
"""

import argparse
import os
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa

from shards.manifest import ShardEntry, SourceEntry, write_manifest
from shards.order.sampler import Sampler
from shards.order.streams import streams_of
from shards.reader import Dataset
from shards.windows import WindowVocabulary, causal_windows, glm_windows
from shards.writer import write_shard
from tests.bench.inputs import FOLDER
from tests.bench.table import machine, render
from tests.shards.numbered import build
from tests.shards.windows import read_window

_TOKENS = 100
"""Of each document."""
_SHARD_DOCUMENTS = 1_000_000


def main() -> None:
    """Print seconds and memory at each stage."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.documents", description=__doc__)
    parser.add_argument("--documents", type=int, default=10**9)
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.measure:
        _measure(asked.measure)
        return
    folder = FOLDER / "documents"
    shutil.rmtree(folder, ignore_errors=True)
    _build(folder, num_shards=-(-asked.documents // _SHARD_DOCUMENTS))
    print(f"python -m tests.bench.documents --documents {asked.documents}\n{machine()}", flush=True)
    command = [sys.executable, "-m", "tests.bench.documents", "--measure", str(folder)]
    subprocess.run(command, check=True)
    shutil.rmtree(folder)


def _build(folder: Path, *, num_shards: int) -> None:
    manifest = build(folder)
    entry = _first(folder)
    entries = [entry]
    for i in range(1, num_shards):
        name = f"g0001-00/web/many-{i:05d}"
        for suffix in entry.files:
            os.link(folder / f"{entry.path}.{suffix}", folder / f"{name}.{suffix}")
        entries.append(replace(entry, path=name))
    (generation,) = manifest.generations
    sources = {"web": SourceEntry(shards=tuple(entries), validation=())}
    write_manifest(folder, replace(manifest, generations=(replace(generation, sources=sources),)))


def _first(folder: Path) -> ShardEntry:
    lengths = np.full(_SHARD_DOCUMENTS, _TOKENS, np.int32)
    table = pa.table(
        {
            "tokens": lengths,
            "prompt_tokens": np.zeros(len(lengths), np.int32),
            "order": np.arange(len(lengths), dtype=np.uint64),
        }
    )
    stem = folder / "g0001-00" / "web" / "many-00000"
    tokens = (np.zeros(10**6, "<u2") for _ in range(_SHARD_DOCUMENTS * _TOKENS // 10**6))
    entry = write_shard(stem, table, directory=folder, tokens=tokens, dtype=np.dtype("<u2"))
    path = folder / f"{entry.path}.bin"
    path.unlink()
    with path.open("wb") as file:
        file.truncate(entry.files["bin"].bytes)
    return entry


def _measure(folder: Path) -> None:
    rows = [_row("start", time.perf_counter())]
    start = time.perf_counter()
    dataset = Dataset.open(folder)
    rows.append(_row("open the dataset", start))
    start = time.perf_counter()
    shards = [dataset.shard(entry) for entry in dataset.manifest.shards()]
    rows.append(_row(f"open its {len(shards):,} shards", start))
    start = time.perf_counter()
    sampler = Sampler(streams_of(dataset), seed=1, num_scatters=8, window=glm_windows(1024))
    sampler.locate(sampler.draw(np.arange(1024)))
    rows.append(_row("make a sampler, draw 1,024", start))
    vocabulary = WindowVocabulary.of(dataset)
    for name, spec in (("GLM", glm_windows(1024)), ("causal", causal_windows(2048))):
        start = time.perf_counter()
        for shard in shards:
            for window in range(0, shard.entry.tokens // spec.stride, 20_000):
                read_window(shard, window, spec=spec, vocabulary=vocabulary)
        rows.append(_row(f"read {name} windows of every shard", start))
    documents = sum(len(shard) for shard in shards)
    print(f"{documents:,} documents, {documents * _TOKENS:,} tokens")
    print(render(("", "seconds", "RSS MB", "allocated MB"), rows))


def _row(name: str, start: float) -> list[str]:
    seconds = time.perf_counter() - start
    memory = psutil.Process().memory_info()
    # Pages of a file that this process alone maps count as its own; only these are allocated.
    private = sum(area.anonymous for area in psutil.Process().memory_maps())
    return [name, f"{seconds:.2f}", f"{memory.rss / 1e6:,.0f}", f"{private / 1e6:,.0f}"]


if __name__ == "__main__":
    main()
