import json
from functools import partial
from pathlib import Path

import pytest

from shards.console import run_module

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
