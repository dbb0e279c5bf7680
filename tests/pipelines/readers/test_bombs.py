"""Files that are small until they are read: one record of gigabytes between ordinary ones."""

import gzip
import json
import subprocess
import sys
import time
from pathlib import Path

import psutil  # type: ignore[import-untyped]  # it has no stubs
import pyarrow.parquet as pq
import pytest
import zstandard

from pipelines.corpus.recipe import SAMPLE
from shards import Dataset
from tests.pipelines.runs import page

pytestmark = pytest.mark.slow

MOST_BYTES = 1_200_000_000
"""Of memory, for driver and workers together."""

BEGIN, BLOCK, END = b'{"id": 99, "text": "', b"x" * (1 << 20), b'"}'


def write_bomb(path: Path, *, blocks: int) -> None:
    """Write forty pages and, in their middle, a record of `blocks` MiB."""
    array = ".json." in path.name
    separator = b",\n" if array else b"\n"
    pages = [json.dumps({"text": page(number)["content"]}).encode() for number in range(40)]
    with path.open("wb") as raw:
        pack = (
            gzip.GzipFile(fileobj=raw, mode="wb", compresslevel=1)
            if path.suffix == ".gz"
            else zstandard.ZstdCompressor(level=1).stream_writer(raw, closefd=False)
        )
        with pack as sink:
            sink.write((b"[" if array else b"") + separator.join([*pages[:20], BEGIN]))
            for _ in range(blocks):
                sink.write(BLOCK)
            sink.write(separator.join([END, *pages[20:]]) + (b"]" if array else b"\n"))


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


@pytest.mark.parametrize(
    ("name", "gigabytes"),
    [("a.jsonl.zst", 4), ("a.json.zst", 4), ("a.jsonl.gz", 1), ("a.json.gz", 1)],
)
def test_a_bomb_costs_its_record_and_little_memory(
    tmp_path: Path, name: str, gigabytes: int
) -> None:
    path, output = tmp_path / name, tmp_path / "out"
    write_bomb(path, blocks=1024 * gigabytes)
    assert path.stat().st_size < 6_000_000
    flags = ["--input", str(path), "--tokenizer", f"sentencepiece:{SAMPLE / 'sample.model'}"]
    flags += ["--languages", "all", "--language-threshold", "0", "--max-reject-rate", "10%"]
    command = [sys.executable, "-m", "pipelines.text", *flags, "--output", str(output)]
    code, peak = watched(command, tmp_path / "log")
    assert code == 0, (tmp_path / "log").read_text()
    assert peak < MOST_BYTES
    (generation,) = Dataset.open(output).manifest.generations
    (account,) = generation.accounting.values()
    assert (account["read"], account["kept"]) == (41, 40)
    assert account["quarantined"] == {"too-long": 1}
    (table,) = generation.rejects
    (reject,) = pq.read_table(output / table.path).to_pylist()
    assert reject["raw"] == (BEGIN + b"x" * (64 << 10))[: 64 << 10]
    assert reject["length"] == len(BEGIN) + (gigabytes << 30) + len(END)
    assert reject["position"] > 20 * 300
