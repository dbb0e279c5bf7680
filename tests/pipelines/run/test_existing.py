import dataclasses
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from fsspec.implementations.memory import MemoryFileSystem

from pipelines.inputs.sources import InputFile, Split, match_inputs, split_file
from pipelines.map.mapper import MapTask, SplitRecord
from pipelines.readers.reading import Reading
from pipelines.run import existing
from pipelines.segments.segment import Segment
from shards.errors import DamageError, UserError
from shards.manifest import Generation, InputEntry, Manifest, ShardEntry, TableEntry, TokenizerEntry
from shards.records import sealed
from shards.storage.files import FileEntry, crc32c_of, write_json

CONTENT = bytes(range(256)) * 100
SPLIT_BYTES = 10_000
LEFT = {"tokens": b"1234", "documents": b"", "rejects": b"a rejected record"}
FILES = {name: FileEntry(bytes=len(raw), crc32c=crc32c_of(raw)) for name, raw in LEFT.items()}
READING = Reading(format="json", text_fields=("text",))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "in" / "a.json"
    path.parent.mkdir()
    path.write_bytes(CONTENT)
    return path


def matched(file: Path) -> InputFile:
    (found,) = match_inputs([str(file)], pattern="*", default_name="s")
    return found


def splits(file: Path) -> list[Split]:
    return split_file(matched(file), SPLIT_BYTES)


def record(split: Split, *, stems: Sequence[str] = (), **changes: Any) -> SplitRecord:
    fields: dict[str, Any] = {
        "crc32c": crc32c_of(CONTENT[split.start : split.end]),
        "mtime_ns": split.mtime_ns,
        "etag": split.etag,
        "versions": {"ftfy": "6.3"},
        "segments": tuple(
            Segment(
                stem=stem,
                documents=1,
                tokens=1,
                longest=1,
                rejects=0,
                fanned_out=0,
                tallies=(),
                files=FILES,
            )
            for stem in stems
        ),
        **changes,
    }
    return SplitRecord(
        source=split.source,
        relative=split.relative,
        start=split.start,
        end=split.end,
        file_bytes=split.file_bytes,
        first=0,
        next=1,
        unsampled=0,
        seconds=0.0,
        cpu_seconds={},
        **fields,
    )


def leave(folder: Path, name: str, left: SplitRecord) -> None:
    write_json(folder / f"{name}.json", sealed(left))
    for segment in left.segments:
        for suffix, content in LEFT.items():
            (folder / f"{segment.stem}.{suffix}").write_bytes(content)


def touch(path: Path) -> None:
    """Give a file another time."""
    before = path.stat().st_mtime_ns
    os.utime(path, ns=(before + 10**9, before + 10**9))


@pytest.mark.parametrize("at", [0, 1, 2])
def test_a_finished_split_is_used_while_its_bytes_are_the_same(
    tmp_path: Path, file: Path, at: int
) -> None:
    task = MapTask(name="t", split=splits(file)[at])
    assert not existing.usable(task, tmp_path, reading=READING)
    leave(tmp_path, "t", record(task.split, stems=["t-0000", "t-0001"]))
    assert existing.usable(task, tmp_path, reading=READING)
    touch(file)
    later = MapTask(name="t", split=splits(file)[at])
    assert later.split.mtime_ns != task.split.mtime_ns
    assert existing.usable(later, tmp_path, reading=READING)
    gone = MapTask(name="t", split=dataclasses.replace(task.split, path="/nowhere", mtime_ns=7))
    assert existing.usable(gone, tmp_path, reading=None)
    changed = bytearray(CONTENT)
    changed[task.split.end - 1] ^= 1
    file.write_bytes(changed)
    touch(file)
    assert not existing.usable(MapTask(name="t", split=splits(file)[at]), tmp_path, reading=READING)


@pytest.fixture
def remote() -> Iterator[InputFile]:
    """The same file behind a URL: it has an etag, and no time."""
    system = MemoryFileSystem()
    system.pipe("/a.json", CONTENT)
    (found,) = match_inputs(["memory://a.json"], pattern="*", default_name="s")
    assert found.etag
    yield found
    system.store.clear()


