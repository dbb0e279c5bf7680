"""A dataset grows by generations: new files are added, and nothing else changes."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipelines.job.append import append
from pipelines.job.build import Build, build
from pipelines.read import packs
from shards.__main__ import main
from shards.manifest import Manifest, write_manifest
from tests.pipelines.privileges import without_privileges
from tests.pipelines.runs import MODULE, content, own_text, page, small, write_pages, write_wudao


def grown(output: Path, folder: Path, **changes: Any) -> Manifest:
    made = append(MODULE, small(output, folder, append=True, **changes))
    assert made is not None
    return made


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of an input that has one file."""
    folder = tmp_path / "in"
    write_pages(folder / "part-1.json", *range(20))
    return folder


def test_a_file_that_cannot_be_read_now_is_not_gone(
    tmp_path: Path, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    output = tmp_path / "out"
    write_pages(folder / "below" / "part-9.json", 91, 92)
    build(MODULE, small(output, folder))
    write_pages(folder / "part-8.json", 81, 82)
    (folder / "below").chmod(0)
    with without_privileges():
        grown(output, folder, skip_unreadable=True)
    (folder / "below").chmod(0o755)
    assert "is gone" not in caplog.text
    assert grown(output, folder).number == 2
    assert build(MODULE, small(output, folder)).number == 2, "a plain run finds it complete"


def test_other_library_versions_are_logged_and_recorded(
    tmp_path: Path, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    output = tmp_path / "out"
    first = grown(output, folder)
    write_manifest(output, replace(first, libraries={**first.libraries, "ftfy": "0.1"}))
    write_pages(folder / "part-2.json", 77)
    made = grown(output, folder)
    assert made.libraries["ftfy"] == "0.1"
    assert made.generations[1].libraries == first.libraries
    assert "ftfy was 0.1 and is now" in caplog.text
    write_pages(folder / "part-3.json", 78)
    caplog.clear()
    grown(output, folder)
    assert "ftfy" not in caplog.text, "it is logged once"


@pytest.mark.slow
def test_old_and_new_records_at_a_place_are_recognized_after_compact(tmp_path: Path) -> None:
    # Both inputs have the same order; a third file has a text that is similar to the later one.
    folder, output = tmp_path / "in", tmp_path / "out"
    options = {"dedup": "minhash", "validation": 0.05}
    for pages in ([own_text(1), own_text(2)], [own_text(3), own_text(2)]):
        write_wudao(folder / "part-1.json", [page(n, one) for n, one in enumerate(pages)])
        grown(output, folder, allow_changed=True, **options)
    assert main(["compact", str(output)]) == 0
    write_wudao(folder / "part-2.json", [page(n, f"{own_text(n)}後") for n in (1, 3, 4)])
    made = grown(output, folder, **options)
    assert made.generations[-1].accounting["wudao"]["dropped"] == {"near-duplicate": 2}


def test_generations_of_packed_files_are_those_of_single_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No segments are left after a generation was made."""
    monkeypatch.setattr(Build, "clean_up", lambda _: None)

    def grow_twice(name: str) -> None:
        folder, output = tmp_path / f"{name}-in" / "in", tmp_path / name
        for number in range(12):  # each file has a text that is also in further files
            write_pages(folder / f"part-{number:02}.json", number, 100 + number % 3)
            if number in {6, 11}:
                grown(output, folder, split_bytes=1 << 20)
                assert not [*(output / ".work" / "map").iterdir()]

    grow_twice("packed")
    monkeypatch.setattr(packs, "SMALL_BYTES", 0)
    grow_twice("single")
    assert content(tmp_path / "single") == content(tmp_path / "packed")
