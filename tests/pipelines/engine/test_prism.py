"""Where a watch runs: which engines are refused, and how Prism is found and ended."""

import sys
import time
from pathlib import Path

import psutil
import pytest

from pipelines.engine import prism
from pipelines.engine.prism import Engine, with_stream_flags
from shards.errors import UserError

# It listens on the port that it is told, as Prism does.
PROGRAM = """#!{python}
import socket, sys, time
port = int(sys.argv[sys.argv.index("--job_port") + 1])
with socket.create_server(("localhost", port)):
    time.sleep(600)
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "bin" / "prism"
    path.parent.mkdir()
    path.write_text(PROGRAM.format(python=sys.executable))
    path.chmod(0o755)
    return path


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("GOBIN", raising=False)


@pytest.mark.usefixtures("nowhere")
def test_without_prism_the_command_says_how_to_get_it() -> None:
    with pytest.raises(UserError, match=r"^--watch needs an engine that streams.*go install") as e:
        Engine([])
    assert "--prism_location" in str(e.value)


@pytest.mark.usefixtures("nowhere")
@pytest.mark.parametrize("place", ["path", "gobin", "home"])
def test_prism_is_found_where_go_puts_it(
    program: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, place: str
) -> None:
    if place == "path":
        monkeypatch.setenv("PATH", str(program.parent))
    elif place == "gobin":
        monkeypatch.setenv("GOBIN", str(program.parent))
    else:
        target = tmp_path / "home" / "go" / "bin"
        target.mkdir(parents=True)
        program.rename(target / "prism")
    assert Engine([]).own


def test_prism_is_started_once_started_again_if_it_ended_and_ends_with_the_block(
    program: Path,
) -> None:
    flags = [f"--prism_location={program}"]
    with Engine(flags) as engine:
        assert engine.pid == 0
        first = engine.flags()
        assert "--runner=PrismRunner" in first
        assert not any("prism_location" in flag for flag in first)
        assert engine.flags() == first
        guard = psutil.Process(engine.pid)
        (child,) = guard.children()
        child.kill()
        while child.status() != psutil.STATUS_ZOMBIE:  # its guard waits for us
            time.sleep(0.01)
        assert engine.flags() != first
        assert engine.page.startswith("http://localhost:")
        (again,) = psutil.Process(engine.pid).children()
    assert psutil.wait_procs([guard, again], timeout=10)[1] == []


def test_prism_that_does_not_listen_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "prism"
    path.write_text("#!/bin/sh\nexit 1\n")
    path.chmod(0o755)
    monkeypatch.setattr(prism, "_START_SECONDS", 0.2)
    with (
        Engine([f"--prism_location={path}"]) as engine,
        pytest.raises(UserError, match=r"does not listen on its port \d+ after 0 s"),
    ):
        engine.flags()


def test_an_engine_that_does_not_answer_is_refused() -> None:
    with pytest.raises(UserError, match=r"--flink_master localhost:1 does not answer"):
        Engine(["--runner=FlinkRunner", "--flink_master=localhost:1"])


def test_sources_of_flink_may_end_and_those_of_others_are_left_alone() -> None:
    assert with_stream_flags(["--runner=FlinkRunner"])[-1] == "--shutdown_sources_after_idle_ms=0"
    added = with_stream_flags(["--runner=FlinkRunner", "--parallelism=3"])[2:]
    assert added == ["--shutdown_sources_after_idle_ms=0", "--max_parallelism=6"]
    own = ["--runner=FlinkRunner", "--shutdown_sources_after_idle_ms=9"]
    assert with_stream_flags(own) == own
    assert with_stream_flags(["--runner=DataflowRunner"]) == ["--runner=DataflowRunner"]
