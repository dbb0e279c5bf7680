"""The number of requests that a run sends to a server, and the number of bytes it fetches."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import s3fs

from pipelines.job.build import build
from pipelines.job.command import completed
from pipelines.wudao import CORPUS
from shards.storage.remote import RemotePath
from tests.engines.s3_server import NEEDED, as_s3, counted, serve_s3
from tests.pipelines.runs import cut_sample
from tests.soak.case import MODULES_WITH_SIZES

pytestmark = NEEDED


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The access log of a server with a bucket `output`."""
    log = tmp_path / "access.log"
    server = serve_s3(tmp_path / "s3", buckets=("output",), access_log=log)
    with server as address, as_s3(address, monkeypatch):
        yield log


SMALLER = {
    **{"BLOCK_ROWS": 8, "SMALL_BYTES": 1024, "END_BYTES": 3072},
    **{"GAP_BYTES": 256, "NUM_BINS": 64},
}
"""Sizes that make runs fetch files of fifty rows in parts, as they would fetch millions of rows."""

LEVELS: dict[str, dict[str, int]] = {
    "files": {},
    "segments": {},
    "ranges": {"ROWS_PER_RANGE": 120, "MAX_SHARD_SLICES": 0, "PASS_WEIGHT": 0},
}
"""The constants that make shards read whole files, segments, or one of their eight ranges."""


def scale_down(monkeypatch: pytest.MonkeyPatch, level: str) -> None:
    smaller = SMALLER if level != "files" else {}
    for name, value in {**smaller, **LEVELS[level]}.items():
        for reader in MODULES_WITH_SIZES:
            monkeypatch.setattr(import_module(reader), name, value, raising=False)


@pytest.fixture
def fetched(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of all responses that contain bytes of files."""
    sizes: list[int] = []
    ask = s3fs.S3FileSystem._cat_file

    async def cat_file(self: Any, *arguments: Any, **named: Any) -> bytes:
        data: bytes = await ask(self, *arguments, **named)
        sizes.append(len(data))
        return data

    monkeypatch.setattr(s3fs.S3FileSystem, "_cat_file", cat_file)
    return sizes


@dataclass(frozen=True, kw_only=True)
class Case:
    """A run of the sample corpus, and the numbers measured in November 2026."""

    level: str = "files"
    dedup: str = "exact"
    shard_tokens: int = 10_000
    put: int
    get: int
    head: int
    fetched: float
    """The number of megabytes that the run fetches."""


@pytest.mark.parametrize(
    "case",
    [
        Case(put=182, get=877, head=376, fetched=17.7),
        Case(put=47, get=68, head=70, fetched=1.71, dedup="none", shard_tokens=100_000),
        Case(put=246, get=1138, head=460, fetched=27.9, dedup="minhash"),
        Case(put=182, get=1336, head=376, fetched=4.40, level="segments"),
        Case(put=296, get=1509, head=526, fetched=4.98, level="ranges"),
    ],
    ids=lambda case: f"{case.level} {case.dedup}",
)
def test_the_numbers_of_requests_and_bytes_of_a_run(
    log: Path, tmp_path: Path, fetched: list[int], monkeypatch: pytest.MonkeyPatch, case: Case
) -> None:
    scale_down(monkeypatch, case.level)
    given = CORPUS.options(
        input=(str(cut_sample(tmp_path / "in", files=11)),), tokenizer=CORPUS.sample_tokenizer
    )
    options = replace(
        completed(given, CORPUS),
        output=RemotePath("s3://output/wudao"),
        split_bytes=40_000 if case.dedup != "none" else 200_000,
        shard_tokens=case.shard_tokens,
        dedup=case.dedup,
    )
    build("pipelines.wudao", options)
    asked = {**counted(log), "fetched": sum(fetched) / 1e6}
    expected = {name: getattr(case, name) for name in ("put", "get", "head", "fetched")}
    assert {name: asked[name] for name in expected} == pytest.approx(expected, rel=0.1)
