"""A dataset grows by generations: what is new is added, and nothing else changes."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipelines.run.append import append
from pipelines.run.build import build
from pipelines.run.ledger import NAME
from shards import Dataset
from shards.manifest import Manifest, read_manifest, write_manifest
from tests.nightly import a_few
from tests.pipelines.privileges import without_privileges
from tests.pipelines.runs import AT, MODULE, content, page, run, small, write_wudao


def write(folder: Path, name: str, *numbers: int) -> Path:
    """A file with a page of its own text for each number, unlike that of any other."""
    return write_wudao(folder / name, [page(number, text(number)) for number in numbers])


def text(number: int) -> str:
    chosen = np.random.default_rng(number).integers(0x4E00, 0x9FA0, 150)
    return "".join(map(chr, chosen.tolist()))


def grown(output: Path, folder: Path, **changes: Any) -> Manifest:
    made = append(MODULE, small(output, folder, append=True, **changes))
    assert made is not None
    return made


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An input of one file."""
    folder = tmp_path / "in"
    write(folder, "part-1.json", *range(20))
    return folder


@pytest.mark.slow
def test_the_bytes_depend_on_the_sets_alone(tmp_path: Path, folder: Path) -> None:
    outputs = [tmp_path / "one", tmp_path / "two"]
    for output, workers in zip(outputs, (0, 2), strict=True):
        grown(output, folder, workers=workers)
    for name, numbers in [("part-3.json", range(30, 40)), ("part-2.json", range(10, 33))]:
        write(folder, name, *numbers)
    for output, workers in zip(outputs, (2, 0), strict=True):
        grown(output, folder, workers=workers)
    assert content(outputs[0]) == content(outputs[1])
    build(MODULE, small(tmp_path / "whole", folder))
    texts, at_once = (
        sorted(document.tolist() for document in Dataset.open(path).documents())
        for path in (outputs[0], tmp_path / "whole")
    )
    assert texts == at_once
    assert len(texts) == 40


def test_what_cannot_be_read_now_is_not_gone(
    tmp_path: Path, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    output = tmp_path / "out"
    write(folder / "below", "part-9.json", 91, 92)
    build(MODULE, small(output, folder))
    write(folder, "part-8.json", 81, 82)
    (folder / "below").chmod(0)
    with without_privileges():
        grown(output, folder, skip_unreadable=True)
    (folder / "below").chmod(0o755)
    assert "is gone" not in caplog.text
    assert grown(output, folder).number == 2
    assert build(MODULE, small(output, folder)).number == 2, "a plain run finds it complete"


def test_other_libraries_are_told_and_recorded(
    tmp_path: Path, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    output = tmp_path / "out"
    first = grown(output, folder)
    write_manifest(output, replace(first, libraries={**first.libraries, "ftfy": "0.1"}))
    write(folder, "part-2.json", 77)
    made = grown(output, folder)
    assert made.libraries["ftfy"] == "0.1"
    assert made.generations[1].libraries == first.libraries
    assert "ftfy was 0.1 and is now" in caplog.text
    write(folder, "part-3.json", 78)
    caplog.clear()
    grown(output, folder)
    assert "ftfy" not in caplog.text, "it is told once"


KILLS = [
    r"/ledger\.json$",
    r"\.work/dedup/.*\.json$",
    r"g0002-.*/00000\.bin$",
    r"inputs\.json$",
    r"/manifest\.json$",
    r"rmtree .*\.work$",
]


@pytest.mark.slow
@pytest.mark.parametrize("pattern", a_few(KILLS, of_each=3))
def test_killed_anywhere_the_same_command_makes_the_same_bytes(
    tmp_path: Path, folder: Path, pattern: str
) -> None:
    outputs = [tmp_path / "whole", tmp_path / "killed"]
    for output in outputs:
        grown(output, folder)
    write(folder, "part-2.json", *range(15, 40))
    grown(outputs[0], folder)
    flags = small_flags(outputs[1], folder)
    killed = run(*flags, script=[AT, pattern, 1, "kill -9 0"])
    assert killed.returncode == -9, killed.stderr
    again = run(*flags)
    assert again.returncode == 0, again.stderr
    assert content(outputs[1]) == content(outputs[0])
    assert not (outputs[1] / NAME).exists()


def small_flags(output: Path, *inputs: object, more: Sequence[object] = ()) -> list[object]:
    """The command line of `grown`."""
    options = small(output, *inputs)
    given = [word for path in inputs for word in ("--input", path)]
    return [
        *(*given, "--output", output, "--tokenizer", options.tokenizer),
        *("--languages", "all", "--language-threshold", 0, "--validation", 0, "--shards", 1),
        *("--split-bytes", options.split_bytes, "--append", *more),
    ]


@pytest.mark.slow
def test_the_cut_into_generations_survives_a_kill(tmp_path: Path) -> None:
    inputs = []
    for source, count in (("a", 4), ("b", 2)):
        inputs.append(f"{source}={tmp_path / source}")
        for number in range(count):
            first = 100 * ord(source) + 10 * number
            write(tmp_path / source, f"part-{number}.json", *range(first, first + 12))
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    made = append(MODULE, small(whole, *inputs, append=True, every_tokens=6000))
    assert len(made.generations) > 2
    flags = small_flags(killed, *inputs, more=("--every-tokens", 6000))
    ended = run(*flags, script=[AT, r"g0002-.*/00000\.idx$", 1, "kill -9 0"])
    assert ended.returncode == -9, ended.stderr
    assert len(read_manifest(killed).generations) == 1
    again = run(*flags, "--workers", 2)
    assert again.returncode == 0, again.stderr
    assert content(killed) == content(whole)
