"""The requests that `--plan` expects against those that a server counts."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import s3fs

from pipelines.planning.run import estimate_run
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
    [(40_000, 10_000, "exact"), (200_000, 100_000, "none")],
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
    assert sum(asked.values()) == pytest.approx(expected.all, rel=0.25)
    for kind in ("put", "get", "head", "delete"):  # a run that takes longer lists more often
        assert asked[kind] == pytest.approx(getattr(expected, kind), rel=0.25), kind
