"""Watches on Prism: files arrive, processes are killed, every file is in one generation."""

import json
import signal
from collections.abc import Sequence
from pathlib import Path

import psutil
import pytest

from tests.engines.conftest import PRISM
from tests.engines.processes import guarded
from tests.engines.watching import (
    arrive,
    arriving,
    check_as_appended,
    check_once,
    committed,
    end,
    generations,
    map_workers,
    says,
    wait_for,
    watching,
)

pytestmark = [pytest.mark.engine, pytest.mark.slow]


@pytest.fixture
def flags() -> Sequence[object]:
    if not PRISM.exists():
        pytest.skip(f"{PRISM} is missing: run make engines")
    return ["--prism_location", PRISM, "--every", "4s", "--settle", "1s", "--workers", "1"]


def test_files_that_arrive_become_generations_as_append_makes_them(
    flags: Sequence[object], tmp_path: Path
) -> None:
    inbox, output = tmp_path / "in", tmp_path / "out"
    with watching(inbox, output, flags) as run, arriving(inbox, seconds=0.4):
        wait_for(run, lambda: generations(output) >= 2)
        said = end(run, number=signal.SIGTERM)
    for path in inbox.glob("*.tmp"):
        path.unlink()
    manifest = read_taken(output)
    for path in inbox.glob("*.json"):
        if path.name not in manifest:
            path.unlink()  # it came after the end
    assert "the watch has ended" in said
    made = check_as_appended(run, inbox, tmp_path)
    assert len(made.generations) >= 2
    report = json.loads((output / "report.json").read_bytes())["generations"]
    assert [generation["number"] for generation in report] == [*range(1, len(report) + 1)]
    assert all(0 < g["lag"]["median"] <= g["lag"]["worst"] for g in report)
    assert not (output / ".work").exists()


def read_taken(output: Path) -> set[str]:
    return {file["path"] for file in json.loads((output / "inputs.json").read_bytes())}


def test_a_killed_driver_leaves_nothing_running_and_the_next_one_goes_on(
    flags: Sequence[object], tmp_path: Path
) -> None:
    inbox, output = tmp_path / "in", tmp_path / "out"
    with watching(inbox, output, flags, log="-first") as run:
        for number in range(10):
            arrive(inbox, number)
        wait_for(run, says(run, "generation of"))
        driver = guarded(run.process)
        below = driver.children(recursive=True)
        assert any(process.name() == "prism" for process in below)
        driver.kill()
        assert psutil.wait_procs(below, timeout=20)[1] == []
    with watching(inbox, output, flags) as again:
        for number in range(10, 20):
            arrive(inbox, number)
        wait_for(again, lambda: committed(output) == 20)
        end(again, number=signal.SIGINT)
    check_as_appended(again, inbox, tmp_path)


def test_killed_workers_and_a_killed_prism_cost_nothing(
    flags: Sequence[object], tmp_path: Path
) -> None:
    inbox, output = tmp_path / "in", tmp_path / "out"
    with watching(inbox, output, flags) as run:
        for number in range(4):
            arrive(inbox, number)
        wait_for(run, says(run, " runs ("))
        wait_for(run, lambda: bool(map_workers(run)))
        map_workers(run)[0].kill()
        wait_for(run, lambda: generations(output) >= 1)
        children = guarded(run.process).children(recursive=True)
        (prism,) = [process for process in children if process.name() == "prism"]
        prism.kill()
        for number in range(4, 8):
            arrive(inbox, number)
        wait_for(run, says(run, "it is submitted again"))
        wait_for(run, lambda: committed(output) == 8)
        end(run, number=signal.SIGTERM)
    check_as_appended(run, inbox, tmp_path)


def test_until_ends_a_watch_and_what_cannot_be_mapped_holds_up_nothing(
    flags: Sequence[object], tmp_path: Path
) -> None:
    inbox, output = tmp_path / "in", tmp_path / "out"
    arrive(inbox, 0)
    (inbox / "part-bad.json").write_text("this is no JSON at all")
    (inbox / "part-half.json.part").write_text("[")
    (inbox / ".part-hidden.json").write_text("[")
    with watching(inbox, output, [*flags, "--until", "12s"]) as run:
        said = run.finish(seconds=80)
    assert said.count("part-bad.json failed and is tried again later") == 1
    (inbox / "part-bad.json").unlink()
    (inbox / ".part-hidden.json").unlink()
    check_once(run, inbox)


def test_a_second_watch_is_refused_with_the_first_ones_process(
    flags: Sequence[object], tmp_path: Path
) -> None:
    inbox, output = tmp_path / "in", tmp_path / "out"
    with watching(inbox, output, flags) as run:
        wait_for(run, says(run, "watching"))
        with watching(inbox, output, flags, log="-second") as second:
            assert second.process.wait(timeout=60) == 2
        said = second.log.read_text()
        assert f"is being written by process {guarded(run.process).pid} on host" in said
