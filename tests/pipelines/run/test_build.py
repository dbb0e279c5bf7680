"""The guarantees of a run, end to end: the sample in 37 splits, 8 shards, with duplicates."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from pipelines.corpus.recipe import SAMPLE
from pipelines.map import first_records, mapper
from pipelines.map.first_records import FirstFiles
from pipelines.run.build import build
from pipelines.run.command import main
from pipelines.segments.identity import hash_bound, sample_hashes
from pipelines.wudao import WudaoOptions
from shards import DamageError, Dataset, UserError
from shards.manifest import TRAIN, VALIDATION
from shards.storage.lock import locked
from shards.verify import verify
from tests.pipelines.privileges import without_privileges
from tests.pipelines.runs import (
    FLAGS,
    MODULE,
    content,
    many_splits,
    page,
    run,
    shipped,
    small,
    write_wudao,
)


def documents(output: Path, split: str = TRAIN) -> dict[str, str]:
    """The decoded text of every document, by uniqueKey."""
    dataset = Dataset.open(output)
    found = {}
    for shard in dataset.documents(split=split).shards():
        keys = shard.documents["id"].to_pylist()
        for row, key in enumerate(keys):
            found[key] = dataset.vocabulary.decode(shard[row][:-1])
    return found


def audit(output: Path) -> list[dict[str, object]]:
    manifest = Dataset.open(output).manifest
    tables = [pq.read_table(output / t.path) for g in manifest.generations for t in g.audit]
    return [row for table in tables for row in table.to_pylist()]


def rejects(output: Path) -> list[dict[str, object]]:
    manifest = Dataset.open(output).manifest
    tables = [pq.read_table(output / t.path) for g in manifest.generations for t in g.rejects]
    return [row for table in tables for row in table.to_pylist()]


# --- determinism


def quick(output: Path, **changes: Any) -> WudaoOptions:
    """The sample in its four files, for what does not depend on the number of splits."""
    return many_splits(output, **{"split_bytes": 200_000, "shards": 2, **changes})


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `quick` makes; tests that change it copy it."""
    output = tmp_path_factory.mktemp("quick") / "out"
    build(MODULE, quick(output, keep_segments=True))
    return output


