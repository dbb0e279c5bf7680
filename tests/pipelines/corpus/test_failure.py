"""Errors in a user's own corpus: a paragraph with the line, wherever its code fails."""

import importlib
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pipelines.corpus.code import code_hash
from pipelines.corpus.options import Options
from pipelines.corpus.recipe import SAMPLE, is_module, load_recipe
from pipelines.corpus.sources import Corpus
from pipelines.inputs.split import Split
from pipelines.map.intake import Intake
from pipelines.readers.record import Record
from shards.errors import UserError

SPLIT = Split(
    source="s", path="/a.jsonl", relative="a.jsonl", file_bytes=99, start=0, end=99, mtime_ns=7
)
HEAD = """import sys
from pipelines.corpus import Document, Options, Reading, Recipe, Rejected, always, strings

def documents(record, options):
    {body}

RECIPE = Recipe(
    name="faulty", about="Faulty.", pattern="*.jsonl", options=Options,
    reading={reading}, provenance={provenance}, documents=documents,
)

if __name__ == "__main__":
    from pipelines.run.command import main
    sys.exit(main("faulty", sys.argv[1:]))
"""
READING, PROVENANCE = "always(Reading(text_fields=('body',)))", "strings('author')"

Write = Callable[[str], None]


def code(body: str, *, reading: str = READING, provenance: str = PROVENANCE) -> str:
    return HEAD.format(body=body, reading=reading, provenance=provenance)


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Write]:
    """Writes the module `faulty`."""

    def write(text: str) -> None:
        (tmp_path / "faulty.py").write_text(text)
        importlib.invalidate_caches()

    monkeypatch.syspath_prepend(tmp_path)
    yield write
    sys.modules.pop("faulty", None)
    code_hash.cache_clear()


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("return (Document(record['text']),)", r"KeyError: 'text' \(.*faulty\.py:5\)"),
        ("return 1 / 0", r"ZeroDivisionError: division by zero \(.*faulty\.py:5\)"),
        ("return documents(record, options)", r"RecursionError: maximum .*faulty\.py:5\)"),
        ("raise RuntimeError('x' * 5000 + '\\n')", r"RuntimeError: x{300}… \("),
        ("raise AssertionError", r"AssertionError \(.*faulty\.py:5\)"),
        ("return None", "TypeError: 'NoneType' object is not iterable"),
        ("return 'a text'", "AttributeError: 'str' object has no attribute 'text'"),
        ("return (Document(None),)", "TypeError: argument of type 'NoneType'"),
        ("return (Document(b'bytes'),)", "TypeError: a bytes-like object is required"),
        ("return ()", "returns nothing for the record at 7 of /a.jsonl: a record makes"),
        ("return (Document('\\ud800'),)", "fit no table: .*surrogates not allowed"),
        ("return (Document('a', {'author': 5}),)", "fit no table: .*Expected bytes, got a 'int'"),
        ("return (Document('a', [1]),)", "AttributeError|fit no table"),
        ("return (Document('a', reason=5),)", "fit no table: .*Expected bytes, got a 'int'"),
    ],
)
def test_documents(write: Write, body: str, message: str) -> None:
    write(code(body))
    with pytest.raises(UserError, match=message) as told:
        Intake(Corpus("faulty", Options())).read([Record(7, 9, {"body": "a"}, b"{}")], SPLIT)
    assert re.match(r"the corpus faulty: \w+", str(told.value))
    assert len(str(told.value)) < 700
    assert "\n" not in str(told.value)


def test_what_is_right(write: Write) -> None:
    write(code("yield Document(record['body'], {'author': 'me'})"))
    read = Intake(Corpus("faulty", Options())).read([Record(7, 9, {"body": "a"}, b"{}")], SPLIT)
    assert read.batch["text"].to_pylist() == ["a"]
    assert read.batch["author"].to_pylist() == ["me"]


def test_a_generator_may_reject(write: Write) -> None:
    write(code("yield Document('a')\n    raise Rejected('missing-field')"))
    read = Intake(Corpus("faulty", Options())).read([Record(7, 9, {"body": "a"}, b"{}")], SPLIT)
    assert read.reasons.to_pylist() == ["missing-field"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import nowhere_at_all", "cannot be imported: ModuleNotFoundError: No module named"),
        ("RECIPE = 1 / 0", r"cannot be imported: ZeroDivisionError: .*faulty\.py:1\)"),
        ("def documents(:\n", r"cannot be imported: SyntaxError: .*faulty\.py:1\)"),
        ("RECIPE = '\0'", r"cannot be imported: (SyntaxError|ValueError): .*null bytes"),
        ("", "faulty is no corpus"),
        ("RECIPE = 5", "faulty is no corpus"),
        (code("pass").replace("name=", "nam="), "TypeError: .*unexpected keyword argument 'nam'"),
    ],
)
def test_module(write: Write, text: str, message: str) -> None:
    write(text)
    with pytest.raises(UserError, match=message):
        load_recipe("faulty")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("pipelines.wudao", True),
        ("pipelines.nowhere", False),
        ("nowhere.at.all", False),
        ("os.path.x", False),
    ],
)
def test_names_of_modules(name: str, expected: bool) -> None:
    assert is_module(name) is expected


def test_a_package_that_cannot_be_imported(write: Write) -> None:
    write("import nowhere")
    with pytest.raises(UserError, match=r"faulty\.x: its package cannot be imported: Module"):
        is_module("faulty.x")


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"reading": "Reading(text_fields=())"}, "the reading of its recipe fails: TypeError"),
        ({"reading": "lambda options: options.nothing"}, "AttributeError: .*'nothing'"),
        ({"provenance": "{}"}, "the provenance of its recipe fails: TypeError"),
    ],
)
def test_recipe(write: Write, parts: dict[str, str], message: str) -> None:
    write(code("return ()", **parts))
    corpus = Corpus("faulty", Options())
    with pytest.raises(UserError, match=message):
        _ = corpus.columns, corpus.reading


def test_a_module_that_is_never_imported(write: Write, tmp_path: Path) -> None:
    (tmp_path / "other.py").write_text("def (:\n")
    write(code("import other"))
    with pytest.raises(UserError, match=r"other\.py cannot be parsed: SyntaxError.*other\.py:1\)"):
        Corpus("faulty", Options()).facts()


@pytest.mark.slow
@pytest.mark.parametrize("workers", [[], ["--workers", "1"]])
def test_the_command_says_so(write: Write, tmp_path: Path, workers: list[str]) -> None:
    write(code("return (Document(record['text']),)"))
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.jsonl").write_text('{"body": "a"}\n')
    command = [sys.executable, "-m", "faulty", "--input", str(tmp_path / "notes")]
    command += ["--tokenizer", f"sentencepiece:{SAMPLE / 'sample.model'}"]
    command += ["--output", str(tmp_path / "out"), *workers]
    done = subprocess.run(
        command,
        env={"PYTHONPATH": f"{tmp_path}:{Path(__file__).parents[3]}", "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert re.search(
        r"faulty: the corpus faulty: .* KeyError: 'text' \(.*faulty\.py:5\)", done.stderr
    )
