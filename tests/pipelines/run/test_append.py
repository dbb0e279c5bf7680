"""A dataset grows by generations: what is new is added, and nothing else changes."""

import os
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from pipelines.inputs.files import InputFile
from pipelines.run.append import append, in_turn
from pipelines.run.build import build
from pipelines.run.command import main
from pipelines.run.ledger import NAME, Ledger
from pipelines.wudao import WudaoOptions
from shards import Dataset
from shards.errors import UserError
from shards.manifest import Generation, Manifest, read_manifest, write_manifest
from shards.storage.files import read_json, write_json
from shards.verify import verify
from tests.pipelines.privileges import without_privileges
from tests.pipelines.runs import AT, MODULE, content, page, run, small, write_wudao

SHORT = "短"  # of too few characters to be kept


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


def kept(dataset: Path, *generations: int) -> list[tuple[str, int]]:
    """Path and position of the documents that some generations keep, sorted."""
    manifest = read_manifest(dataset)
    found: list[tuple[str, int]] = []
    for number in generations or range(len(manifest.generations)):
        folder = dataset / manifest.generations[number].name / "audit"
        for path in sorted(folder.glob("*.parquet")):
            rows = pq.read_table(path, columns=["path", "position", "verdict"]).to_pylist()
            found += [(row["path"], row["position"]) for row in rows if row["verdict"] == "kept"]
    return sorted(found)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An input of one file."""
    folder = tmp_path / "in"
    write(folder, "part-1.json", *range(20))
    return folder


def test_a_dataset_of_links_does_not_grow(tmp_path: Path, folder: Path) -> None:
    real, output = tmp_path / "real", tmp_path / "out"
    build(MODULE, small(real, folder))
    shutil.copytree(real, output, copy_function=lambda name, link: Path(link).symlink_to(name))
    before = content(output)
    write(folder, "part-2.json", *range(15, 30))
    with pytest.raises(UserError, match=r"manifest\.json is a link: this dataset consists of"):
        grown(output, folder)
    assert (output / "manifest.json").is_symlink()
    assert content(output) == before
    assert list(verify(Dataset.open(output))) == []


def test_what_is_new_becomes_a_generation(tmp_path: Path, folder: Path) -> None:
    output = tmp_path / "out"
    first = build(MODULE, small(output, folder))
    before = content(output)
    write(folder, "part-2.json", *range(15, 30))
    second = grown(output, folder)
    assert (second.number, second.lineage) == (2, first.lineage)
    assert second.generations[0] == first.generations[0]
    new = second.generations[1]
    assert (new.number, new.name[:6], new.libraries) == (2, "g0002-", {})
    assert [entry.path for entry in new.inputs] == ["part-2.json"]
    assert new.accounting["wudao"]["dropped"] == {"duplicate": 5}
    after = content(output)
    del before["manifest.json"]
    assert before.items() <= after.items(), "nothing that was there is written again"
    assert len(kept(output)) == 30
    assert list(verify(Dataset.open(output))) == []
    assert {path.name for path in output.iterdir()} == {
        *(generation.name for generation in second.generations),
        *("manifest.json", "inputs.json", "report.json", "report.html", ".lock"),
        second.vocabulary.path,
    }
    assert len(Dataset.open(f"{output}@1").documents()) == 20
    told = read_json(output / "report.json")["generations"]
    assert [entry["name"] for entry in told] == [entry.name for entry in second.generations]
    assert [entry["known"] for entry in told] == [0, 5]
    assert [entry["documents"] for entry in told] == [20, 10]
    names = [file["path"] for file in read_json(output / "inputs.json")]
    assert names == ["part-1.json", "part-2.json"]


def times(output: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in output.rglob("*") if path.name != ".lock"}


def test_nothing_new_changes_nothing(
    tmp_path: Path, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    output = tmp_path / "out"
    grown(output, folder)  # without a dataset it makes one
    before = times(output)
    with caplog.at_level("INFO", logger="corpusmill"):
        caplog.clear()
        assert grown(output, folder).number == 1
    assert caplog.messages == [f"{output} has all 1 files of the input: nothing is new"]
    assert times(output) == before
    assert build(MODULE, small(output, folder)).number == 1, "a plain run finds it complete"
    with pytest.raises(UserError, match=r"--min-chars is 7, .*the options that it was made with"):
        grown(output, folder, min_chars=7)
    assert times(output) == before


def test_a_plain_run_knows_the_inputs_of_all_generations(tmp_path: Path, folder: Path) -> None:
    output = tmp_path / "out"
    grown(output, folder)
    write(folder, "part-2.json", 50)
    with pytest.raises(UserError, match=r"part-2\.json is new .*Give --append to add"):
        build(MODULE, small(output, folder))
    assert grown(output, folder).number == 2
    assert build(MODULE, small(output, folder)).number == 2


@pytest.mark.parametrize("dedup", ["exact", "minhash"])
def test_the_documents_are_those_of_one_run_in_which_the_first_files_come_first(
    tmp_path: Path, folder: Path, dedup: str
) -> None:
    # Every text of the second file that is in the first is dropped, and none of the first.
    output = tmp_path / "out"
    changes = {"dedup": dedup, "split_bytes": 3000}
    grown(output, folder, **changes)
    write(folder, "part-2.json", *range(10, 40))
    grown(output, folder, **changes)
    write(folder, "part-0.json", *range(35, 45), *range(5))
    grown(output, folder, **changes)
    counts = [len(kept(output, number)) for number in range(3)]
    assert counts == [20, 20, 5]
    assert list(verify(Dataset.open(output))) == []


def test_the_bytes_depend_on_the_sets_alone(tmp_path: Path, folder: Path) -> None:
    outputs = [tmp_path / "one", tmp_path / "two"]
    for output, workers in zip(outputs, (0, 2), strict=True):
        grown(output, folder, workers=workers)
    for name, numbers in [("part-3.json", range(30, 40)), ("part-2.json", range(10, 33))]:
        write(folder, name, *numbers)
    for output, workers in zip(outputs, (2, 0), strict=True):
        grown(output, folder, workers=workers)
    assert content(outputs[0]) == content(outputs[1])
    other = tmp_path / "three"  # the same files in one generation are another dataset
    grown(other, folder)
    assert len(kept(other)) == len(kept(outputs[0]))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda path: write(path.parent, path.name, *range(21)), r"has [\d,]+ bytes and had"),
        (lambda path: os.utime(path, (1, 1)), r"has another time \(--rehash compares"),
        (lambda path: path.unlink(), "is gone"),
    ],
    ids=["content", "time", "gone"],
)
def test_a_file_that_is_not_as_it_was_is_refused(
    tmp_path: Path, folder: Path, change: Any, message: str
) -> None:
    output = tmp_path / "out"
    grown(output, folder)
    write(folder, "part-2.json", 77)
    change(folder / "part-1.json")
    with pytest.raises(UserError, match=f"wudao/part-1\\.json {message}"):
        grown(output, folder)
    assert read_manifest(output).number == 1
    made = grown(output, folder, allow_changed=True)
    assert made.number == 2
    assert len(kept(output)) == 21 + (message.startswith("has [")), "no record is taken twice"
    assert grown(output, folder, allow_changed=True).number == 2


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


def test_what_is_not_there_yet_is_left_for_later(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder, output = tmp_path / "inbox", tmp_path / "out"
    folder.mkdir()
    caplog.set_level("INFO", logger="corpusmill")
    for name in ("", "part-1.json"):
        if name:
            (folder / name).touch()
        assert append(MODULE, small(output, folder, append=True)) is None
        assert f"{folder}: there is no file yet that can be read; nothing was made" in caplog.text
        assert not output.exists()
    (folder / "part-2.json").symlink_to(tmp_path / "later")
    write(folder, "part-3.json", *range(5))
    assert grown(output, folder).number == 1
    for name in ("part-1.json is empty", "part-2.json is a link to"):
        assert name in caplog.text
    assert [file["path"] for file in read_json(output / "report.json")["left_out"]] == [
        "part-1.json",
        "part-2.json",
    ]
    assert grown(output, folder).number == 1
    write(folder, "part-1.json", 7)
    write(tmp_path, "later", 8)
    assert len(grown(output, folder).generations[-1].inputs) == 2


def test_rehash_tells_whether_the_content_has_changed(tmp_path: Path, folder: Path) -> None:
    output = tmp_path / "out"
    grown(output, folder)
    path = folder / "part-1.json"
    stat = path.stat()
    os.utime(path, (1, 1))
    assert grown(output, folder, rehash=True).number == 1
    path.write_text(path.read_text().replace("打磨", "磨光", 1))
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert grown(output, folder).number == 1, "size and time are those of before"
    with pytest.raises(UserError, match=r"part-1\.json has other content"):
        grown(output, folder, rehash=True)


def test_a_changed_file_needs_dedup(tmp_path: Path, folder: Path) -> None:
    output = tmp_path / "out"
    grown(output, folder, dedup="none")
    write(folder, "part-1.json", *range(21))
    with pytest.raises(UserError, match="made with --dedup none does not know"):
        grown(output, folder, dedup="none", allow_changed=True)


def test_the_options_must_be_those_of_the_dataset(tmp_path: Path, folder: Path) -> None:
    output = tmp_path / "out"
    grown(output, folder)
    write(folder, "part-2.json", 77)
    before = content(output)
    with pytest.raises(UserError, match=r"--min-chars is 7, the dataset has 101\. Give the opt"):
        grown(output, folder, min_chars=7)
    assert content(output) == before


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


def test_minhash_without_bands_says_how_to_get_them(tmp_path: Path, folder: Path) -> None:
    output = tmp_path / "out"
    made = grown(output, folder, dedup="minhash")
    (generation,) = made.generations
    tables = tuple(table for table in generation.signatures if "exact" in table.path)
    old = replace(made, generations=(replace(generation, signatures=tables),))
    write_manifest(output, old)
    write(folder, "part-2.json", 77)
    with pytest.raises(UserError, match=r"has no bands .* with --overwrite"):
        grown(output, folder, dedup="minhash")


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--append", "--overwrite"], "either replaced (--overwrite) or grows"),
        (["--append", "--clusters", "components"], "cannot grow"),
        (["--append", "--part", "1/2"], "leave it out"),
        (["--append", "--plan"], "--plan estimates whole runs"),
        (["--rehash"], "say how to --append"),
        (["--allow-changed"], "say how to --append"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_does_not_go_together_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], flags: list[str], message: str
) -> None:
    assert main(MODULE, [*flags, "--output", str(tmp_path / "out")]) == 2
    assert message in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "out").exists()


def test_a_generation_without_documents_is_one(tmp_path: Path, folder: Path) -> None:
    output = tmp_path / "out"
    grown(output, folder)
    write_wudao(folder / "part-2.json", [{**page(1, SHORT), "content": SHORT, "title": SHORT}])
    made = grown(output, folder)
    assert made.generations[1].accounting["wudao"]["dropped"] == {"too-short": 1}
    assert made.generations[1].sources["wudao"].shards == ()
    assert grown(output, folder).number == 2
    assert list(verify(Dataset.open(output))) == []


def matched(path: Path) -> InputFile:
    stat = path.stat()
    return InputFile(
        source="wudao",
        path=str(path),
        relative=path.name,
        bytes=stat.st_size,
        mtime_ns=stat.st_mtime_ns,
    )


def test_a_generation_that_was_begun_is_finished_first(tmp_path: Path, folder: Path) -> None:
    output = tmp_path / "out"
    grown(output, folder)
    begun = write(folder, "part-2.json", *range(20, 25))
    Ledger(output).name(2, [matched(begun)])
    write(folder, "part-3.json", *range(25, 30))
    made = grown(output, folder)
    names = [[entry.path for entry in generation.inputs] for generation in made.generations]
    assert names == [["part-1.json"], ["part-2.json"], ["part-3.json"]]
    assert not (output / NAME).exists()


@pytest.mark.parametrize("harm", ["changed", "gone"])
def test_a_generation_whose_files_have_changed_is_given_up(
    tmp_path: Path, folder: Path, harm: str, caplog: pytest.LogCaptureFixture
) -> None:
    output = tmp_path / "out"
    grown(output, folder)
    begun = write(folder, "part-2.json", *range(20, 25))
    Ledger(output).name(2, [matched(begun)])
    begun.unlink()
    if harm == "changed":
        write(folder, "part-2.json", *range(20, 27))
    write(folder, "part-3.json", *range(30, 35))
    made = grown(output, folder)
    assert "that generation is given up" in caplog.text
    assert len(made.generations) == 2
    assert len(kept(output)) == 20 + 5 + 7 * (harm == "changed")


def test_too_many_unreadable_records_name_no_generation(tmp_path: Path, folder: Path) -> None:
    output = tmp_path / "out"
    grown(output, folder)
    whole = write(folder, "part-2.json", *range(20, 25)).read_text()
    for text in (whole.replace('"content"', '"contents"'), whole):
        (folder / "part-2.json").write_text(text)
        if text != whole:
            for tokens in (0, 10**6):
                with pytest.raises(UserError, match=r"these records have contents, .* all 5 "):
                    grown(output, folder, every_tokens=tokens)
            assert not (output / NAME).exists()
    assert grown(output, folder).number == 2, "mended, it is taken"


def test_what_cannot_be_deleted_does_not_undo_a_generation(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_: Ledger) -> None:
        raise OSError(5, "Input/output error")

    output = tmp_path / "out"
    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "close", fail)
        assert grown(output, folder).number == 1
    assert "what is no longer needed is not deleted" in caplog.text
    assert grown(output, folder).number == 1
    assert not (output / NAME).exists()


def test_times_that_no_manifest_has_do_not_count(tmp_path: Path, folder: Path) -> None:
    # As an overwrite leaves them that was killed between inputs.json and the manifest.
    output = tmp_path / "out"
    grown(output, folder)
    path = folder / "part-1.json"
    path.write_text(path.read_text().replace("打磨", "磨光", 1))
    stat = path.stat()
    (entry,) = read_json(output / "inputs.json")
    write_json(output / "inputs.json", [{**entry, "mtime_ns": stat.st_mtime_ns, "crc32c": [1]}])
    with pytest.raises(UserError, match=r"part-1\.json has other content"):
        grown(output, folder)


def test_a_dataset_of_several_sources_is_cut_the_same_after_a_kill(tmp_path: Path) -> None:
    for source, count in (("a", 3), ("b", 2)):
        for number in range(count):
            first = 100 * ord(source) + 10 * number
            write(tmp_path / source, f"part-{number}.json", *range(first, first + 10))
    inputs = [f"{source}={tmp_path / source}" for source in "ab"]
    whole, resumed = tmp_path / "whole", tmp_path / "resumed"
    options = [small(output, *inputs, every_tokens=1000) for output in (whole, resumed)]
    made = append(MODULE, options[0])
    assert len(made.generations) == 5
    first = append_first(options[1])
    assert [entry.path for entry in first.inputs] == [
        entry.path for entry in made.generations[0].inputs
    ]
    assert content(resumed) == content(whole)


def append_first(options: WudaoOptions) -> Generation:
    """Make the first generation, as a run does that is killed after it; then all others."""

    class Killed(Exception):
        pass

    def killed(*_: Any, **__: Any) -> None:
        raise Killed

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pipelines.run.build.forget_phases", killed)
        with pytest.raises(Killed):
            append(MODULE, options)
    (generation,) = read_manifest(options.output).generations
    append(MODULE, options)
    return generation


KILLS = [
    r"/ledger\.json$",
    r"\.work/dedup/.*\.json$",
    r"g0002-.*/00000\.bin$",
    r"inputs\.json$",
    r"/manifest\.json$",
    r"rmdir .*\.work/map$",
]


@pytest.mark.slow
@pytest.mark.parametrize("pattern", KILLS)
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


def small_flags(output: Path, folder: Path, *more: object) -> list[object]:
    """The command line of `grown`."""
    options = small(output, folder)
    return [
        *("--input", folder, "--output", output, "--tokenizer", options.tokenizer),
        *("--languages", "all", "--language-threshold", 0, "--validation", 0, "--shards", 1),
        *("--split-bytes", options.split_bytes, "--append", *more),
    ]


def test_generations_of_so_many_tokens_are_made_as_the_map_goes(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    for number in range(9):
        write(folder, f"part-{number}.json", *range(10 * number, 10 * number + 12))
    output = tmp_path / "out"
    whole = grown(output, folder)
    tokens = sum(shard.tokens for shard in whole.shards())
    shutil.rmtree(output)
    made = grown(output, folder, every_tokens=tokens // 3)
    sizes = [len(generation.inputs) for generation in made.generations]
    assert sum(sizes) == 9
    assert 3 <= len(sizes) <= 4
    assert len(kept(output)) == len({*kept(output)}) == 92, "each text once"
    for generation in made.generations[:-1]:
        paths = [entry.path for entry in generation.inputs]
        assert paths == sorted(paths)
    again = tmp_path / "again"
    grown(again, folder, every_tokens=tokens // 3, workers=2)
    assert content(again) == content(output)


@pytest.mark.slow
def test_the_cut_into_generations_survives_a_kill(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    for number in range(6):
        write(folder, f"part-{number}.json", *range(10 * number, 10 * number + 12))
    outputs = [tmp_path / "whole", tmp_path / "killed"]
    grown(outputs[0], folder, every_tokens=6000)
    assert len(read_manifest(outputs[0]).generations) > 2
    flags = small_flags(outputs[1], folder, "--every-tokens", 6000)
    killed = run(*flags, script=[AT, r"g0002-.*/00000\.idx$", 1, "kill -9 0"])
    assert killed.returncode == -9, killed.stderr
    assert len(read_manifest(outputs[1]).generations) == 1
    again = run(*flags)
    assert again.returncode == 0, again.stderr
    assert content(outputs[1]) == content(outputs[0])


def files_of(sizes: dict[str, Sequence[int]]) -> list[InputFile]:
    return [
        InputFile(source=source, path=f"/{i}", relative=f"{i:03}", bytes=size, mtime_ns=0)
        for source, parts in sizes.items()
        for i, size in enumerate(parts)
    ]


def test_any_beginning_has_the_same_share_of_each_source() -> None:
    files = files_of({"a": [10] * 40, "b": [100] * 8, "c": [7]})
    turns = in_turn(files)
    assert sorted(turns, key=files.index) == files
    for num in range(1, len(turns)):
        seen = {
            source: sum(f.bytes for f in turns[:num] if f.source == source) / total
            for source, total in (("a", 400), ("b", 800))
        }
        assert abs(seen["a"] - seen["b"]) <= 100 / 800
    assert in_turn(files[::-1]) == turns


def test_options_of_generations_are_operational(tmp_path: Path, folder: Path) -> None:
    options = small(tmp_path / "out", folder, every_tokens=5)
    assert isinstance(options, WudaoOptions)
    assert options.grows
    assert not small(tmp_path / "out", folder).grows
