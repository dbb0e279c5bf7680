"""The driver's side of the map, whole runs and runs in parts."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from pipelines.corpus.part import is_share, parse_part
from pipelines.map import resume
from pipelines.run.build import build, map_part
from pipelines.run.command import main
from pipelines.wudao import RECIPE
from shards.errors import UserError
from shards.storage.lock import locked
from tests.pipelines.inline import InlineRunner, PhaseMaker
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

SPLIT_BYTES = 1000


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


def test_every_split_is_mapped_once_and_its_record_comes_back(
    tmp_path: Path, pages: Path, map_phase: PhaseMaker
) -> None:
    runner, again = InlineRunner(), InlineRunner()
    run = small(tmp_path / "out", pages, split_bytes=SPLIT_BYTES)
    records = map_phase(run, runner).map_all()
    assert len(runner.ran) == len(records) > 2
    assert [record.start for record in records] == [n * SPLIT_BYTES for n in range(len(records))]
    segments = [segment for record in records for segment in record.segments]
    assert sum(segment.documents for segment in segments) == 12
    assert map_phase(run, again).map_all() == records
    assert again.ran == []


def test_parts_of_other_machines_are_collected_by_hand(
    tmp_path: Path, pages: Path, map_phase: PhaseMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each machine has a copy of the corpus with other times, and an output of its own."""
    one = map_phase(small(tmp_path / "one", pages, split_bytes=SPLIT_BYTES)).map_all()

    def part(folder: Path, name: str) -> Any:
        shutil.copytree(pages.parent, folder / "in", copy_function=shutil.copyfile)
        return small(folder / "out", folder / "in", split_bytes=SPLIT_BYTES, part=parse_part(name))

    everything = tmp_path / "all" / "out"
    for number in (1, 2, 3):
        machine = tmp_path / f"machine-{number}"
        map_phase(part(machine, f"{number}/3")).map_part()
        shutil.copytree(machine / "out", everything, dirs_exist_ok=True)
    monkeypatch.setattr(resume, "stored_crc32c", None)  # the corpus is not read again
    runner = InlineRunner()
    records = map_phase(part(tmp_path / "all", "merge"), runner).map_all()
    assert runner.ran == []
    assert [record.segments for record in records] == [record.segments for record in one]
    assert (
        content(everything / ".work" / "map").keys() == content(tmp_path / "one/.work/map").keys()
    )


@pytest.mark.parametrize("harm", ["cut", "zeroed", "gone"])
def test_a_file_that_a_copy_left_incomplete_is_found_and_made_again(
    tmp_path: Path, pages: Path, map_phase: PhaseMaker, harm: str
) -> None:
    def phase(part: str) -> Any:
        return map_phase(
            small(tmp_path / "out", pages, split_bytes=SPLIT_BYTES, part=parse_part(part))
        )

    phase("1/1").map_part()
    records = phase("merge").map_all()
    victim, *_ = sorted((tmp_path / "out" / ".work" / "map").glob("*.tokens"))
    whole = victim.read_bytes()
    if harm == "gone":
        victim.unlink()
    else:
        half = len(whole) // 2
        victim.write_bytes(whole[:half] + (bytes(len(whole) - half) if harm == "zeroed" else b""))
    message = rf"^1 of {len(records)} splits are not mapped in .*\.json bytes \d+"
    with pytest.raises(UserError, match=message + r".* \(1 of them have a record that cannot be"):
        phase("merge").map_all()
    phase("1/1").map_part()
    assert victim.read_bytes() == whole
    assert [record.segments for record in phase("merge").map_all()] == [
        record.segments for record in records
    ]


