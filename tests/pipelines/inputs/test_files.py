import os
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.inputs.files import (
    InputFile,
    Link,
    Split,
    match_inputs,
    open_input,
    open_split,
    seamless,
    split_file,
)
from shards.errors import UserError


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """A folder with part files on two levels and two files that are none."""
    folder = tmp_path / "corpus"
    for name in ("part-2.json", "part-10.json", "sub/part-1a.json", "readme.txt", "parts.json"):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"[]")
    return folder


def match(*specs: str) -> list[tuple[str, str]]:
    files = match_inputs(specs, pattern="part-*.json", default_name="wudao")
    return [(file.source, file.relative) for file in files]


def test_folder_is_searched_with_the_pattern(corpus: Path) -> None:
    names = ["part-10.json", "part-2.json", "sub/part-1a.json"]
    assert match(str(corpus)) == [("wudao", name) for name in names]
    assert match(f"{corpus}/") == match(str(corpus))
    assert match(f"news={corpus}") == [("news", name) for name in names]


def test_several_patterns_find_a_file_once(corpus: Path) -> None:
    patterns = ("part-*.json", "*.txt", "part-2*", "*.zst")
    files = match_inputs([str(corpus)], pattern=patterns, default_name="x")
    names = ["part-10.json", "part-2.json", "readme.txt", "sub/part-1a.json"]
    assert [file.relative for file in files] == names
    with pytest.raises(UserError, match=r"matches '\*.gz' or '\*.zst'; .*corpus holds"):
        match_inputs([str(corpus)], pattern=("*.gz", "*.zst"), default_name="x")


def test_file_is_taken_whatever_its_name(corpus: Path) -> None:
    assert match(str(corpus / "readme.txt")) == [("wudao", "readme.txt")]


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("part-*.json", ["part-10.json", "part-2.json"]),
        ("*/part-*", ["sub/part-1a.json"]),
        ("**/part-*", ["part-10.json", "part-2.json", "sub/part-1a.json"]),
        ("s?b/*", ["sub/part-1a.json"]),
        ("part-[0-9].json", ["part-2.json"]),
        ("*", ["part-10.json", "part-2.json", "parts.json", "readme.txt"]),
    ],
)
def test_glob_is_relative_to_its_fixed_folder(pattern: str, names: list[str], corpus: Path) -> None:
    assert match(f"{corpus}/{pattern}") == [("wudao", name) for name in names]


def test_relative_paths_are_relative_to_the_working_folder(
    corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(corpus)
    assert match("part-2*") == match("part-2.json") == [("wudao", "part-2.json")]
    (file,) = match_inputs(["sub"], pattern="*", default_name="x")
    assert file.path == str(corpus / "sub" / "part-1a.json")
    assert file.bytes == 2
    assert file.mtime_ns == (corpus / "sub" / "part-1a.json").stat().st_mtime_ns


def test_sources_are_sorted_by_name(corpus: Path) -> None:
    assert match(f"b={corpus}/part-2.json", f"a={corpus}/sub") == [
        ("a", "part-1a.json"),
        ("b", "part-2.json"),
    ]


def test_existing_path_with_an_equals_sign_is_a_path(tmp_path: Path) -> None:
    folder = tmp_path / "a=b"
    folder.mkdir()
    (folder / "part-1.json").write_bytes(b"[]")
    assert match(str(folder)) == match(f"{folder}/*") == [("wudao", "part-1.json")]


def test_copies_have_the_same_identity(corpus: Path, tmp_path: Path) -> None:
    before = match(str(corpus))
    corpus.rename(tmp_path / "elsewhere")
    assert match(str(tmp_path / "elsewhere")) == before


@pytest.mark.parametrize(
    ("specs", "message"),
    [
        ([], r"No input was given; pass a folder"),
        (["{}", "{}/sub"], r"2 inputs were given and not all have a name.*news="),
        (["a={}", "a={}/sub"], r"Two inputs are called 'a'"),
        (
            ["a={}", "b={}/sub"],
            r"part-1a.json is given twice, in 'a' as sub/part-1a.json and in 'b'",
        ),
        (["a b={}"], r"The name 'a b' of the input"),
        (["={}"], r"The name '' of the input"),
        (["a="], r"'a' has an empty path"),
        (["nonsense://x/part-1.json"], r"nonsense://x/part-1.json cannot be read"),
        (["hf:owner"], r"hf:owner is no dataset of the Hugging Face hub"),
        (["{}/none"], r"corpus/none does not exist; .*corpus holds part-10.json, part-2.json, pa"),
        (["{}/no/ne"], r"no/ne does not exist; there is no folder .*corpus/no\."),
        (["{}/*.zst"], r"No file matches .*\*.zst; .*corpus holds part-10.json"),
        (["{}/no*/ne*"], r"No file matches .*no\*/ne\*; .*corpus holds part-10.json"),
    ],
)
def test_refusals_name_what_was_wrong(specs: list[str], message: str, corpus: Path) -> None:
    with pytest.raises(UserError, match=message):
        match(*(spec.format(corpus) for spec in specs))


def test_folder_without_matches_says_what_it_holds(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"matches 'part-\*.json'; .* is empty\."):
        match(str(tmp_path))
    for name in "gfedcba":
        (tmp_path / name).touch()
    with pytest.raises(
        UserError, match=r"matches 'part-\*.json'; .* holds a, b, c, d, e and 2 more\."
    ):
        match(str(tmp_path))


def test_unusable_files_are_refused(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, _: path.name != "part-10.json")
    with pytest.raises(UserError, match=r"part-10.json may not be read; check its permissions"):
        match(str(corpus))
    (corpus / "part-2.json").write_bytes(b"")
    with pytest.raises(UserError, match=r"part-2.json is empty \(0 bytes\)"):
        match(str(corpus / "part-2.json"))
    os.mkfifo(corpus / "part-0.json")
    with pytest.raises(UserError, match=r"part-0.json is neither a file nor a folder"):
        match(str(corpus / "part-0.json"))
    odd = os.fsdecode(b"part-\xff.json")
    (corpus / odd).write_bytes(b"[]")
    with pytest.raises(UserError, match=r"is not UTF-8; rename it"):
        match(str(corpus / odd))


def test_link_to_a_file_given_too_is_the_same_file(corpus: Path) -> None:
    (corpus / "part-3.json").symlink_to(corpus / "part-2.json")
    with pytest.raises(UserError, match=r"given twice, in 'wudao' as part-2.json and in"):
        match(str(corpus))


def test_missing_file_is_explained(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"Cannot read the input .*gone: No such file"):
        open_input(str(tmp_path / "gone"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"[]", r"part-2\.json was written again after the run began: it is being changed"),
        (b"[1]", r"part-2\.json has 3 bytes and had 2 when the run began: it is being changed"),
        (None, r"Cannot read the input .*part-2\.json: No such file"),
    ],
)
def test_a_file_that_changed_is_refused(corpus: Path, content: bytes | None, message: str) -> None:
    path = corpus / "part-2.json"
    (file,) = match_inputs([str(path)], pattern="*", default_name="x")
    (split,) = split_file(file, file.bytes)
    with open_split(split) as stream:
        assert stream.read() == b"[]"
    path.unlink()
    if content:
        path.write_bytes(content)
        os.utime(path, ns=(0, file.mtime_ns + 1))
    with pytest.raises(UserError, match=message):
        open_split(split)


