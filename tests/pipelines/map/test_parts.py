import itertools
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipelines.corpus.part import corpus_fraction, is_share, parse_part
from pipelines.corpus.recipe import SAMPLE
from pipelines.inputs.files import InputFile
from pipelines.inputs.split import Split, split_file
from pipelines.map import parts, resume
from pipelines.replay.__main__ import run as replay
from pipelines.run.build import build, map_part
from pipelines.run.command import main
from shards.errors import UserError
from shards.storage.lock import locked
from tests.pipelines.runs import content, many_splits, page, small, write_wudao

MODULE = "pipelines.wudao"
FLAGS = ["--split-bytes", "12000", "--shards", "8"]


def made(dataset: Path) -> dict[str, str]:
    return {name: each for name, each in content(dataset).items() if not name.startswith(".work")}


def options(output: Path, part: str, **changes: Any) -> Any:
    return many_splits(output, part=parse_part(part), **changes)


def command(output: Path, part: str, *flags: str) -> list[str]:
    given = [*FLAGS, "--output", str(output), *flags]
    return [sys.executable, "-m", MODULE, *given, *(["--part", part] if part else [])]


@contextmanager
def ended(command: list[str]) -> Iterator["subprocess.Popen[str]"]:
    """A process that is gone behind the block, whatever happens."""
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


# --- shares


def corpus(*sizes: int, split_bytes: int = 100) -> dict[InputFile, list[Split]]:
    files = [
        InputFile(source="s", path=f"/{at}", relative=f"{at}.json", bytes=size, mtime_ns=at)
        for at, size in enumerate(sizes)
    ]
    return {file: split_file(file, split_bytes) for file in files}


@pytest.mark.parametrize("num", [1, 2, 3, 5, 7, 64])
def test_shares_cover_the_corpus_once_and_are_runs_of_it(num: int) -> None:
    chains = corpus(1000, 90, 2350, 40)
    every = [split for chain in chains.values() for split in chain]
    found = [parts.chosen(chains, [f"{index}/{num}"]) for index in range(1, num + 1)]
    assert [split for share in found for split in share] == every
    if num < 8:
        sizes = [sum(split.end - split.start for split in share) for share in found]
        assert max(sizes) - min(sizes) <= 200


def test_shares_of_different_numbers_add_up() -> None:
    chains = corpus(1000, 90, 2350, 40)
    every = [split for chain in chains.values() for split in chain]
    some = parts.chosen(chains, ["1/2"])
    assert some + parts.chosen(chains, ["3/4", "8/8", "7/8"]) == every
    assert corpus_fraction(["1/2"]) == 0.5
    assert corpus_fraction(["1/2", "3/4"]) == 0.75
    assert corpus_fraction([]) == corpus_fraction(["merge"]) == corpus_fraction(["1/1", "1/2"]) == 1


def test_rows_of_a_table_count_as_its_bytes() -> None:
    chains = corpus(1000, 1000)
    table, _ = chains
    ends = [0, 3, 10]
    chains[table] = [
        replace(chains[table][0], start=start, end=end) for start, end in itertools.pairwise(ends)
    ]
    assert parts.chosen(chains, ["1/2"]) == chains[table]


def test_missing_splits_are_named_with_the_shares_that_hold_them() -> None:
    chains = corpus(1000, 90, 2350, 40)
    every = [split for chain in chains.values() for split in chain]
    for part in ("3/4", "1/3,2/3", "1/1", "2/2"):
        missing = parts.chosen(chains, part.split(","))
        assert parts.shares_for(chains, missing) == part
    named = parts.shares_for(chains, [every[7]])
    assert every[7] in parts.chosen(chains, named.split(","))
    assert parts.ranges(every[:3]) == "s/0.json bytes 0 to 300"
    assert parts.ranges([every[0], every[2], every[-1]]) == (
        "s/0.json bytes 0 to 100, s/0.json bytes 200 to 300, s/3.json bytes 0 to 40"
    )
    assert parts.ranges(every[:20:2]).endswith(" and 2 more ranges")


# --- runs


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
    assert made(output) == made(reference)
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
        said = [each.communicate(timeout=600)[1] for each in started]
    assert [each.returncode for each in started] == [0, 0, 0], said
    assert all("the same command with --part merge" in text for text in said)
    assert sum(" 0 splits are not in" in text for text in said) >= 1
    build(MODULE, options(output, "merge"))
    assert made(output) == made(reference)


