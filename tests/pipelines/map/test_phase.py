"""The driver's side of the map, whole runs and runs in parts."""

import shutil
from pathlib import Path
from typing import Any

from pipelines.corpus.part import parse_part
from pipelines.job.build import build, map_part
from tests.pipelines.runs import (
    MODULE,
    content,
    page,
    small,
    write_wudao,
)


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