@pytest.mark.parametrize(
    ("etag", "crc32c", "used"),
    [
        (None, 0, True),  # the etag of now: nothing is read
        ("other", 0, False),
        ("other", crc32c_of(CONTENT[:SPLIT_BYTES]), True),
        ("", 0, False),
    ],
)
def test_a_file_behind_a_url_is_known_by_its_etag(
    tmp_path: Path, remote: InputFile, etag: str | None, crc32c: int, used: bool
) -> None:
    split = split_file(remote, SPLIT_BYTES)[0]
    before = split if etag is None else dataclasses.replace(split, etag=etag)
    leave(tmp_path, "t", record(before, crc32c=crc32c))
    assert existing.usable(MapTask(name="t", split=split), tmp_path, reading=READING) is used


def test_bytes_outside_a_split_are_no_concern_of_it(tmp_path: Path, file: Path) -> None:
    first, second, *_ = splits(file)
    for name, split in (("one", first), ("two", second)):
        leave(tmp_path, name, record(split))
    changed = bytearray(CONTENT)
    changed[second.start] ^= 1
    file.write_bytes(changed)
    touch(file)
    first, second, *_ = splits(file)
    assert existing.usable(MapTask(name="one", split=first), tmp_path, reading=READING)
    assert not existing.usable(MapTask(name="two", split=second), tmp_path, reading=READING)


@pytest.mark.parametrize("suffix", LEFT)
@pytest.mark.parametrize("content", [None, b"123", b"12345", b"1334", b"a rejected recorD"])
def test_a_split_whose_segments_are_gone_or_changed_is_not_finished(
    tmp_path: Path,
    file: Path,
    caplog: pytest.LogCaptureFixture,
    suffix: str,
    content: bytes | None,
) -> None:
    task = MapTask(name="t", split=splits(file)[0])
    leave(tmp_path, "t", record(task.split, stems=["t-0000", "t-0001"]))
    victim = tmp_path / f"t-0001.{suffix}"
    if content is None:
        victim.unlink()
    else:
        victim.write_bytes(content)
    assert not existing.usable(task, tmp_path, reading=READING)
    assert f"{victim} is missing or was changed after it was written" in caplog.text


def test_behind_a_url_one_listing_tells_whether_segments_are_there(
    tmp_path: Path, file: Path
) -> None:
    task = MapTask(name="t", split=splits(file)[0])
    leave(tmp_path, "t", record(task.split, stems=["t-0000"]))
    there = {path.name: path.stat().st_size for path in tmp_path.glob("t*")}
    assert len(there) == 4
    for path in tmp_path.glob("t-*"):
        path.unlink()  # they are not asked for
    assert existing.usable(task, tmp_path, reading=READING, there=there)
    for name in there:
        cut = {**there, name: 3} if name != "t.json" else {}
        assert not existing.usable(task, tmp_path, reading=READING, there=cut)


def test_poison_that_was_left_out_is_for_those_who_do_so(tmp_path: Path, file: Path) -> None:
    task = MapTask(name="t", split=splits(file)[0])
    leave(tmp_path, "t", record(task.split, poison=((3, 9),)))
    assert not existing.usable(task, tmp_path, reading=READING)
    assert existing.usable(task, tmp_path, reading=READING, skip_poison=True)


def test_a_record_comes_back_as_it_was_left(tmp_path: Path, file: Path) -> None:
    left = record(splits(file)[1], stems=["x"])
    leave(tmp_path, "t", left)
    assert existing.read_record(SplitRecord, tmp_path / "t.json") == left
    assert existing.finished(SplitRecord, tmp_path / "t.json") == left
    raw = (tmp_path / "t.json").read_text()
    (tmp_path / "t.json").write_text(raw.replace('"unsampled": 0', '"unsampled": 1'))
    assert existing.finished(SplitRecord, tmp_path / "t.json") is None
    assert existing.finished(SplitRecord, tmp_path / "none.json") is None


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{}", r"t\.json\.\w+ is missing: delete this file and run the command again$"),
        ("[]", r"t\.json is \[\], not of type dict: delete this file"),
        ("{", r"t\.json holds no valid JSON"),
        ("changed", r"t\.json was changed after it was written: delete this file"),
    ],
)
def test_a_record_that_is_none_is_told(
    tmp_path: Path, file: Path, content: str, message: str
) -> None:
    path = tmp_path / "t.json"
    if content == "changed":
        (split, *_) = splits(file)
        leave(tmp_path, "t", record(split))
        content = path.read_text().replace('"start": 0', '"start": 1')
    path.write_text(content)
    with pytest.raises(DamageError, match=message):
        existing.read_record(SplitRecord, path)


