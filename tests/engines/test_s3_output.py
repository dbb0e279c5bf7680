"""Datasets whose input, output, segments and rejects are on a real S3 server.

Guarantee: On S3 the bytes are the same, through dropped connections, 5xx and time-outs, and from
parts that several machines processed.
"""

import itertools
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pipelines.job import build
from pipelines.read.files import match_inputs
from pipelines.wudao import CORPUS
from shards.__main__ import main as shards
from shards.errors import UserError
from shards.storage import address as addresses
from shards.storage.lock import lock_dir
from shards.storage.remote import RemotePath
from tests.engines.faulty_proxy import CUT_ANSWER, CUT_UPLOAD, FAULTS, Proxy, Request, proxied
from tests.engines.s3_server import ACCESS, NEEDED, SECRET, as_s3, serve_s3
from tests.nightly import a_few
from tests.pipelines.runs import content, cut_sample
from tests.python import ROOT, python

pytestmark = NEEDED

FLAGS = (
    *("--split-bytes", "40000", "--shards", "4", "--dedup", "minhash", "--keep-dropped"),
    *("--tokenizer", CORPUS.sample_tokenizer),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("s3")


@pytest.fixture(scope="module")
def proxy(folder: Path) -> Iterator[Proxy]:
    """A proxy that adds no faults, for a server that has the sample in a bucket."""
    with serve_s3(folder, buckets=("bucket",)) as server, proxied(server) as proxy:
        cut_sample(folder / "bucket" / "in", files=11)
        yield proxy


@pytest.fixture
def environment(proxy: Proxy, monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    """The proxy as the S3 of this process and of its commands."""
    soon = '{"config_kwargs": {"read_timeout": 2}}'
    with as_s3(proxy.address, monkeypatch, FSSPEC_S3=soon):
        proxy.requests.clear()
        proxy.faults.clear()
        yield proxy
        proxy.fault = lambda *_: ""


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The hashes of the files of the same dataset, built on a disk from inputs on a disk."""
    disk = tmp_path_factory.mktemp("disk")
    output, source = disk / "ds", cut_sample(disk / "in", files=11)
    done = run(str(output), source=str(source))
    assert done.returncode == 0, done.stderr
    return content(output)


def command(output: str, *flags: str, source: str = "s3://bucket/in") -> list[str]:
    paths = ("--input", source, "--output", output)
    return ["-m", "pipelines.wudao", *paths, *FLAGS, *flags]


def run(output: str, *flags: str, **source: str) -> "subprocess.CompletedProcess[str]":
    return python(*command(output, *flags, **source), at=ROOT)


def stored(folder: Path, name: str) -> dict[str, str]:
    return content(folder / "bucket" / name)


def test_the_dataset_has_the_bytes_of_one_on_disk_and_each_file_is_written_once(
    folder: Path, environment: Proxy, expected: dict[str, str]
) -> None:
    done = run("s3://bucket/plain", "--workers", "2")
    assert done.returncode == 0, done.stderr
    assert stored(folder, "plain") == expected
    made = {path.name for path in (folder / "bucket" / "plain").iterdir()}
    assert {"report.json", "report.html", "inputs.json"} <= made
    assert not (folder / "bucket" / "plain" / ".work").exists()
    assert not any(request.copies for request in environment.requests), "a rename"
    puts = [request.path.split("?")[0] for request in environment.seen("PUT")]
    files = [path for path in puts if "/.lock/" not in path]
    assert len(files) == len(set(files)), "a file was written twice"
    assert files[-1] == "/bucket/plain/manifest.json"
    locks = [request for request in environment.seen("PUT") if "/.lock/alone" in request.path]
    assert locks[0].condition == "*"


@pytest.mark.usefixtures("environment")
def test_credentials_are_neither_printed_nor_written(folder: Path) -> None:
    done = run("s3://bucket/secrets", "--keep-segments")
    assert done.returncode == 0, done.stderr
    written = [path for path in (folder / "bucket" / "secrets").rglob("*") if path.is_file()]
    assert any(".work" in path.parts for path in written)
    output = (done.stdout + done.stderr).encode()
    for secret in (ACCESS, SECRET):
        assert secret.encode() not in output
        assert not [path for path in written if secret.encode() in path.read_bytes()]


@pytest.mark.parametrize("workers", [pytest.param("1", marks=pytest.mark.nightly), "2"])
def test_storage_that_fails_now_and_then_changes_nothing(
    folder: Path, environment: Proxy, expected: dict[str, str], workers: str
) -> None:
    faults = itertools.cycle(FAULTS)
    environment.fault = lambda _, number: next(faults) if number % 60 == 0 else ""
    done = run(f"s3://bucket/faults{workers}", "--workers", workers)
    assert done.returncode == 0, done.stderr
    assert set(environment.faults) == set(FAULTS)
    assert stored(folder, f"faults{workers}") == expected


def _always(request: Request, _: int) -> str:
    if request.method == "PUT" and "/.lock/" not in request.path:
        return CUT_UPLOAD
    return ""


def _every_answer(request: Request, _: int) -> str:
    return CUT_ANSWER if request.method == "GET" and "/map/" in request.path else ""


@pytest.mark.parametrize(
    ("fault", "message"),
    [(_always, r"cannot be written \(.*tried 7 times"), (_every_answer, r"cannot be read \(.*")],
)
def test_storage_that_keeps_failing_is_reported(
    folder: Path,
    environment: Proxy,
    expected: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    fault: Callable[[Request, int], str],
    message: str,
) -> None:
    monkeypatch.setattr(addresses, "WAITS", (0.01,) * 6)
    name = f"down{len(message)}"
    flags = command(f"s3://bucket/{name}")[2:]
    environment.fault = fault
    from pipelines.job.command import completed  # noqa: PLC0415 - commands import it late, too

    options = completed(CORPUS.options.parse(flags, "pipelines.wudao"), CORPUS)
    with pytest.raises(UserError, match=message):
        build.build("pipelines.wudao", options)
    assert not (folder / "bucket" / name / "manifest.json").exists()
    environment.fault = lambda *_: ""
    build.build("pipelines.wudao", options)
    assert stored(folder, name) == expected


@pytest.mark.parametrize(
    "pattern", a_few([r"/merge/.*json", r"/map/.*json", r"/dedup/.*json"], of_each=3)
)
def test_killed_anywhere_the_same_command_continues(
    folder: Path, environment: Proxy, expected: dict[str, str], pattern: str
) -> None:
    name = re.sub(r"\W", "", pattern)
    driver = subprocess.Popen(
        [sys.executable, *command(f"s3://bucket/{name}")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )

    def kill(request: Request, _: int) -> str:
        if request.method == "PUT" and re.search(pattern, request.path):
            seen.append(request)
            if len(seen) == 2:
                os.killpg(driver.pid, signal.SIGKILL)
                return CUT_UPLOAD
        return ""

    seen: list[Request] = []
    environment.fault = kill
    driver.communicate(timeout=120)
    assert driver.returncode == -signal.SIGKILL
    environment.fault = lambda *_: ""
    again = run(f"s3://bucket/{name}")
    assert again.returncode == 0, again.stderr
    assert re.search(r"map: \d+ of \d+ items were finished before", again.stderr)
    if "map" not in pattern:
        assert "map 100 %" not in again.stderr, "a kill after the map must re-run none of it"
    assert stored(folder, name) == expected


@pytest.mark.usefixtures("environment")
def test_parts_that_run_at_the_same_time_give_the_bytes_of_one_run(
    folder: Path, expected: dict[str, str]
) -> None:
    output = "s3://bucket/parts"
    started = [
        subprocess.Popen(
            [sys.executable, *command(output, "--part", share)], stderr=subprocess.PIPE, text=True
        )
        for share in ("1/4", "2/4,3/4")
    ]
    outputs = [process.communicate(timeout=300)[1] for process in started]
    assert [process.returncode for process in started] == [0, 0], outputs
    early = run(output, "--part", "merge")
    assert early.returncode == 2
    message = r"3 of 11 splits are not mapped in s3://bucket/parts.*--part 4/4, or run"
    assert re.search(message, early.stderr), early.stderr
    for share in ("4/4", "merge"):
        done = run(output, "--part", share)
        assert done.returncode == 0, done.stderr
    assert stored(folder, "parts") == expected


@pytest.mark.usefixtures("environment")
def test_a_second_writer_is_refused(folder: Path) -> None:
    with lock_dir(RemotePath("s3://bucket/held")):
        done = run("s3://bucket/held")
    assert done.returncode == 2
    assert re.search(
        rf"s3://bucket/held is being written by process {os.getpid()} on host", done.stderr
    )
    assert not list((folder / "bucket" / "held").rglob("*.json"))


def test_a_dataset_is_placed_on_a_disk_and_an_interrupted_copy_continued(
    folder: Path, environment: Proxy, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("s3://bucket/whole").returncode == 0
    shard = next((folder / "bucket" / "whole").rglob("00003.bin"))
    remote = RemotePath(f"s3://bucket/{shard.relative_to(folder / 'bucket')}")
    good = remote.read()
    remote.write(good[:-2] + bytes([good[-2] ^ 1, good[-1]]))
    place = ["place", "s3://bucket/whole", "--to", str(tmp_path / "disk")]
    assert shards(place) == 2
    assert re.search(r"00003\.bin has .* crc32c .* it is damaged", capsys.readouterr().err)
    copied = {path.name for path in (tmp_path / "disk").rglob("0000?.bin")}
    assert copied == {"00000.bin", "00001.bin", "00002.bin"}
    remote.write(good)
    environment.requests.clear()
    assert shards(place) == 0
    output = capsys.readouterr().out
    assert not re.search(r"00002\.bin", output)
    assert re.search(r"bytes copied to .*, [\d,]+ already there; all checksums match", output)
    read = [request.path for request in environment.seen("GET")]
    assert not [path for path in read if "00002.bin" in path]
    assert shards([*place, "--check"]) == 0


@pytest.mark.usefixtures("environment")
def test_a_folder_of_many_files_is_listed_and_emptied_page_by_page(
    folder: Path, proxy: Proxy
) -> None:
    many = folder / "bucket" / "many"
    many.mkdir()
    for number in range(1100):
        (many / f"{number:04}").write_bytes(b"x" * (1 + number % 7))
    place = RemotePath("s3://bucket/many")
    assert place.files() == {f"{number:04}": 1 + number % 7 for number in range(1100)}
    lists = [request for request in proxy.seen("GET") if "list-type=2" in request.path]
    assert len(lists) == 2
    assert len(match_inputs([str(place)], pattern="*", default_name="many")) == 1100
    place.remove([*place.files()])
    assert place.files() == {}