def test_parts_of_other_machines_are_collected_by_hand(
    reference: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each machine has a copy of the corpus with other times, and an output of its own."""
    for at, share in enumerate(["1/3", "2/3", "3/3"]):
        shutil.copytree(SAMPLE, tmp_path / f"corpus{at}", copy_function=shutil.copyfile)
        inputs = (str(tmp_path / f"corpus{at}"),)
        tokenizer = f"sentencepiece:{tmp_path}/corpus{at}/sample.model"
        output = tmp_path / f"out{at}"
        map_part(MODULE, options(output, share, input=inputs, tokenizer=tokenizer))
        shutil.copytree(output / ".work" / "map", tmp_path / "all/.work/map", dirs_exist_ok=True)
    monkeypatch.setattr(resume, "stored_crc32c", None)  # the corpus is not read again
    build(MODULE, options(tmp_path / "all", "merge"))
    assert made(tmp_path / "all") == made(reference)


@pytest.mark.slow
def test_what_is_missing_is_told_with_the_command_that_makes_it(
    reference: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "out"
    flags = [*FLAGS, "--output", str(output), "--part"]
    assert main(MODULE, [*flags, "merge"]) == 2
    assert "36 of 36 splits are not mapped" in capsys.readouterr().err
    for share in ("1/4", "4/4"):
        assert main(MODULE, [*flags, share]) == 0
    assert main(MODULE, [*flags, "merge"]) == 2
    told = capsys.readouterr().err
    assert f"18 of 36 splits are not mapped in {output}/.work/map: wudao/part-2026010102" in told
    assert "Run the same command with --part 2/4,3/4, or repeat" in told
    assert main(MODULE, [*flags, "2/4,3/4"]) == 0
    assert main(MODULE, [*flags, "merge"]) == 0
    assert made(output) == made(reference)


@pytest.mark.parametrize("harm", ["cut", "zeroed", "gone"])
def test_a_file_that_a_copy_left_incomplete_is_found_and_made_again(
    reference: Path, tmp_path: Path, harm: str
) -> None:
    output = tmp_path / "out"
    map_part(MODULE, options(output, "1/1"))
    victim = sorted((output / ".work" / "map").glob("*.tokens"))[7]
    whole = victim.read_bytes()
    if harm == "gone":
        victim.unlink()
    else:
        half = len(whole) // 2
        victim.write_bytes(whole[:half] + (bytes(len(whole) - half) if harm == "zeroed" else b""))
    with pytest.raises(UserError, match=r"^1 of 36 splits are not mapped in .*\.json bytes \d+"):
        build(MODULE, options(output, "merge"))
    map_part(MODULE, options(output, "1/1"))
    assert victim.read_bytes() == whole
    build(MODULE, options(output, "merge"))
    assert made(output) == made(reference)


@pytest.mark.slow
def test_a_part_that_was_killed_is_repeated(reference: Path, tmp_path: Path) -> None:
    output = tmp_path / "out"
    with subprocess.Popen(command(output, "2/2"), stderr=subprocess.DEVNULL) as process:
        while process.poll() is None and not list((output / ".work" / "map").glob("*.json")):
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL, "the part ended before it could be killed"
    map_part(MODULE, options(output, "1/2"))
    with pytest.raises(UserError, match=r"of 36 splits are not mapped"):
        build(MODULE, options(output, "merge"))
    map_part(MODULE, options(output, "2/2"))
    build(MODULE, options(output, "merge"))
    assert made(output) == made(reference)


def test_parts_share_the_folder_and_nothing_else_does(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "out"
    flags = [*FLAGS, "--output", str(output)]
    with locked(output, shared=True):
        for part in ([], ["--part", "merge"]):
            assert main(MODULE, [*flags, *part]) == 2
            assert f"is being written by process {os.getpid()}" in capsys.readouterr().err
        assert main(MODULE, [*flags, "--part", "1/9"]) == 0
    with locked(output):
        assert main(MODULE, [*flags, "--part", "1/9"]) == 2
        assert f"is being written by process {os.getpid()}" in capsys.readouterr().err


def test_a_part_leaves_what_others_are_writing(tmp_path: Path) -> None:
    output = tmp_path / "out"
    others = [output / ".work/map/.tmp-1-x.tokens", output / ".work/progress/x.json"]
    for path in others:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    map_part(MODULE, options(output, "1/9"))
    assert all(path.exists() for path in others)


def test_the_end_maps_files_of_nested_arrays_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    records = [
        {**page(n), "comments": [page(1000 * n + m) for m in range(1, 30)]} for n in range(1, 9)
    ]
    path = write_wudao(tmp_path / "part-1.json", records)
    build(MODULE, small(tmp_path / "one", path, split_bytes=3000))
    caplog.clear()
    with caplog.at_level("INFO", logger="corpusmill"):
        for part in (("1/2",), ("2/2",), ("merge",)):
            step = map_part if is_share(part) else build
            step(MODULE, small(tmp_path / "parts", path, split_bytes=3000, part=part))
    assert caplog.text.count("read as one") == 1
    assert made(tmp_path / "parts") == made(tmp_path / "one")


def test_a_part_that_holds_no_split_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = write_wudao(tmp_path / "part-1.json", [page(1), page(2)])
    with caplog.at_level("INFO", logger="corpusmill"):
        map_part(MODULE, small(tmp_path / "out", path, part=("2/9",)))
    assert "part 2/9: 0 of 1 splits, 0 documents, are mapped; 1 splits are not in" in caplog.text


def test_replay_knows_no_parts(reference: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="replay does its work in one run: leave --part out"):
        replay([str(reference), "--output", str(tmp_path / "out"), "--part", "1/2"])