def test_merge_maps_files_of_nested_arrays_again(
    tmp_path: Path, map_phase: PhaseMaker, caplog: pytest.LogCaptureFixture
) -> None:
    comments = [page(100 + number) for number in range(20)]
    records = [{**page(number), "comments": comments} for number in range(2)]
    path = write_wudao(tmp_path / "part-1.json", records)
    (one,) = map_phase(small(tmp_path / "one", path, split_bytes=4000)).map_all()
    caplog.clear()
    with caplog.at_level("INFO", logger="corpusmill"):
        for part in ("1/2", "2/2", "merge"):
            run = small(tmp_path / "parts", path, split_bytes=4000, part=parse_part(part))
            phase = map_phase(run)
            if is_share(run.part):
                phase.map_part()
            else:
                (record,) = phase.map_all()
    assert caplog.text.count("read as one") == 1
    assert record.segments == one.segments


def test_a_part_that_holds_no_split_says_so(
    tmp_path: Path, map_phase: PhaseMaker, caplog: pytest.LogCaptureFixture
) -> None:
    path = write_wudao(tmp_path / "part-1.json", [page(1), page(2)])
    with caplog.at_level("INFO", logger="corpusmill"):
        map_phase(small(tmp_path / "out", path, part=("2/9",))).map_part()
    assert "part 2/9: 0 of 1 splits, 0 documents, are mapped; 1 splits are not in" in caplog.text


@pytest.mark.slow
@pytest.mark.parametrize(
    "shares", [["1/1"], ["3/3", "1/3,2/3"], ["2/4,3/4", "1/4", "4/4"], ["1/2", "3/4", "7/8,8/8"]]
)
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


@pytest.mark.slow
def test_what_is_missing_is_reported_with_the_command_that_makes_it(
    reference: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "out"
    flags = [*FLAGS, "--output", str(output), "--part"]
    assert main(MODULE, [*flags, "merge"]) == 2
    assert "36 of 36 splits are not mapped" in capsys.readouterr().err
    for share in ("1/4", "4/4"):
        assert main(MODULE, [*flags, share]) == 0
    assert main(MODULE, [*flags, "merge"]) == 2
    message = capsys.readouterr().err
    assert f"18 of 36 splits are not mapped in {output}/.work/map: wudao/part-2026010102" in message
    assert "Run the same command with --part 2/4,3/4, or run the parts" in message
    assert main(MODULE, [*flags, "2/4,3/4"]) == 0
    assert main(MODULE, [*flags, "merge"]) == 0
    assert shipped(output) == shipped(reference)


@pytest.mark.slow
def test_a_part_that_was_killed_is_repeated(reference: Path, tmp_path: Path) -> None:
    output = tmp_path / "out"
    with subprocess.Popen(command(output, "2/2"), stderr=subprocess.DEVNULL) as process:
        while process.poll() is None and not list((output / ".work" / "map").glob("[!.]*.json")):
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL, "the part ended before it could be killed"
    map_part(MODULE, options(output, "1/2"))
    with pytest.raises(UserError, match=r"of 36 splits are not mapped"):
        build(MODULE, options(output, "merge"))
    map_part(MODULE, options(output, "2/2"))
    build(MODULE, options(output, "merge"))
    assert shipped(output) == shipped(reference)


def test_parts_share_the_folder_with_each_other_only(
    tmp_path: Path, pages: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "out"
    flags = ["--input", str(pages), "--output", str(output)]
    flags += ["--tokenizer", RECIPE.sample_tokenizer]
    with locked(output, shared=True):
        for part in ([], ["--part", "merge"]):
            assert main(MODULE, [*flags, *part]) == 2
            assert f"is being written by process {os.getpid()}" in capsys.readouterr().err
        assert main(MODULE, [*flags, "--part", "1/9"]) == 0
    with locked(output):
        assert main(MODULE, [*flags, "--part", "1/9"]) == 2
        assert f"is being written by process {os.getpid()}" in capsys.readouterr().err


def test_a_part_leaves_what_others_are_writing(tmp_path: Path, pages: Path) -> None:
    output = tmp_path / "out"
    others = [output / ".work/map/.tmp-1-x.tokens", output / ".work/progress/x.json"]
    for path in others:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    map_part(MODULE, small(output, pages, part=("1/1",)))
    assert len(list((output / ".work" / "map").glob("*.json"))) == 1
    assert all(path.exists() for path in others)
