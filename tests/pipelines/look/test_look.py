import gzip
import itertools
from pathlib import Path

import pytest

from pipelines.look import look as looking
from pipelines.look.look import MOST_HEADS, ending_of, look
from tests.pipelines.look.shapes import SHAPES, write
from tests.pipelines.real import real


@pytest.mark.parametrize(
    ("name", "ending"),
    [
        ("a/b.c/00.jsonl.zst", ".jsonl.zst"),
        ("a.warc.wet.gz", ".wet.gz"),
        ("part.00017", ""),
        ("LICENSE", ""),
        ("a.gz", ".gz"),
        ("v1.5 of all", ""),
        (".hidden", ""),
    ],
)
def test_endings(name: str, ending: str) -> None:
    assert ending_of(name) == ending


def test_kinds_of_a_folder(tmp_path: Path) -> None:
    write(tmp_path / "deep/a.jsonl", [SHAPES["text"]] * 9)
    write(tmp_path / "b.jsonl", [SHAPES["text"]])
    (tmp_path / "notes.md").write_text("# Notes")
    (tmp_path / "c.warc.gz").write_bytes(gzip.compress(b"WARC/1.0\r\n"))
    (tmp_path / "empty.jsonl").touch()
    (tmp_path / "table.csv").write_text("a,b")
    seen = look(str(tmp_path))
    assert [(kind.ending, kind.num_files, kind.form) for kind in seen.kinds] == [
        (".jsonl", 2, "jsonl"), (".warc.gz", 1, ""), (".md", 1, ""), (".csv", 1, ""),
    ]  # fmt: skip
    assert "WARC" in seen.kinds[1].untaken
    assert "CSV is read once it is Parquet" in seen.kinds[3].untaken
    assert [*seen.refused] == [str(tmp_path / "empty.jsonl")]
    assert seen.kinds[0].records == pytest.approx(10, rel=0.01)
    assert len(seen.files) == 2


def test_only_the_heads_of_a_few_files_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(100):
        write(tmp_path / f"{number:03}.jsonl", [SHAPES["text"]])
    read = []
    look_at = looking.look_at
    monkeypatch.setattr(looking, "look_at", lambda file: read.append(file.path) or look_at(file))
    seen = look(str(tmp_path))
    assert len(read) == MOST_HEADS
    steps = itertools.pairwise(sorted(int(Path(path).stem) for path in read))
    assert {after - before for before, after in steps} == {12, 13}, "over all of them"
    assert seen.kinds[0].records == pytest.approx(100)


def test_files_and_globs_are_taken_by_any_name(tmp_path: Path) -> None:
    path = write(tmp_path / "texts", [SHAPES["text"]])
    for spec in (str(path), f"{tmp_path}/t*", f"named={path}", path.as_uri()):
        assert look(spec).guesses[0].corpus == "text", spec
    assert look(str(tmp_path)).guesses == (), "a folder's files have endings"


def test_real_corpora() -> None:
    corpora = real("corpora")
    names = ("wudao", "pile", "fineweb")
    guessed = [look(str(corpora / name)).guesses[0] for name in names]
    assert tuple(guess.corpus for guess in guessed) == names
    assert all(guess.read == guess.tried for guess in guessed)
