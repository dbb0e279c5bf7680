import itertools
import json
import re
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from pipelines import cp_wudao
from pipelines.corpus.recipe import SAMPLE
from pipelines.cp_wudao import PickCounts, pick_below, pick_least, write_picked
from pipelines.inputs.files import InputFile, match_inputs
from pipelines.segments.identity import hash_bound
from shards.console import run_module
from shards.errors import UserError

main = partial(run_module, "pipelines.cp_wudao")

NAMES = ["part-2021a.json", "part-2022.json", "sub/part-2023.json", "sub/part-2024.json"]


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    folder = tmp_path / "corpus"
    for part, name in enumerate(NAMES):
        records = [{"id": 100 * part + index, "content": "好" * index} for index in range(25)]
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(records), encoding="utf-8")
    return folder


def files_in(folder: Path) -> dict[str, bytes]:
    paths = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def ids_in(folder: Path) -> set[int]:
    return {record["id"] for raw in files_in(folder).values() for record in json.loads(raw)}


def copy(corpus: Path, output: Path, *arguments: str) -> int:
    return main(["--input", str(corpus), "--output", str(output), *arguments])


def test_tops_up_with_the_same_files_every_time(corpus: Path, tmp_path: Path) -> None:
    steps, source = [], files_in(corpus)
    for number in ("1", "3", "3", "2", "4"):
        assert copy(corpus, tmp_path / "toy", number) == 0
        steps.append(files_in(tmp_path / "toy"))
    assert [len(step) for step in steps] == [1, 3, 3, 3, 4]
    assert all(step.items() <= source.items() for step in steps)
    for number, step in (("1", steps[0]), ("3", steps[1])):
        copy(corpus, tmp_path / f"once-{number}", number)
        assert files_in(tmp_path / f"once-{number}") == step
    firsts: set[str] = set()
    for seed in range(8):
        copy(corpus, tmp_path / f"seed-{seed}", "1", "--seed", str(seed))
        firsts.update(files_in(tmp_path / f"seed-{seed}"))
    assert len(firsts) > 1


