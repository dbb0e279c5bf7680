"""The requests that `--plan` expects against those that a server counts."""

from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import s3fs

from pipelines.planning.run import estimate_run
from pipelines.planning.sizes import for_merge, with_groups
from pipelines.planning.storage import Requests
from pipelines.run.build import build
from pipelines.run.command import completed
from pipelines.wudao import RECIPE
from shards.storage.remote import RemotePath
from tests.engines.s3_server import ACCESS, PROGRAM, SECRET, counted, serve_s3

pytestmark = [
    pytest.mark.engine,
    pytest.mark.slow,
    pytest.mark.skipif(
        not PROGRAM.exists(), reason=f"the S3 server ({PROGRAM.name}) is missing: run make engines"
    ),
]


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The access log of a server with a bucket `output`."""
    log = tmp_path / "access.log"
    with serve_s3(tmp_path / "s3", buckets=("output",), access_log=log) as address:
        monkeypatch.setenv("AWS_ENDPOINT_URL", address)
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", ACCESS)
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
        monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        s3fs.S3FileSystem.clear_instance_cache()
        yield log
        s3fs.S3FileSystem.clear_instance_cache()


@pytest.mark.parametrize(
    ("split_bytes", "shard_tokens", "dedup"),
    [(40_000, 10_000, "exact"), (200_000, 100_000, "none"), (40_000, 10_000, "minhash")],
)
def test_a_server_counts_the_requests_that_the_plan_expects(
    log: Path, split_bytes: int, shard_tokens: int, dedup: str
) -> None:
    options = replace(
        completed(RECIPE.options(), RECIPE),
        output=RemotePath("s3://output/wudao"),
        split_bytes=split_bytes,
        shard_tokens=shard_tokens,
        dedup=dedup,
    )
    estimate, _ = estimate_run("pipelines.wudao", options)
    expected = sum(estimate.requests.values(), Requests())
    assert not counted(log), "--plan makes no request to the output"
    build("pipelines.wudao", options)
    asked = counted(log)
    kinds = ["put", "head", "delete"]  # a run that takes longer lists more often
    if dedup == "minhash":  # documents that have a band in common are compared, which no plan knows
        assert expected.get < asked["get"] < 1.5 * expected.get
    else:
        assert sum(asked.values()) == pytest.approx(expected.all, rel=0.25)
        kinds.append("get")
    for kind in kinds:
        assert asked[kind] == pytest.approx(getattr(expected, kind), rel=0.25), kind


SMALLER = {
    "BLOCK_ROWS": 8,
    "SMALL_BYTES": 1024,
    "END_BYTES": 3072,
    "GAP_BYTES": 256,
    "NUM_BINS": 64,
}
"""With these, files of fifty rows are fetched in parts as those of millions are."""

LEVELS: dict[str, dict[str, int]] = {
    "segments": {},
    "groups": {"MOST_SLICES": 0, "ROWS_PER_GROUP": 120},
    "ranges": {
        "MOST_SLICES": 0,
        "ROWS_PER_GROUP": 120,
        "MOST_SHARD_SLICES": 0,
        "PASS_WEIGHT": 0,
    },
}
"""What makes shards read segments, groups of about two, or one of eight ranges of the groups."""

READERS = (
    "shards.storage.sparse", "shards.tables", "pipelines.segments.bins", "pipelines.merge.union",
    "pipelines.segments.matches", "pipelines.segments.segment", "pipelines.merge.holdout",
    "pipelines.merge.group", "pipelines.merge.ranges", "pipelines.planning.sizes",
)  # fmt: skip
"""The modules that have these constants."""


def scale_down(monkeypatch: pytest.MonkeyPatch, level: str) -> None:
    for name, value in {**SMALLER, **LEVELS[level]}.items():
        for reader in READERS:
            monkeypatch.setattr(import_module(reader), name, value, raising=False)


@pytest.fixture
def fetched(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The size of each answer that holds bytes of a file."""
    sizes: list[int] = []
    ask = s3fs.S3FileSystem._cat_file

    async def cat_file(self: Any, *arguments: Any, **named: Any) -> bytes:
        data: bytes = await ask(self, *arguments, **named)
        sizes.append(len(data))
        return data

    monkeypatch.setattr(s3fs.S3FileSystem, "_cat_file", cat_file)
    return sizes


@pytest.mark.parametrize(
    ("level", "slices"), [("segments", 11 * 17), ("groups", 6 * 17), ("ranges", 17)]
)
def test_groups_and_ranges_fetch_what_the_plan_expects(
    log: Path, fetched: list[int], monkeypatch: pytest.MonkeyPatch, level: str, slices: int
) -> None:
    scale_down(monkeypatch, level)
    options = replace(
        completed(RECIPE.options(), RECIPE),
        output=RemotePath("s3://output/wudao"),
        split_bytes=40_000,
        shard_tokens=10_000,
    )
    estimate, _ = estimate_run("pipelines.wudao", options)
    assert for_merge(with_groups(estimate.extent)).merge_slices == slices
    assert (
        set(estimate.requests) & {"group", "ranges"}
        == {
            "segments": set(),
            "groups": {"group"},
            "ranges": {"group", "ranges"},
        }[level]
    )
    expected = sum(estimate.requests.values(), Requests())
    build("pipelines.wudao", options)
    asked = counted(log)
    assert sum(asked.values()) == pytest.approx(expected.all, rel=0.25)
    assert sum(fetched) == pytest.approx(expected.bytes, rel=0.25)
    for kind in ("put", "get", "head"):
        assert asked[kind] == pytest.approx(getattr(expected, kind), rel=0.25), kind
