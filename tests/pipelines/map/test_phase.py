"""The driver's side of the map, whole runs and runs in parts."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from pipelines.corpus.part import parse_part
from pipelines.run.build import build, map_part
from tests.pipelines.runs import (
    FLAGS,
    MODULE,
    content,
    many_splits,
    page,
    shipped,
    small,
    write_wudao,
)


def options(output: Path, part: str, **changes: Any) -> Any:
    return many_splits(output, part=parse_part(part), **changes)


def command(output: Path, part: str, *flags: str) -> list[str]:
    return [sys.executable, "-m", MODULE, *FLAGS, "--output", str(output), *flags, "--part", part]


@contextmanager
def ended(command: list[str]) -> Iterator["subprocess.Popen[str]"]:
    """A process that has ended after the block, whatever happens."""
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def test_parts_of_other_machines_are_collected_by_hand(tmp_path: Path) -> None:
    """Each machine has a copy of the corpus with other times, and an output of its own."""
    pages = write_wudao(tmp_path / "in" / "part-1.json", map(page, range(12)))
    build(MODULE, small(tmp_path / "one", pages, split_bytes=1000))

    def part(folder: Path, name: str) -> Any:
        shutil.copytree(pages.parent, folder / "in", copy_function=shutil.copyfile)
        given = {"split_bytes": 1000, "part": parse_part(name)}
        return small(folder / "out", folder / "in", **given)

    everything = tmp_path / "all" / "out"
    for number in (1, 2, 3):
        machine = tmp_path / f"machine-{number}"
        map_part(MODULE, part(machine, f"{number}/3"))
        shutil.copytree(machine / "out", everything, dirs_exist_ok=True)
    build(MODULE, part(tmp_path / "all", "merge"))
    assert content(everything) == content(tmp_path / "one")


@pytest.mark.slow
@pytest.mark.parametrize("shares", [["1/1"], ["3/3", "1/3,2/3"], ["1/2", "3/4", "7/8,8/8"]])
def test_parts_make_the_bytes_of_one_run(
    reference: Path, tmp_path: Path, shares: list[str]
) -> None:
    output = tmp_path / "out"
    for share in shares:
        map_part(MODULE, options(output, share))
        assert not (output / "manifest.json").exists()
    build(MODULE, options(output, "merge"))
    assert shipped(output) == shipped(reference)
    assert not (output / ".work").exists()
    map_part(MODULE, options(output, "1/3"))  # it is complete: nothing to do
    assert not (output / ".work").exists()


@pytest.mark.slow
def test_parts_at_the_same_time_make_the_bytes_of_one_run(reference: Path, tmp_path: Path) -> None:
    output = tmp_path / "out"
    with ExitStack() as stack:
        started = [
            stack.enter_context(ended(command(output, part, *flags)))
            for part, flags in (("1/4", ()), ("2/4,3/4", ("--workers", "2")), ("4/4", ()))
        ]
        outputs = [process.communicate(timeout=600)[1] for process in started]
    assert [process.returncode for process in started] == [0, 0, 0], outputs
    assert all("the same command with --part merge" in text for text in outputs)
    assert sum(" 0 splits are not in" in text for text in outputs) >= 1
    build(MODULE, options(output, "merge"))
    assert shipped(output) == shipped(reference)