def test_the_reference_is_cut_finely_and_sound(reference: Path):
    dataset = Dataset.open(reference)
    assert len(list((reference / ".work" / "map").glob("*.json"))) >= 20
    entries = dataset.manifest.shards()
    assert len(entries) == 8
    assert min(entry.documents for entry in entries) > 0
    assert list(verify(dataset)) == []


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_worker_processes_make_the_same_bytes(reference: Path, tmp_path: Path, workers: int):
    done = run(*FLAGS, "--workers", workers, "--output", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert report["workers"] == workers
    assert shipped(reference) == content(tmp_path / "out")


def test_a_copy_of_the_corpus_elsewhere_makes_the_same_bytes(finished: Path, tmp_path: Path):
    shutil.copytree(SAMPLE, tmp_path / "other name", copy_function=shutil.copyfile)
    build(
        MODULE,
        quick(
            tmp_path / "out",
            input=(str(tmp_path / "other name"),),
            tokenizer=f"sentencepiece:{SAMPLE / 'sample.model'}",
        ),
    )
    assert shipped(tmp_path / "out") == shipped(finished)


def test_the_number_of_shards_does_not_change_the_order(reference: Path, tmp_path: Path):
    build(MODULE, quick(tmp_path / "out", shards=3))
    ours, theirs = (
        [
            key
            for shard in Dataset.open(path).documents().shards()
            for key in shard.documents["id"].to_pylist()
        ]
        for path in (tmp_path / "out", reference)
    )
    assert ours == theirs
    assert len(ours) > 400


def test_a_second_run_into_the_same_folder_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    with locked(tmp_path / "out"):
        assert main(MODULE, ["--output", str(tmp_path / "out")]) == 2
    assert f"is being written by process {os.getpid()}" in capsys.readouterr().err


def test_changed_versions_are_told_and_only_then_work_is_redone(
    finished: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
):
    shutil.copytree(finished, tmp_path / "out")
    options = quick(tmp_path / "out", keep_segments=True)
    (tmp_path / "out" / "manifest.json").unlink()
    before = mapper.STAGES_VERSION
    monkeypatch.setattr(mapper, "STAGES_VERSION", 99)
    with caplog.at_level("INFO", logger="corpusmill"):
        build(MODULE, options)
    assert f"corpusmill stages ({before}, now 99) changed" in caplog.text
    assert "finished before" not in caplog.text


# --- what is there already


def test_a_complete_dataset_is_left_as_it_is(
    finished: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    inputs = tmp_path / "in"
    shutil.copytree(SAMPLE, inputs)
    tokenizer = f"sentencepiece:{SAMPLE / 'sample.model'}"
    shutil.copytree(finished, tmp_path / "out")
    options = quick(tmp_path / "out", input=(str(inputs),), tokenizer=tokenizer)
    before = (tmp_path / "out" / "manifest.json").stat().st_mtime_ns
    os.utime(inputs / "part-2026010101.json")
    with caplog.at_level("INFO", logger="corpusmill"):
        build(MODULE, options)
    assert "nothing to do" in caplog.text
    assert (tmp_path / "out" / "manifest.json").stat().st_mtime_ns == before

    changed = inputs / "part-2026010102.json"
    changed.write_bytes(changed.read_bytes().replace("的".encode(), "之".encode(), 1))
    with pytest.raises(UserError, match=r"wudao/part-2026010102\.json has changed \(1 files"):
        build(MODULE, options)
    write_wudao(inputs / "part-9.json", [page(1)])
    with pytest.raises(UserError, match=r"part-9\.json is new|\(2 files differ\)"):
        build(MODULE, options)


def test_a_complete_dataset_that_was_damaged_is_not_called_complete(finished: Path, tmp_path: Path):
    shutil.copytree(finished, tmp_path / "out")
    options = quick(tmp_path / "out")
    made = Dataset.open(finished).manifest
    victim = tmp_path / "out" / f"{made.shards()[1].path}.bin"
    whole = victim.read_bytes()
    victim.write_bytes(whole[:-2])
    with pytest.raises(
        DamageError, match=rf"{victim} has .* bytes, not {len(whole):,}.*--overwrite"
    ):
        build(MODULE, options)
    build(MODULE, replace(options, overwrite=True))
    assert victim.read_bytes() == whole


def test_other_options_are_refused_by_name_and_overwrite_replaces(finished: Path, tmp_path: Path):
    shutil.copytree(finished, tmp_path / "out")
    first = Dataset.open(finished).manifest
    with pytest.raises(UserError, match=r"--seed is 7, the dataset has 0.*--overwrite"):
        build(MODULE, quick(tmp_path / "out", seed=7))
    with pytest.raises(UserError, match=r"--languages is en, the dataset has en,zh"):
        build(MODULE, quick(tmp_path / "out", languages=("en",)))
    second = build(MODULE, quick(tmp_path / "out", seed=7, overwrite=True))
    assert (first.number, second.number) == (1, 2)
    assert first.lineage != second.lineage
    assert list(verify(Dataset.open(tmp_path / "out"))) == []
    assert (tmp_path / "out" / first.generations[0].name).is_dir(), "only prune deletes"


def test_operational_options_do_not_matter(finished: Path, tmp_path: Path):
    output = tmp_path / "out"
    made = build(MODULE, quick(output, max_reject_rate=0.5, keep_segments=True))
    assert made == Dataset.open(finished).manifest
    assert shipped(output) == shipped(finished)
    before = (output / "report.json").stat().st_mtime_ns
    changes = {"max_reject_rate": 0.2, "workers": 2}
    assert build(MODULE, quick(output, **changes)) == made
    assert (output / "report.json").stat().st_mtime_ns == before, "it was complete"


# --- accounting and rejects


def test_the_account_of_the_sample(reference: Path):
    account = Dataset.open(reference).manifest.generations[0].accounting["wudao"]
    assert account["dropped"] == {"duplicate": 8, "language": 6, "too-short": 6}
    assert account["quarantined"] == {"missing-field": 1, "wrong-type": 1}
    assert account["read"] == 531 == account["kept"] + 20 + 2
    rows = audit(reference)
    assert len(rows) == 531
    places = {(row["path"], row["position"]) for row in rows}
    assert len(places) == 531
    assert sum(row["bytes"] for row in rows) == sum(account["bytes"].values())
    assert sum(row["tokens"] for row in rows if row["verdict"] == "kept") == sum(
        shard.tokens
        for split in (TRAIN, VALIDATION)
        for shard in Dataset.open(reference).manifest.shards(split=split)
    )


def test_every_document_of_the_sample_is_there_once_or_accounted_for(reference: Path):
    records = []
    for path in sorted(SAMPLE.glob("part-*.json")):
        read = json.loads(path.read_text())
        records += read["RECORDS"] if isinstance(read, dict) else read
    found = {**documents(reference), **documents(reference, VALIDATION)}
    gone = {row["position"] for row in audit(reference) if row["verdict"] != "kept"}
    assert len(found) + len(gone) == len(records)
    clean = [r for r in records if r["uniqueKey"] in found and "Ã" not in str(r["content"])]
    exact = sum(str(r["content"]).strip() in found[r["uniqueKey"]] for r in clean)
    assert exact >= len(clean) - 4, "all but the repaired ones read back to the letter"


DAMAGES = {
    "bad-utf8": b'{"uniqueKey": "x", "content": "\xff\xfe' + b"a" * 200 + b'"}',
    "bad-json": b'{"uniqueKey": "x", "content": "' + b"a" * 200 + b'", "id": 01}',
    "wrong-type": b'{"uniqueKey": "x", "content": 17}',
    "missing-field": b'{"uniqueKey": "x", "text": "' + b"a" * 200 + b'"}',
    "nul": b'{"uniqueKey": "x", "content": "zero \\u0000 ' + b"a" * 200 + b'"}',
    "not-an-object": b'"a string that stands where a page should"',
    "too-long": b'{"uniqueKey": "x", "content": "' + b"long " * (7 << 20) + b'"}',
    "lone surrogate": b'{"uniqueKey": "x", "content": "\\ud800 ' + b"a" * 200 + b'"}',
    "cut short": b'{"uniqueKey": "x", "content": "this record was cut sho',
}


@pytest.mark.parametrize(
    "kind",
    [pytest.param(kind, marks=pytest.mark.slow if kind == "too-long" else ()) for kind in DAMAGES],
)
def test_a_damaged_record_costs_itself_and_lands_in_rejects(tmp_path: Path, kind: str):
    good = [json.dumps(page(number), ensure_ascii=False).encode() for number in range(12)]
    parts = [*good[:6], DAMAGES[kind], *good[6:]]
    raw = b"[" + b",\n".join(parts) + b"]"
    path = tmp_path / "in" / "part-1.json"
    path.parent.mkdir()
    path.write_bytes(raw)
    options = small(
        tmp_path / "out",
        path,
        max_reject_rate=0.2,
        split_bytes=max(1500, len(raw) // 3),
    )
    made = build(MODULE, options)
    account = made.generations[0].accounting["wudao"]
    reason = {"lone surrogate": "bad-json", "cut short": "bad-json"}.get(kind, kind)
    assert account["quarantined"] == {reason: 1}
    assert account["kept"] == 12
    (reject,) = rejects(tmp_path / "out")
    place = slice(reject["position"], reject["position"] + reject["length"])
    assert raw[place].startswith(DAMAGES[kind])
    assert reject["raw"] == raw[place][: 64 << 10]
    assert (reject["path"], reject["reason"]) == ("part-1.json", reason)


def test_a_file_cut_off_keeps_what_it_has_and_says_so(tmp_path: Path):
    path = write_wudao(tmp_path / "part-1.json", [page(number) for number in range(100)])
    path.write_bytes(path.read_bytes()[:-200])
    made = build(
        MODULE,
        small(
            tmp_path / "out",
            path,
            max_reject_rate=0.02,
        ),
    )
    account = made.generations[0].accounting["wudao"]
    assert (account["kept"], account["quarantined"]) == (99, {"truncated": 1})


def test_too_many_rejects_fail_the_run_and_say_where_they_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    path = write_wudao(tmp_path / "part-1.json", [page(1), page(2), {"id": 3}])
    tokenizer = f"sentencepiece:{SAMPLE / 'sample.model'}"
    flags = ["--input", str(path), "--tokenizer", tokenizer, "--output", str(tmp_path / "out")]
    assert main(MODULE, flags) == 2
    told = capsys.readouterr().err
    assert "33.33 % of the records cannot be read (1 missing-field)" in told
    assert "--max-reject-rate" in told
    assert "Traceback" not in told
    assert main(MODULE, [*flags, "--max-reject-rate", "50%"]) == 0


@pytest.mark.parametrize("workers", [0, 1])
def test_where_nothing_can_be_read_nothing_is_mapped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], workers: int
) -> None:
    records = [{"id": number, "text": "text"} for number in range(3)]
    path = write_wudao(tmp_path / "part-1.json", records)
    tokenizer = f"sentencepiece:{SAMPLE / 'sample.model'}"
    flags = ["--input", str(path), "--tokenizer", tokenizer, "--output", str(tmp_path / "out")]
    flags += ["--workers", str(workers)] if workers else []
    for more in ([], ["--append"], ["--part", "1/2"], ["--plan"]):
        assert main(MODULE, [*flags, *more]) == 2
        told = capsys.readouterr().err
        assert "the corpus wudao needs the field content: these records have text, id." in told
        assert "all 3 records" in told
        assert not [*tmp_path.glob("out/.work/map/*")]
    assert main(MODULE, [*flags, "--max-reject-rate", "1"]) == 2
    assert "no document is left of this input (3 missing-field)" in capsys.readouterr().err


def test_what_was_mapped_is_not_looked_at_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that is resumed ends with the same words, once the map has counted."""
    path = write_wudao(tmp_path / "part-1.json", [{"text": "text"}] * 3)
    with monkeypatch.context() as patch:
        patch.setattr(first_records, "unread", lambda *_, **__: None)
        with pytest.raises(UserError, match=r"100.00 % of the records cannot be read"):
            build(MODULE, small(tmp_path / "out", path))
    seen: list[FirstFiles] = []
    look = first_records.look
    monkeypatch.setattr(
        "pipelines.run.build.look", lambda first, call: (seen.append(first), look(first, call=call))
    )
    with pytest.raises(UserError, match="these records have text"):
        build(MODULE, small(tmp_path / "out", path))
    assert [len(first.files) for first in seen] == [0, 1], "before the map, and after it"


def test_nothing_left_is_an_error(tmp_path: Path):
    path = write_wudao(tmp_path / "part-1.json", [page(1)])
    with pytest.raises(UserError, match=r"no document is left of this input.*1 language"):
        build(
            MODULE,
            small(
                tmp_path / "out",
                path,
                languages=("fr",),
            ),
        )


# --- meaning of the options


def test_special_token_strings_in_text_stay_text(tmp_path: Path):
    strings = [
        "<|endoftext|>",
        "[MASK]",
        "[gMASK]",
        "[CLS]",
        "<|startofpiece|>",
        "</s>",
        "<s>",
        "<unk>",
    ]
    path = write_wudao(
        tmp_path / "part-1.json",
        [page(n, f"{text} 里的字 {text}") for n, text in enumerate(strings)],
    )
    build(
        MODULE,
        small(
            tmp_path / "out",
            path,
            shards=1,
            validation=0.0,
        ),
    )
    dataset = Dataset.open(tmp_path / "out")
    texts = documents(tmp_path / "out")
    for number, text in enumerate(strings):
        assert texts[f"{number:032x}"].count(text) == 2
    (shard,) = dataset.documents().shards()
    control = dataset.vocabulary.special[shard.tokens]
    eos = dataset.manifest.tokenizer.special["eos"]
    assert control.sum() == len(strings)
    assert set(np.asarray(shard.tokens)[control].tolist()) == {eos}


@pytest.mark.parametrize("share", [0.2, 0.5])
def test_a_sample_is_the_records_below_a_hash(reference: Path, tmp_path: Path, share: float):
    """So samples nest."""
    output = tmp_path / "out"
    build(MODULE, quick(output, sample=share))
    account = Dataset.open(output).manifest.generations[0].accounting["wudao"]
    assert account["read"] + account["not_sampled"] == 531
    places = {(row["path"], row["position"]) for row in audit(reference)}
    taken = {(row["path"], row["position"]) for row in audit(output)}
    assert abs(len(taken) - share * 531) < 43
    assert taken == {
        (path, position)
        for path, position in places
        if sample_hashes("wudao", path, np.array([position]), seed=0)[0] < hash_bound(share)
    }


def test_validation_is_at_most_a_twentieth_and_disjoint(reference: Path):
    train, held = documents(reference), documents(reference, VALIDATION)
    assert len(held) == 509 // 20
    assert not set(train) & set(held)


def test_several_inputs_are_several_sources_and_duplicates_go_across(tmp_path: Path):
    write_wudao(tmp_path / "a" / "part-1.json", [page(n) for n in range(60)])
    write_wudao(tmp_path / "b" / "part-1.json", [page(n) for n in range(40, 100)])
    made = build(
        MODULE,
        small(
            tmp_path / "out",
            f"one={tmp_path / 'a'}",
            f"two={tmp_path / 'b'}",
            shards=2,
            validation=0.001,
        ),
    )
    account = made.generations[0].accounting
    assert set(account) == set(made.sources()) == {"one", "two"}
    assert sum(account[name]["dropped"]["duplicate"] for name in account) == 20
    assert min(account[name]["dropped"]["duplicate"] for name in account) > 0
    keys = [*documents(tmp_path / "out"), *documents(tmp_path / "out", VALIDATION)]
    assert len(keys) == len(set(keys)) == 100
    assert list(verify(Dataset.open(tmp_path / "out"))) == []


def test_what_cannot_be_read_ends_the_run_or_is_left_out_and_accounted_for(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    for source in ("one", "two"):
        write_wudao(tmp_path / source / "part-1.json", [page(n) for n in range(20)])
    specs = [f"{source}={tmp_path / source}" for source in ("one", "two")]
    whole = build(MODULE, small(tmp_path / "whole", *specs, dedup="none"))
    (tmp_path / "one" / "part-2.json").symlink_to(tmp_path / "nothing")
    os.mkfifo(tmp_path / "one" / "part-3.json")
    (tmp_path / "one" / "closed").mkdir(mode=0)
    options = small(tmp_path / "out", *specs, dedup="none")
    with without_privileges():
        with pytest.raises(
            UserError,
            match=r"^3 files or folders of the input cannot be read: .*part-2\.json is a link .*; "
            r".*one/closed/ may not be searched: .*, or give --skip-unreadable to go on without it",
        ):
            build(MODULE, options)
        assert not options.output.exists()
        made = build(MODULE, replace(options, skip_unreadable=True))
    files = content(tmp_path / "out").items() ^ content(tmp_path / "whole").items()
    assert (files, made) == (set(), whole)  # of what can be read, whoever could not read the rest
    assert "one: 3 files or folders cannot be read and are left out (report" in caplog.text
    report = json.loads((tmp_path / "out" / "report.json").read_bytes())
    assert [(entry["source"], entry["path"]) for entry in report["left_out"]] == [
        ("one", "part-2.json"),
        ("one", "part-3.json"),
        ("one", "closed/"),
    ]
    assert report["left_out"][1]["why"] == "is neither a file nor a folder"
    shown = (tmp_path / "out" / "report.html").read_text()
    assert "3 files or folders match and could not be read" in shown
    assert "3 files or folders cannot be read and are left out: " in caplog.text


def test_an_input_of_which_nothing_can_be_read_is_refused_even_so(tmp_path: Path):
    write_wudao(tmp_path / "one" / "part-1.json", [page(1)])
    (tmp_path / "two").mkdir()
    os.mkfifo(tmp_path / "two" / "part-1.json")
    specs = [f"{source}={tmp_path / source}" for source in ("one", "two")]
    with pytest.raises(
        UserError, match=r"part-1\.json is neither .*: nothing is left of this source"
    ):
        build(MODULE, small(tmp_path / "out", *specs, skip_unreadable=True))


def test_linked_folders_make_the_same_bytes_in_whatever_order_they_are_listed(tmp_path: Path):
    for number, names in enumerate((("z", "a"), ("a", "z"))):
        folder = tmp_path / str(number) / "in"
        for name in names:
            folder.mkdir(parents=True, exist_ok=True)
            if name == "z":
                write_wudao(folder / "z" / "part-1.json", [page(n) for n in range(9)])
            else:
                (folder / "a").symlink_to("z")
        (folder / "z" / "part-2.json").symlink_to("part-1.json")
        build(MODULE, small(folder.parent / "out", folder))
    assert content(tmp_path / "0" / "out") == content(tmp_path / "1" / "out")
    (entry,) = Dataset.open(tmp_path / "0" / "out").manifest.generations[0].inputs
    assert entry.path == "z/part-1.json"


def test_without_dedup_everything_stays(tmp_path: Path):
    made = build(MODULE, quick(tmp_path / "out", dedup="none"))
    account = made.generations[0].accounting["wudao"]
    assert "duplicate" not in account["dropped"]
    assert account["kept"] == 517
    assert made.generations[0].signatures == ()


def test_nested_arrays_that_look_like_records_make_no_difference(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    records = [
        {**page(n), "comments": [page(1000 * n + m) for m in range(1, 12)]} for n in range(1, 9)
    ]
    path = write_wudao(tmp_path / "part-1.json", records)
    with caplog.at_level("INFO", logger="corpusmill"):
        build(
            MODULE,
            small(
                tmp_path / "out",
                path,
                split_bytes=3000,
                validation=0.0,
            ),
        )
    assert "read as one" in caplog.text
    assert set(documents(tmp_path / "out")) == {f"{n:032x}" for n in range(1, 9)}


# --- places that cannot be written


def test_an_output_that_cannot_be_written_is_one_paragraph(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    (tmp_path / "file").write_text("")
    assert main(MODULE, ["--output", str(tmp_path / "file" / "out")]) == 2
    told = capsys.readouterr().err.strip()
    assert f"{tmp_path / 'file'} is a file, where a folder is needed" in told
    assert "\n" not in told


# --- the command line


def test_an_input_without_tokenizer_is_refused_with_the_way_to_get_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    assert main(MODULE, ["--input", str(SAMPLE), "--output", str(tmp_path / "out")]) == 2
    told = capsys.readouterr().err
    assert "--tokenizer is missing" in told
    assert f"python -m pipelines.train_tokenizer --input {SAMPLE}" in told


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (["--input", "/nowhere/at/all", "--tokenizer", "tiktoken:x"], "/nowhere/at/all"),
        (["--input", str(SAMPLE), "--tokenizer", "sentencepiece:/no.model"], "no file /no.model"),
        (["--languages", "chinese"], 'write "zh"'),
        (["--lid-model", "/no.ftz"], "/no.ftz does not exist"),
        (["--zork"], "unknown flag --zork"),
        (["--validation", "0.2"], "--validation 0.2"),
    ],
)
def test_what_a_person_gets_wrong_is_told_in_one_paragraph(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], flags: list[str], told: str
):
    assert main(MODULE, [*flags, "--output", str(tmp_path / "out")]) == 2
    error = capsys.readouterr().err
    assert told in error
    assert "Traceback" not in error
    assert len(error.strip().splitlines()) == 1


@pytest.mark.slow
def test_the_plain_command_runs_from_any_folder(tmp_path: Path):
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    done = subprocess.run(
        [sys.executable, "-m", MODULE, "--runner=DirectRunner"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "531 read = 509 kept + 20 dropped + 2 quarantined" in done.stderr
    assert "8  dropped: duplicate" in done.stderr
    assert "WARNING" not in done.stderr
    assert (tmp_path / "build" / "wudao" / "manifest.json").exists()