def test_changed_versions_are_told_with_what_they_cost(tmp_path: Path, file: Path) -> None:
    chain = splits(file)
    for at, split in enumerate(chain):
        leave(tmp_path, f"old{at}", record(split, stems=[f"{at}a", f"{at}b"]))
    tasks = [MapTask(name=f"new{at}", split=split) for at, split in enumerate(chain[:2])]
    now = {"ftfy": "6.4", "unicode": "15"}
    assert existing.changed_versions(tasks, tmp_path, now, known=tasks) == {
        "ftfy (6.3, now 6.4)": 4,
        "unicode (None, now 15)": 4,
    }


def test_nothing_is_told_where_nothing_changed(tmp_path: Path, file: Path) -> None:
    chain = splits(file)
    leave(tmp_path, "old", record(chain[0], stems=["a"]))
    old = [MapTask(name="old", split=chain[0])]
    same, other = ([MapTask(name="n", split=split)] for split in chain[:2])
    for todo, known, version in (
        ([], [], "9"),
        (other, other, "9"),
        (same, same, "6.3"),
        (same, [*same, *old], "9"),
    ):
        now = {"ftfy": version}
        assert existing.changed_versions(todo, tmp_path, now, known=known) == {}


def test_leftovers_of_killed_attempts_go_and_nothing_else(tmp_path: Path) -> None:
    stay = ["manifest.json", "g/s/00000.bin", ".work/map/t.json", ".work/map/t.documents"]
    gone = [".tmp-1-manifest.json", "g/s/.tmp-2-00000.bin", ".work/map/.tmp-3-t.documents"]
    gone += [".work/progress/1.json", ".work/progress/2.tmp"]
    for name in (*stay, *gone):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    existing.remove_leftovers(tmp_path)
    left = [p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*") if p.is_file()]
    assert sorted(left) == sorted(stay)


def manifest(options: dict[str, Any], *inputs: InputEntry) -> Manifest:
    table = TableEntry(path="v", rows=1, bytes=1, crc32c=1)
    generation = Generation(
        number=1,
        name="g",
        fingerprint="f",
        inputs=inputs,
        sources={},
        audit=(),
        signatures=(),
        rejects=(),
        accounting={},
    )
    tokenizer = TokenizerEntry(
        spec="s", name="n", sha256="0", pieces=1, vocabulary_size=1, dtype="uint16", special={}
    )
    return Manifest(
        number=1,
        lineage="l",
        corpus="c",
        options=options,
        tokenizer=tokenizer,
        vocabulary=table,
        libraries={},
        generations=(generation,),
    )


def test_a_dataset_is_continued_with_its_own_options_alone(tmp_path: Path) -> None:
    had = {"seed": 0, "languages": ["zh", "en"], "title": "always"}
    existing.check_same(manifest(had), dict(had), output=tmp_path)
    now = {"seed": 0, "languages": ["zh"], "min_chars": 5}
    with pytest.raises(UserError) as raised:
        existing.check_same(manifest(had), now, output=tmp_path)
    text = str(raised.value)
    assert "--languages is zh, the dataset has zh,en; " in text
    assert "--min-chars is 5, the dataset has None; " in text
    assert "--title is None, the dataset has always. " in text
    assert "--seed" not in text
    assert text.endswith("Choose another --output, or give --overwrite to replace it")


def entry(file: Path, **changes: Any) -> InputEntry:
    sums = tuple(crc32c_of(CONTENT[split.start : split.end]) for split in splits(file))
    found = InputEntry(source="s", path="a.json", bytes=len(CONTENT), crc32c=sums)
    return dataclasses.replace(found, **changes)


def check(output: Path, file: Path, *entries: InputEntry) -> None:
    existing.check_inputs(
        manifest({}, *entries),
        [matched(file)],
        readings={"s": READING},
        split_bytes=SPLIT_BYTES,
        output=output,
    )


@pytest.mark.parametrize("whole", [False, True])
def test_a_dataset_of_the_same_bytes_is_complete(tmp_path: Path, file: Path, whole: bool) -> None:
    sums = {"crc32c": (crc32c_of(CONTENT),)} if whole else {}
    check(tmp_path, file, entry(file, **sums))
    touch(file)
    check(tmp_path, file, entry(file, **sums))


def test_a_file_of_the_same_time_is_not_read_again(tmp_path: Path, file: Path) -> None:
    times = [{"source": "s", "path": "a.json", "mtime_ns": file.stat().st_mtime_ns}]
    write_json(tmp_path / existing.INPUTS, times)
    wrong = entry(file, crc32c=(1, 2, 3))
    check(tmp_path, file, wrong)
    touch(file)
    with pytest.raises(UserError, match=r"s/a\.json has changed \(1 files differ\)"):
        check(tmp_path, file, wrong)


def test_a_file_of_the_same_etag_is_not_read_again(
    tmp_path: Path, file: Path, remote: InputFile
) -> None:
    def leave_etag(etag: str) -> None:
        told = {"source": "s", "path": "a.json", "mtime_ns": 0, "etag": etag}
        write_json(tmp_path / existing.INPUTS, [told])

    def check_remote(*entries: InputEntry) -> None:
        existing.check_inputs(
            manifest({}, *entries),
            [remote],
            readings={"s": READING},
            split_bytes=SPLIT_BYTES,
            output=tmp_path,
        )

    leave_etag(remote.etag)
    check_remote(entry(file, crc32c=(1, 2, 3)))
    leave_etag("other")
    check_remote(entry(file))
    with pytest.raises(UserError, match=r"s/a\.json has changed"):
        check_remote(entry(file, crc32c=(1, 2, 3)))


def test_other_inputs_are_told_by_the_first(tmp_path: Path, file: Path) -> None:
    with pytest.raises(UserError, match=r"s/a\.json is new \(1 files differ\)\. Choose another"):
        check(tmp_path, file)
    with pytest.raises(UserError, match=r"s/0\.json is gone \(2 files differ\)"):
        check(tmp_path, file, entry(file, path="0.json"))
    with pytest.raises(UserError, match=r"s/a\.json has changed"):
        check(tmp_path, file, entry(file, bytes=7))


def test_files_are_complete_in_sizes_and_checksums(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(b"12345")
    (tmp_path / "00000.bin").write_bytes(b"123")
    (tmp_path / "00000.idx").write_bytes(b"")
    table = TableEntry(path="a.parquet", rows=1, bytes=5, crc32c=crc32c_of(b"12345"))
    files = {
        "bin": FileEntry(bytes=3, crc32c=crc32c_of(b"123")),
        "idx": FileEntry(bytes=0, crc32c=0),
    }
    shard = ShardEntry(path="00000", documents=1, tokens=1, files=files)
    assert existing.complete_files(tmp_path, [])
    assert existing.complete_files(tmp_path, [table, shard])
    assert not existing.complete_files(tmp_path, [table, dataclasses.replace(shard, path="1")])
    assert not existing.complete_files(tmp_path, [dataclasses.replace(table, bytes=6), shard])
    assert not existing.complete_files(tmp_path, [dataclasses.replace(table, crc32c=6), shard])
    (tmp_path / "00000.bin").write_bytes(b"124")
    assert not existing.complete_files(tmp_path, [table, shard])
    (tmp_path / "00000.bin").write_bytes(b"123")
    assert existing.complete_files(tmp_path, [table, shard])
    (tmp_path / "00000.idx").unlink()
    assert not existing.complete_files(tmp_path, [table, shard])
