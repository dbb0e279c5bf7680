"""Every call to object storage first fails in a random way, which does not affect results."""

import json
import random
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import fsspec
import pytest
import s3fs

from pipelines.corpus.spec import SAMPLE
from pipelines.job.command import main
from shards.__main__ import main as shards
from shards.storage import address as addresses
from shards.storage import lease
from tests.engines.faulty_proxy import (
    BROKEN,
    BUSY,
    CUT_ANSWER,
    CUT_UPLOAD,
    LOST,
    OTHER_ETAG,
    SILENT,
    SLOW,
    Proxy,
    Request,
    proxied,
)
from tests.engines.s3_server import NEEDED, as_s3, serve_s3
from tests.pipelines.runs import MODULE, content

pytestmark = NEEDED

OFTEN = (BUSY, BROKEN, CUT_ANSWER, CUT_UPLOAD, LOST)
WAYS = {**dict.fromkeys(OFTEN, 5), SLOW: 2, OTHER_ETAG: 2, SILENT: 1}
"""The weight of each fault in the random choice; a silent server takes a second."""


def every_call(seed: int) -> Callable[[Request, int], str]:
    """Return a function that gives every first attempt of a call, and some second ones, a fault."""
    rng = random.Random(seed)
    seen: Counter[tuple[str, str, str]] = Counter()

    def fault(request: Request, number: int) -> str:
        del number
        call = request.method, request.path, request.range
        seen[call] += 1
        if seen[call] > 2 or (seen[call] == 2 and rng.random() < 0.8):
            return ""
        return rng.choices([*WAYS], weights=[*WAYS.values()])[0]

    return fault


@pytest.fixture
def bucket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Proxy, Path]]:
    """A proxy for a server that has the sample in a bucket, and the bucket's folder."""
    with serve_s3(tmp_path / "s3", buckets=("bucket",)) as server, proxied(server) as proxy:
        once = {"read_timeout": 1, "retries": {"total_max_attempts": 1}}
        monkeypatch.setitem(fsspec.config.conf, "s3", {"config_kwargs": once})
        monkeypatch.setattr(addresses, "WAITS", (0.01,) * 6)
        monkeypatch.setattr(lease, "SETTLED_AFTER", 0.1)
        with as_s3(proxy.address, monkeypatch) as system:
            texts = [str(path) for path in sorted(SAMPLE.glob("part-*.json"))[:2]]
            system.put(texts, "bucket/in/")
            yield proxy, tmp_path / "s3" / "bucket"
            proxy.fault = lambda *_: ""


def finished(command: Callable[[list[str]], int], flags: list[str]) -> int:
    """Run a command until it succeeds, and return how often it was refused.

    An input that has the etag of a different object counts as changed, and is refused.
    """
    for refusals in range(12):
        code = command(flags)
        if code == 0:
            return refusals
        assert code == 2
    raise AssertionError(f"{flags} was refused {refusals + 1} times")


THIRD = "s3://bucket/in/part-3.json"


def through_its_life(output: str, bucket: s3fs.S3FileSystem) -> int:
    """Build a dataset, append, remove documents and compact; return how often all was refused."""
    flags = ["--input", "s3://bucket/in", "--tokenizer", f"sentencepiece:{SAMPLE / 'sample.model'}"]
    flags += ["--split-bytes", "60000", "--shards", "2", "--keep-dropped"]
    flags += ["--append", "--output", output]
    refusals = finished(partial(main, MODULE), flags)
    bucket.put(str(sorted(SAMPLE.glob("part-*.json"))[2]), THIRD)
    refusals += finished(partial(main, MODULE), flags)
    records = json.loads(sorted(SAMPLE.glob("part-*.json"))[0].read_bytes())
    name = [word for record in records[:9] for word in ("--id", record["uniqueKey"])]
    name += ["--missing-ok"]
    for words in (["remove", *name, "--reason", "x"], ["compact"], ["prune"], ["verify"]):
        refusals += finished(shards, [words[0], output, *words[1:]])
    bucket.rm(THIRD)
    return refusals


@pytest.mark.nightly
@pytest.mark.parametrize("seed", [0, 1])
def test_faults_on_every_call_change_nothing(
    bucket: tuple[Proxy, Path], tmp_path: Path, seed: int
) -> None:
    proxy, folder = bucket
    direct = s3fs.S3FileSystem(endpoint_url=proxy.upstream, skip_instance_cache=True)
    assert through_its_life(str(tmp_path / "disk"), direct) == 0
    proxy.fault = every_call(seed)
    through_its_life("s3://bucket/out", direct)
    assert content(folder / "out") == content(tmp_path / "disk")
    finished(shards, ["place", "s3://bucket/out", "--to", str(tmp_path / "copy")])
    assert shards(["place", "s3://bucket/out", "--to", str(tmp_path / "copy"), "--check"]) == 0
    assert set(proxy.faults) == set(WAYS)