def test_counts_what_is_there_and_deletes_nothing(
    corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    toy = tmp_path / "toy"
    toy.mkdir()
    own = {"part-own.json": b"[]", "notes.txt": b"mine", NAMES[0]: b"[{}]"}
    for name, raw in own.items():
        (toy / name).write_bytes(raw)
    assert copy(corpus, toy, "3") == 0
    assert len(files_in(toy)) == 4
    assert own.items() <= files_in(toy).items()
    out, error = capsys.readouterr()
    assert out == (
        f"3 files, 0.0 MB in {toy} (1 copied, 2 there before); "
        f"next: python -m pipelines.wudao --input {toy} --tokenizer ...\n"
    )
    assert error.startswith("1/1 ")


def test_more_than_there_is_copies_all(
    corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert copy(corpus, tmp_path / "toy", "10") == 0
    assert files_in(tmp_path / "toy") == files_in(corpus)
    assert "4 files, 0.0 MB in" in (out := capsys.readouterr().out)
    assert "which is all of them (10 were asked for)" in out


def test_interrupted_copy_leaves_no_half_file(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("shards.storage.files.Handle.write", stop)
    assert copy(corpus, tmp_path / "toy", "2") == 130
    assert files_in(tmp_path / "toy") == {}
    monkeypatch.undo()
    assert copy(corpus, tmp_path / "toy", "2") == 0
    assert files_in(tmp_path / "toy").items() <= files_in(corpus).items()


@pytest.mark.parametrize("flag", ["--documents", "--fraction"])
def test_documents_nest(flag: str, corpus: Path, tmp_path: Path) -> None:
    amounts = {"--documents": ("10", "40"), "--fraction": ("10%", "0.5")}[flag]
    small, large = (tmp_path / "small", tmp_path / "large")
    for folder, amount in zip((small, large), amounts, strict=True):
        assert copy(corpus, folder, flag, amount) == 0
        before = files_in(folder)
        assert copy(corpus, folder, flag, amount) == 0
        assert files_in(folder) == before
        assert set(before) <= set(NAMES)
    assert ids_in(small) < ids_in(large)
    if flag == "--documents":
        assert (len(ids_in(small)), len(ids_in(large))) == (10, 40)


def test_all_documents(corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert copy(corpus, tmp_path / "a", "--documents", "1k") == 0
    assert "100 documents in 4 files, 0.0 MB in" in (out := capsys.readouterr().out)
    assert "all of them (1000 were asked for)" in out
    assert copy(corpus, tmp_path / "b", "--fraction", "1") == 0
    assert files_in(tmp_path / "a") == files_in(tmp_path / "b")
    assert ids_in(tmp_path / "a") == ids_in(corpus)


def test_damage_is_named_in_the_closing_line(
    corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = corpus / NAMES[1]
    path.write_bytes(path.read_bytes().replace(b'"id": 103', b'"id": 0103'))
    assert copy(corpus, tmp_path / "toy", "--fraction", "1") == 0
    assert "99 documents in 4 files, 0.0 MB in" in (out := capsys.readouterr().out)
    assert ", 1 damaged stretches left out; next" in out
    assert ids_in(tmp_path / "toy") == {
        part + index for part in (0, 100, 200, 300) for index in range(25)
    } - {103}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], r"one of the arguments N --documents --fraction is required"),
        (["2", "--documents", "3"], r"not allowed with"),
        (["0"], r"argument N: 0 is not at least 1.*--help lists every flag"),
        (["two"], r"argument N: 'two' is not a whole number"),
        (["--fraction", "2"], r"--fraction: '2' is not a share: a number from 0 to 1"),
        (["--fraction", "0"], r"None of 100 documents falls into the share"),
        (["1", "--input", "/no/where"], r"/no/where does not exist"),
        (["1", "--bogus"], r"unknown flag --bogus"),
    ],
)
def test_mistakes_cost_exit_code_two(
    arguments: list[str],
    message: str,
    corpus: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert copy(corpus, tmp_path / "toy", *arguments) == 2
    error = capsys.readouterr().err
    last = error.splitlines()[-1]
    assert last.startswith("pipelines.cp_wudao: ")
    assert re.search(message, last)
    assert not (tmp_path / "toy").exists()


def test_mixed_documents_are_refused(
    corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    toy = tmp_path / "toy"
    assert copy(corpus, toy, "--documents", "20") == 0
    before = files_in(toy)
    assert copy(corpus, toy, "--documents", "60") == 2
    assert "already exists and holds other documents" in capsys.readouterr().err
    assert before.items() <= files_in(toy).items()
    (toy / "part-own.json").write_bytes(b"[]")
    assert copy(corpus, toy, "--documents", "20") == 2
    assert "holds part-own.json, which this input does not have" in capsys.readouterr().err


def test_input_and_output_lie_apart(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for output in (corpus, corpus.parent, corpus / "toy"):
        assert copy(corpus, output, "9") == 2
        assert "apart from the input" in (told := capsys.readouterr().err) or "lies in" in told
    assert not (corpus / "toy").exists()


def test_nothing_is_copied_to_a_place_outside_of_the_output(
    corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    glob = corpus / "s*" / ".." / ".." / corpus.name / "part-*.json"
    assert copy(glob, toy := tmp_path / "toy", "9") == 2
    assert "was found through '..'" in capsys.readouterr().err
    assert not toy.exists()


def test_defaults_are_the_sample_and_build_toy(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert Path(cp_wudao.__file__).parent / "sample" == SAMPLE
    parsed = cp_wudao.CopyWudao.parse(["1"], "x")
    assert (parsed.input, str(parsed.output), parsed.seed) == (str(SAMPLE), "build/toy", 0)
    monkeypatch.chdir(tmp_path)
    assert main(["2", "--input", str(corpus)]) == 0
    assert len(files_in(tmp_path / "build" / "toy")) == 2


def test_runs_as_a_module(corpus: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pipelines.cp_wudao", "1", "--input", str(corpus)]
    done = subprocess.run(
        [*command, "--output", str(tmp_path / "toy")],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(cp_wudao.__file__).parents[1],
    )
    assert done.stdout.startswith("1 file, ")


@pytest.fixture
def files(tmp_path: Path) -> list[InputFile]:
    for part in range(3):
        records = [{"id": 100 * part + index, "content": "好" * index} for index in range(50)]
        text = json.dumps(records, ensure_ascii=part == 0, indent=part or None)
        (tmp_path / f"part-{part}.json").write_text(text, encoding="utf-8")
    return match_inputs([str(tmp_path)], pattern="part-*.json", default_name="wudao")


def keys(places: np.ndarray) -> set[tuple[int, int]]:
    return set(zip(places["file"].tolist(), places["offset"].tolist(), strict=True))


def test_shares_nest_and_have_about_their_size(files: list[InputFile]) -> None:
    file, counts = files[1], PickCounts()
    picks = [
        keys(pick_below(file, hash_bound(share), seed=0, counts=counts))
        for share in (0, 0.1, 0.5, 1)
    ]
    assert all(small < large for small, large in itertools.pairwise(picks))
    assert [len(pick) for pick in picks[::3]] == [0, 50]
    assert 15 < len(picks[2]) < 35
    assert counts == PickCounts(records=200)
    assert keys(pick_below(file, hash_bound(0.5), seed=1, counts=counts)) != picks[2]


@pytest.mark.parametrize("batch", [1, 7, 1 << 16])
def test_least_are_those_of_least_hash(
    files: list[InputFile], batch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cp_wudao, "_BATCH", batch)
    every = pick_least(files, 1000, seed=0, counts=PickCounts())
    assert len(every) == 150
    assert every.tolist() == sorted(every.tolist(), key=lambda place: place[1:3])
    for number in (1, 10, 149, 150):
        counts = PickCounts()
        least = pick_least(files, number, seed=0, counts=counts)
        ranked = np.sort(every, order="hash")[:number]
        assert keys(least) == keys(ranked)
        assert counts.records == 150


def test_least_agree_with_the_share_they_are(files: list[InputFile]) -> None:
    least = pick_least(files, 40, seed=3, counts=PickCounts())
    limit = int(least["hash"].max()) + 1
    for index, file in enumerate(files):
        share = pick_below(file, limit, seed=3, counts=PickCounts())
        assert share["offset"].tolist() == least["offset"][least["file"] == index].tolist()


def test_written_records_keep_their_bytes(files: list[InputFile], tmp_path: Path) -> None:
    for index, file in enumerate(files):
        raw = Path(file.path).read_bytes()
        places = pick_below(file, hash_bound(0.3), seed=0, counts=PickCounts())
        path = tmp_path / "out" / f"{index}.json"
        write_picked(file, places, path)
        spans = zip(places["offset"], places["length"], strict=True)
        records = [raw[offset : offset + length] for offset, length in spans]
        assert records
        assert path.read_bytes() == b"[\n" + b",\n".join(records) + b"\n]\n"


def test_damage_is_counted_and_left_out(files: list[InputFile], tmp_path: Path) -> None:
    path = Path(files[0].path)
    path.write_bytes(path.read_bytes().replace(b'"id": 7,', b'"id": 07,')[:-30])
    (file,) = match_inputs([str(path)], pattern="*", default_name="wudao")
    counts = PickCounts()
    places = pick_below(file, hash_bound(1), seed=0, counts=counts)
    assert counts == PickCounts(records=48, damages=2)
    write_picked(file, places, tmp_path / "out.json")
    ids = [record["id"] for record in json.loads((tmp_path / "out.json").read_bytes())]
    assert ids == [index for index in range(49) if index != 7]


def test_another_file_is_left_alone(files: list[InputFile], tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    few, many = (
        pick_below(files[0], hash_bound(f), seed=0, counts=PickCounts()) for f in (0.3, 0.6)
    )
    write_picked(files[0], few, path)
    before = path.read_bytes()
    write_picked(files[0], few, path)
    with pytest.raises(UserError, match=r"out.json already exists and holds other documents"):
        write_picked(files[0], many, path)
    assert path.read_bytes() == before
    assert {entry.name for entry in tmp_path.iterdir()} == {
        "out.json", "part-0.json", "part-1.json", "part-2.json",
    }  # fmt: skip
