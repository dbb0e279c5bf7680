"""Parts of a run that write into a bucket at the same time."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import s3fs

from pipelines.corpus import build
from pipelines.parts import parse_part
from shards.errors import UserError
from shards.remote import RemotePath
from tests.engines.s3_server import ACCESS, PROGRAM, SECRET, serve_s3
from tests.pipelines.runs import content, many_splits

pytestmark = pytest.mark.skipif(
    not PROGRAM.exists(), reason=f"there is no S3 server ({PROGRAM.name}): run make engines"
)
MODULE = "pipelines.wudao"
OUTPUT = "s3://home/wudao"


@pytest.fixture
def bucket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with serve_s3(tmp_path / "s3", buckets=("home",)) as address:
        monkeypatch.setenv("AWS_ENDPOINT_URL", address)
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", ACCESS)
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
        monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        s3fs.S3FileSystem.clear_instance_cache()
        yield tmp_path / "s3" / "home"
        s3fs.S3FileSystem.clear_instance_cache()


def part(share: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", MODULE, "--split-bytes", "60000", "--shards", "2"]
    return subprocess.Popen(
        [*command, "--output", OUTPUT, "--part", share],
        stderr=subprocess.PIPE,
        text=True,
        env=dict(os.environ),
    )


def test_parts_in_a_bucket_make_the_bytes_of_one_run(bucket: Path, tmp_path: Path) -> None:
    options = {"split_bytes": 60_000, "shards": 2}
    started = [part("1/4"), part("2/4,3/4")]
    said = [each.communicate(timeout=300)[1] for each in started]
    assert [each.returncode for each in started] == [0, 0], said
    merge = many_splits(tmp_path, **options, part=parse_part("merge"))
    there = {**vars(merge), "output": RemotePath(OUTPUT)}
    with pytest.raises(UserError, match=r"splits are not mapped in s3://.*--part 4/4, or repeat"):
        build(MODULE, type(merge)(**there))
    last = part("4/4")
    assert last.communicate(timeout=300)[0] is None
    assert last.returncode == 0
    build(MODULE, type(merge)(**there))
    build(MODULE, many_splits(tmp_path / "one", **options))
    assert content(bucket / "wudao") == content(tmp_path / "one")
    assert not list((bucket / "wudao").rglob(".work/*"))
