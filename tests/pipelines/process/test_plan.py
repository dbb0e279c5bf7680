"""Runs that are divided into parts."""

import shutil
from pathlib import Path
from typing import Any

from pipelines.corpus.part import parse_part
from pipelines.job.build import build, process_part
from tests.pipelines.runs import (
    TEXT,
    content,
    page,
    small_lines,
    write_lines,
)


def test_parts_of_other_machines_are_collected_by_hand(tmp_path: Path) -> None:
    """Each machine has its own output, and a copy of the corpus whose modification times differ."""
    pages = write_lines(tmp_path / "in" / "a.jsonl", map(page, range(12)))
    build(TEXT, small_lines(tmp_path / "one", pages))

    def part(folder: Path, name: str) -> Any:
        shutil.copytree(pages.parent, folder / "in", copy_function=shutil.copyfile)
        return small_lines(folder / "out", folder / "in", part=parse_part(name))

    everything = tmp_path / "all" / "out"
    for number in (1, 2, 3):
        machine = tmp_path / f"machine-{number}"
        process_part(TEXT, part(machine, f"{number}/3"))
        shutil.copytree(machine / "out", everything, dirs_exist_ok=True)
    build(TEXT, part(tmp_path / "all", "merge"))
    assert content(everything) == content(tmp_path / "one")
