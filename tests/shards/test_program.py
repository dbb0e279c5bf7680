"""Names of commands: one table, and texts that name commands as they are called."""

import importlib.util
import logging
import re
import sys
from pathlib import Path

import pytest

from shards.command import Parser, exit_code
from shards.errors import UserError
from shards.program import (
    COMMANDS,
    STARTED,
    called,
    called_help,
    called_program,
    started_module,
)
from shards.shown import MessageFormatter, print_lines, print_note, tell

ROOT = Path(__file__).parents[2]


@pytest.fixture
def _started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(STARTED, "1")


def test_every_command_is_a_module_that_can_be_run() -> None:
    for name, command in COMMANDS.items():
        assert re.fullmatch(r"[a-z]+(-[a-z]+)*", name)
        assert name == command.name
        spec = importlib.util.find_spec(command.module)
        assert spec is not None
        assert spec.origin is not None
        source = Path(spec.origin)
        if source.name == "__init__.py":
            source = source.with_name("__main__.py")
        assert 'if __name__ == "__main__":' in source.read_text("utf-8")


def test_every_module_that_can_be_run_has_a_name() -> None:
    runnable = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__main__")
        for package in ("pipelines", "shards", "trainer")
        for path in (ROOT / package).rglob("*.py")
        if "\nif __name__ ==" in path.read_text("utf-8")
    }
    assert len(runnable) > 20
    lists = {"pipelines", "trainer"}
    assert runnable == lists | {command.module for command in COMMANDS.values()}


TEXTS = [
    ("python -m shards prune x deletes them", "corpusmill shards prune x deletes them"),
    ("next: python -m pipelines.cc_news.", "next: corpusmill cc-news."),
    ("python -m pipelines.CORPUS --help", "corpusmill CORPUS --help"),
    ("python -m mine.notes --watch", "corpusmill run mine.notes --watch"),
    ("see python -m\n    trainer.train --help", "see corpusmill train --help"),
    ("(python -m shards)", "(corpusmill shards)"),
    ("ipython -m shards, /x/python -m", "ipython -m shards, /x/python -m"),
]


@pytest.mark.parametrize(("text", "shown"), TEXTS)
@pytest.mark.usefixtures("_started")
def test_texts_name_commands_as_they_were_called(text: str, shown: str) -> None:
    assert called(text) == shown


@pytest.mark.parametrize(("text", "shown"), TEXTS)
def test_texts_stay_where_python_was_called(text: str, shown: str) -> None:
    assert called(text) == text != shown or text == shown


@pytest.mark.usefixtures("_started")
def test_messages_help_and_notes_are_changed_and_texts_are_not(
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = "look at it: python -m shards inspect x"
    record = logging.LogRecord("corpusmill", logging.INFO, "", 1, text, None, None)
    foreign = logging.LogRecord("jieba", logging.INFO, "", 1, text, None, None)
    assert MessageFormatter().format(record) == "look at it: corpusmill shards inspect x"
    assert MessageFormatter().format(foreign) == text
    tell(text)
    print_note(text)
    print_lines([text])
    out, err = capsys.readouterr()
    assert err == "look at it: corpusmill shards inspect x\n"
    assert out == f"look at it: corpusmill shards inspect x\n{text}\n"


@pytest.mark.usefixtures("_started")
def test_a_parser_and_errors_have_the_commands_name(capsys: pytest.CaptureFixture[str]) -> None:
    parser = Parser(prog="python -m pipelines.pile", epilog="Then python -m shards verify.")
    parser.add_argument("--x", help="as python -m trainer.train has it")
    shown = parser.format_help()
    assert shown.startswith("usage: corpusmill pile [-h] [--x X]\n")
    assert "Then corpusmill shards verify." in shown
    assert "as corpusmill train has it" in shown

    def refuse() -> None:
        raise UserError("no")

    for program, name in [("pipelines.pile", "corpusmill pile"), ("cook", "cook")]:
        assert exit_code(program, refuse, stopped="") == 2
        assert capsys.readouterr().err == f"{name}: no\n"


def test_a_program_keeps_its_name_below_python() -> None:
    assert called_program("pipelines.pile") == "pipelines.pile"


@pytest.mark.parametrize(
    ("words", "module"),
    [
        (["-m", "shards", "verify"], "shards"),
        (["-um", "pipelines.pile"], "pipelines.pile"),
        (["-mshards"], "shards"),
        (["-c", "pass"], ""),
        (["-m"], ""),
    ],
)
def test_the_module_that_a_command_line_names(
    words: list[str], module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "orig_argv", ["python", *words])
    assert started_module() == module


@pytest.mark.usefixtures("_started")
def test_help_names_commands_that_it_only_mentions() -> None:
    text = "of pipelines.cc_news alone, as trainer.generate; not pipelines.no_such"
    assert called_help(text) == (
        "of corpusmill cc-news alone, as corpusmill generate; not pipelines.no_such"
    )
    kept = "torchrun -m trainer.train, deepspeed --module trainer.train"
    assert called_help(kept) == kept


def test_help_of_python_m_stays_as_it_is() -> None:
    assert called_help("of pipelines.cc_news alone") == "of pipelines.cc_news alone"