# Splits.


def input_file(num_bytes: int) -> InputFile:
    return InputFile(source="s", path="/p", relative="r", bytes=num_bytes, mtime_ns=7, etag="e")


@pytest.mark.parametrize(
    ("num_bytes", "split_bytes", "edges"),
    [
        (1, 100, [0, 1]),
        (100, 100, [0, 100]),
        (149, 100, [0, 149]),  # a tail of 49 joins
        (150, 100, [0, 100, 150]),
        (200, 100, [0, 100, 200]),
        (249, 100, [0, 100, 249]),
        (250, 100, [0, 100, 200, 250]),
        (3, 1, [0, 1, 2, 3]),
        (4, 3, [0, 4]),
        (5, 3, [0, 3, 5]),
    ],
)
def test_splits(num_bytes: int, split_bytes: int, edges: list[int]) -> None:
    splits = split_file(input_file(num_bytes), split_bytes)
    assert [split.start for split in splits] == edges[:-1]
    assert [split.end for split in splits] == edges[1:]
    assert {(split.source, split.path, split.relative) for split in splits} == {("s", "/p", "r")}
    assert {(split.file_bytes, split.mtime_ns) for split in splits} == {(num_bytes, 7)}
    assert {split.etag for split in splits} == {"e"}
    assert [Split.from_json(split.to_json()) for split in splits] == splits


def test_split_size_must_be_positive() -> None:
    with pytest.raises(ValueError, match="at least 1, not 0"):
        split_file(input_file(1), 0)


# The chain. A file of elements at known offsets, seen by readers that may be misled.


@pytest.mark.parametrize(
    ("chain", "expected"),
    [
        ([(10, 1, 10)], True),
        ([(10, 1, 12), (20, 12, 20)], True),
        ([(10, 1, 12), (20, 14, 20)], False),  # a record between them was missed
        ([(10, 1, 14), (20, 12, 20)], False),  # a nested object was taken for a record
        ([(10, 1, 25), (20, None, None), (30, 25, 30)], True),
        ([(10, 1, 15), (20, None, None), (30, 25, 30)], False),  # nobody read from 15 on
        ([(10, 1, 25), (20, 17, 25), (30, 25, 30)], False),
        ([(10, 1, 30), (20, None, None), (30, None, None)], True),
        ([(10, None, None)], False),
        ([(10, None, None), (20, 12, 20)], False),
    ],
)
def test_seamless(chain: Sequence[tuple[int, int | None, int | None]], expected: bool) -> None:
    assert (
        seamless([Link(end=end, first=first, next=stop) for end, first, stop in chain]) is expected
    )


@given(st.data())
def test_seamless_chains_read_everything_once(data: st.DataObject) -> None:
    size = data.draw(st.integers(1, 40))
    starts = sorted(data.draw(st.sets(st.integers(0, size - 1), max_size=8)) | {0})
    seen = sorted(set(starts) | data.draw(st.sets(st.integers(0, size - 1), max_size=2)))
    splits = split_file(input_file(size), data.draw(st.integers(1, 15)))

    def read(split: Split) -> tuple[Link, list[int]]:
        """Start at the first thing that looks like a record, go on from true record to true."""
        first = next((at for at in seen if split.start <= at < split.end), None)
        if first is None:
            return Link(end=split.end, first=None, next=None), []
        true = [at for at in starts if at > first]
        stop = next((at for at in true if at >= split.end), size)
        return Link(end=split.end, first=first, next=stop), [
            first,
            *(at for at in true if at < stop),
        ]

    readings = [read(split) for split in splits]
    if seamless([link for link, _ in readings]):
        assert [at for _, offsets in readings for at in offsets] == starts
    else:
        assert seen != starts
