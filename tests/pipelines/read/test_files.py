"""Inputs that have one or several paths, and the log lines about the inputs' files."""

from pathlib import Path

import pytest

from pipelines.read.files import list_inputs, match_inputs

SERIES = [f"x-{number:05}-of-00004.jsonl" for number in range(4)]


def write(folder: Path, *names: str) -> Path:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"[]")
    return folder


def names_of(*specs: str) -> list[tuple[str, str]]:
    listing = list_inputs(specs, pattern="*.jsonl", default_name="text")
    return [file.name for file in listing.files]


def test_an_existing_path_may_contain_an_equals_sign(tmp_path: Path) -> None:
    folder = write(tmp_path / "a=b", "part-1.json")
    for spec in (str(folder), f"{folder}/*", f"file://{folder}"):
        (file,) = match_inputs([spec], pattern="part-*.json", default_name="wudao")
        assert (file.source, file.relative) == ("wudao", "part-1.json")


def test_paths_without_names_are_one_input(tmp_path: Path) -> None:
    root = write(tmp_path / "in", "a.jsonl", "b.jsonl", "x/c.jsonl", "y/z/d.jsonl", "no.md")
    every = names_of(str(root))
    assert names_of(f"{root}/*.jsonl") == names_of(f"{root}/a.jsonl", f"{root}/b.jsonl")
    assert names_of(f"{root}/a.jsonl", f"{root}/x", f"{root}/y", f"{root}/b.jsonl") == every
    assert names_of(f"{root}/x", f"{root}/y/*/*") == [
        ("text", "x/c.jsonl"),
        ("text", "y/z/d.jsonl"),
    ]
    assert names_of(f"a={root}/x", f"b={root}/y/z") == [("a", "c.jsonl"), ("b", "d.jsonl")]


@pytest.mark.parametrize(
    ("names", "lines"),
    [
        (SERIES, []),
        ([name.replace("00000", "00004") for name in SERIES], []),
        (SERIES[1:3], ["Numbered files are missing: 0, 3 of the series /x-00001-of-00004.jsonl."]),
        (["x_1_of_2.jsonl", "x_2_of_2.jsonl.gz"], []),
        (["x-5-of-3.jsonl", "one-of-2.jsonl", "2-of-.jsonl"], []),
        (
            [f"a/{SERIES[0]}", f"b/{SERIES[3]}"],
            [
                "Numbered files are missing: 1, 2, 3 of the series /a/x-00000-of-00004.jsonl; "
                "0, 1, 2 of the series /b/x-00003-of-00004.jsonl."
            ],
        ),
        (
            ["x-00-of-99.jsonl"],
            [
                f"Numbered files are missing: {', '.join(map(str, range(1, 21)))} and 78 more of "
                "the series /x-00-of-99.jsonl."
            ],
        ),
        (
            ["a.jsonl", "a.JSONL.xz", "a.b.jsonl", "s/a.jsonl", "x_00", "x_01"],
            [
                "Files that are probably copies are all read: /a.JSONL.xz and a.jsonl. Remove the "
                "copies, unless the files have different texts."
            ],
        ),
    ],
)
def test_missing_files_and_copies_are_named(
    names: list[str], lines: list[str], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write(tmp_path, *names)
    list_inputs([str(tmp_path)], pattern="*", default_name="text").log_remarks()
    assert [line.replace(str(tmp_path), "") for line in caplog.messages] == lines


def test_a_single_file_is_not_an_incomplete_series(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write(tmp_path, *SERIES[:2])
    list_inputs([f"{tmp_path}/{SERIES[0]}"], pattern="*", default_name="text").log_remarks()
    assert not caplog.messages
    both = [f"{tmp_path}/{name}" for name in SERIES[:2]]
    list_inputs(both, pattern="*", default_name="text").log_remarks()
    assert "missing: 2, 3 of" in caplog.text
