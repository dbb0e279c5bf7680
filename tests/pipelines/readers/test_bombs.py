"""Files that are small until they are read: one record of gigabytes between ordinary ones."""

import gzip
import itertools
import json
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

import psutil  # type: ignore[import-untyped]  # it has no stubs
import pyarrow.parquet as pq
import pytest
import zstandard

from pipelines.corpus.recipe import SAMPLE
from shards import Dataset
from shards.manifest import Generation
from tests.nightly import a_few
from tests.pipelines.runs import page

pytestmark = pytest.mark.slow

PAGES = [json.dumps({"text": page(number)["content"]}).encode() for number in range(40)]
MOST_BYTES = 1_200_000_000
"""Of memory, for driver and workers together."""

BEGIN, BLOCK, END = b'{"id": 99, "text": "', b"x" * (1 << 20), b'"}'


def pack(path: Path, parts: Iterable[bytes]) -> None:
    """Write a compressed file piece by piece."""
    with path.open("wb") as raw:
        packer = (
            gzip.GzipFile(fileobj=raw, mode="wb", compresslevel=1)
            if path.suffix == ".gz"
            else zstandard.ZstdCompressor(level=1).stream_writer(raw, closefd=False)
        )
        with packer as sink:
            for part in parts:
                sink.write(part)


def watched(command: list[str], log: Path) -> tuple[int, int]:
    """Run a command; return its exit code and the most memory that its processes had together."""
    peak = 0
    with log.open("wb") as sink, subprocess.Popen(command, stderr=sink) as process:
        while process.poll() is None:
            held = 0
            try:
                family = psutil.Process(process.pid)
                for member in (family, *family.children(recursive=True)):
                    held += member.memory_info().rss
            except psutil.NoSuchProcess:
                pass
            peak = max(peak, held)
            time.sleep(0.02)
        return process.returncode, peak


def built(path: Path, output: Path) -> Generation:
    """Make a dataset of a file, with bounded memory, and return what it consists of."""
    flags = ["--input", str(path), "--tokenizer", f"sentencepiece:{SAMPLE / 'sample.model'}"]
    flags += ["--languages", "all", "--language-threshold", "0", "--max-reject-rate", "100%"]
    command = [sys.executable, "-m", "pipelines.text", *flags, "--output", str(output)]
    code, peak = watched(command, output.with_name("log"))
    assert code == 0, output.with_name("log").read_text()
    print(f"{path.name}: {path.stat().st_size / 1e6:.1f} MB, {peak / 1e6:.0f} MB of memory")
    assert peak < MOST_BYTES
    (generation,) = Dataset.open(output).manifest.generations
    return generation


ARRAY = b",".join(PAGES)
LINE = b"\n" + b"x" * ((1 << 20) - 1)
Bomb = tuple[bytes, bytes, int, bytes, int, dict[str, int]]
"""What stands before and behind a block of a MiB that comes so many times; what is read of it."""
BOMBS: dict[str, Bomb] = {
    "record.jsonl.zst": (
        b"\n".join([*PAGES[:20], BEGIN]), BLOCK, 2048, b"\n".join([END, *PAGES[20:]]), 40,
        {"too-long": 1},
    ),
    "record.json.gz": (
        b"[" + b",\n".join([*PAGES[:20], BEGIN]), BLOCK, 1024,
        b",\n".join([END, *PAGES[20:]]) + b"]", 40, {"too-long": 1},
    ),
    "blanks.json.zst": (b"[" + ARRAY + b",", b" \n" * (1 << 19), 1024, ARRAY + b"]", 80, {}),
    "member.json.gz": (
        b'{"RECORDS":[' + ARRAY + b'],"more":"', BLOCK, 1024, b'"}', 40, {"trailing-bytes": 1},
    ),
    "lines.jsonl.zst": (
        b"\n".join(PAGES), LINE, 1024, b"\n" + PAGES[0], 41, {"bad-json": 1024},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", a_few([*BOMBS], of_each=3))
def test_a_bomb_costs_its_record_and_little_memory(tmp_path: Path, name: str) -> None:
    begin, block, times, end, kept, quarantined = BOMBS[name]
    path, output = tmp_path / name, tmp_path / "out"
    pack(path, itertools.chain([begin], itertools.repeat(block, times), [end]))
    assert path.stat().st_size < 6_000_000
    generation = built(path, output)
    (account,) = generation.accounting.values()
    assert account["read"] == kept + sum(quarantined.values())
    assert account["quarantined"] == quarantined
    if name.startswith("record"):
        (table,) = generation.rejects
        (reject,) = pq.read_table(output / table.path).to_pylist()
        assert reject["raw"] == (BEGIN + b"x" * (64 << 10))[: 64 << 10]
        assert reject["length"] == len(BEGIN) + (times << 20) + len(END)
        assert reject["position"] > 20 * 300
