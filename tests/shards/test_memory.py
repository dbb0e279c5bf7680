"""Commands under `ulimit -v`: they work, or say in a paragraph that there is no room."""

import errno
import re
import resource
import subprocess
import sys
from contextlib import nullcontext
from functools import cache
from pathlib import Path

import pyarrow as pa
import pytest

from shards import memory
from shards.memory import check_room, is_lack_of_memory
from shards.storage.disk import explain

WAIT = 300
"""Seconds after which a command hangs."""


@cache
def start_bytes() -> int:
    """Return the address space of an interpreter that has imported nothing."""
    status = "print(open('/proc/self/status').read())"
    done = subprocess.run([sys.executable, "-c", status], capture_output=True, check=True)
    found = re.search(rb"VmPeak:\s+(\d+) kB", done.stdout)
    assert found
    return int(found[1]) << 10


def run_limited(mb: int, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a module with so much more address space than an interpreter takes."""
    limit = start_bytes() + (mb << 20)
    return subprocess.run(
        [sys.executable, "-m", *command],
        capture_output=True,
        text=True,
        check=False,
        timeout=WAIT,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
    )


def check_told(done: subprocess.CompletedProcess[str], program: str) -> None:
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    assert "OpenBLAS" not in done.stderr
    assert done.stderr.splitlines()[-1].startswith(f"{program}: ")


@pytest.mark.parametrize("mb", [10, 50])
@pytest.mark.parametrize("command", ["shards", "pipelines.wudao", "trainer.train"])
def test_no_room_to_start(command: str, mb: int, tmp_path: Path) -> None:
    done = run_limited(mb, command, str(tmp_path))
    check_told(done, command)
    (line,) = done.stderr.splitlines()
    assert re.search(r"no room to start: a limit of \d+ MB .*\(ulimit -v\).* Raise the limit", line)


@pytest.mark.slow
@pytest.mark.parametrize("mb", [100, 200, 400])
@pytest.mark.parametrize("workers", [[], ["--workers", "2"]])
def test_no_room_for_a_corpus(mb: int, workers: list[str], tmp_path: Path) -> None:
    done = run_limited(mb, "pipelines.wudao", "--output", str(tmp_path / "out"), *workers)
    check_told(done, "pipelines.wudao")
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
@pytest.mark.parametrize("mb", [600, 700, 900])
@pytest.mark.parametrize("workers", [[], ["--workers", "2"]])
def test_little_room_for_a_corpus(mb: int, workers: list[str], tmp_path: Path) -> None:
    command = ["pipelines.wudao", "--output", str(tmp_path / "out"), *workers]
    done = run_limited(mb, *command)
    if done.returncode:
        check_told(done, "pipelines.wudao")
        again = subprocess.run([sys.executable, "-m", *command], capture_output=True, check=False)
        assert again.returncode == 0
    seen = run_limited(mb, "shards", "verify", str(tmp_path / "out"))
    assert seen.returncode == 0, seen.stderr


@pytest.mark.slow
@pytest.mark.parametrize("mb", [100, 200, 400, 1000, 3000])
def test_no_room_to_train(mb: int, tmp_path: Path) -> None:
    check_told(run_limited(mb, "trainer.train", "--data", str(tmp_path)), "trainer.train")


@pytest.mark.parametrize(
    ("argv", "words", "limit", "ends"),
    [
        ("-m", ["-um", "shards", "verify"], 1 << 33, False),
        ("-m", ["-um", "shards", "verify"], 1 << 20, True),
        ("-m", ["-mshards"], 1 << 20, True),
        ("-m", ["-m", "theirs.shards"], 1 << 20, False),
        ("-c", ["-c", "import shards"], 1 << 20, False),
        ("-m", ["-m", "shards"], resource.RLIM_INFINITY, False),
    ],
)
def test_only_commands_under_a_limit_are_asked(
    argv: str, words: list[str], limit: int, ends: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", [argv])
    monkeypatch.setattr(sys, "orig_argv", ["python", *words])
    monkeypatch.setattr(resource, "getrlimit", lambda _: (limit, resource.RLIM_INFINITY))
    # What this process has imported already needs no more room.
    monkeypatch.setattr(memory, "_fits", lambda _, limit, spare: limit > spare)
    with pytest.raises(SystemExit, match="2") if ends else nullcontext():
        check_room()


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (MemoryError(), True),
        (pa.ArrowMemoryError("malloc of size 64 failed"), True),
        (OSError(errno.ENOMEM, "no"), True),
        (OSError("Memory mapping file failed: Cannot allocate memory"), True),
        (ImportError("x.so: failed to map segment from shared object"), True),
        (RuntimeError("can't start new thread"), True),
        (OSError(errno.EIO, "no"), False),
        (ImportError("No module named x"), False),
        (ValueError("Cannot allocate memory"), False),
    ],
    ids=repr,
)
def test_errors_for_lack_of_memory(error: Exception, expected: bool) -> None:
    assert is_lack_of_memory(error) is expected


def test_a_file_that_cannot_be_mapped() -> None:
    error = OSError("Memory mapping file failed: Cannot allocate memory")
    told = "/x: Cannot allocate memory: there is not enough memory for it"
    assert str(explain(error, Path("/x"))).startswith(told)
