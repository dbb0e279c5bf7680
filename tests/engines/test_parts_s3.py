"""Parts of a run that write into a bucket at the same time."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from pipelines.corpus.part import parse_part
from pipelines.run.build import build
from shards.errors import UserError
from shards.storage.remote import RemotePath
from tests.engines.s3_server import NEEDED, as_s3, serve_s3
from tests.pipelines.runs import content, many_splits

pytestmark = NEEDED
MODULE = "pipelines.wudao"
OUTPUT = "s3://home/wudao"


@pytest.fixture
def bucket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    folder = tmp_path / "s3"
    with serve_s3(folder, buckets=("home",)) as address, as_s3(address, monkeypatch):
        yield folder / "home"


def run(*shares: str) -> None:
    """Map shares at the same time."""
    command = [sys.executable, "-m", MODULE, "--split-bytes", "60000", "--shards", "2"]
    with ExitStack() as stack:
        started = []
        for share in shares:
            process = subprocess.Popen(
                [*command, "--output", OUTPUT, "--part", share], stderr=subprocess.PIPE, text=True
            )
            stack.enter_context(process)
            stack.callback(process.kill)
            started.append(process)
        outputs = [process.communicate(timeout=600)[1] for process in started]
    assert [process.returncode for process in started] == [0] * len(shares), outputs


def test_parts_in_a_bucket_make_the_bytes_of_one_run(bucket: Path, tmp_path: Path) -> None:
    options = {"split_bytes": 60_000, "shards": 2}
    run("1/4", "2/4,3/4")
    merge = many_splits(tmp_path, **options, part=parse_part("merge"))
    changes = {**vars(merge), "output": RemotePath(OUTPUT)}
    with pytest.raises(UserError, match=r"splits are not mapped in s3://.*--part 3/3, or run"):
        build(MODULE, type(merge)(**changes))
    run("4/4")
    build(MODULE, type(merge)(**changes))
    build(MODULE, many_splits(tmp_path / "one", **options))
    assert content(bucket / "wudao") == content(tmp_path / "one")
    assert not list((bucket / "wudao").rglob(".work/*"))
