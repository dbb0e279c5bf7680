import shlex
from pathlib import Path

from pipelines.corpus.flags import parse
from pipelines.corpus.recipe import load_recipe
from pipelines.corpus.sources import list_corpora
from pipelines.look.look import look
from pipelines.look.page import command
from tests.pipelines.look.shapes import CHINESE, SHAPES, of_corpus, write


def words(path: Path) -> list[str]:
    seen = look(str(path))
    return shlex.split(command(seen, seen.guesses[0]))


def test_the_field_of_the_text(tmp_path: Path) -> None:
    line = words(of_corpus("text", tmp_path))
    assert line[line.index("--text-field") + 1] == "body"
    lines = tmp_path / "a.txt"
    lines.write_text(f"{CHINESE}\n")
    assert "--text-field" not in words(lines)
    assert "--text-field" not in words(of_corpus("openwebtext", tmp_path / "other"))


def test_a_glob_where_a_folder_has_other_files(tmp_path: Path) -> None:
    write(tmp_path / "deep/data.json", [SHAPES["wudao"]])
    assert words(tmp_path)[4] == f"{tmp_path}/**/*.json", "part-*.json is what WuDao takes"
    (tmp_path / "a.txt").write_bytes(b"\xff\n")
    write(tmp_path / "b.jsonl", [SHAPES["text"]] * 50)
    assert words(tmp_path)[4] == f"{tmp_path}/*.jsonl", "the largest format"


def test_languages_that_would_be_dropped_are_asked_for(tmp_path: Path) -> None:
    french = "Portez ce vieux whisky au juge blond qui fume, et dites que nous viendrons demain."
    path = write(tmp_path / "a.jsonl", [{"text": french * 3}])
    line = words(path)
    assert line[line.index("--languages") + 1] == "fr"
    assert "--languages" not in words(write(path, [{"text": CHINESE}]))


def test_a_run_goes_on_without_empty_files(tmp_path: Path) -> None:
    path = of_corpus("text", tmp_path)
    assert "--skip-unreadable" not in words(tmp_path)
    (tmp_path / "empty.jsonl").touch()
    _, _, module, *flags = words(tmp_path)
    options, _ = parse(load_recipe(module).options, flags, program=module, about="")
    listing, _ = list_corpora(module, options)
    assert [file.path for file in listing.files] == [str(path)]
