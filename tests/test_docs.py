"""Checks the files, modules, commands and links in the pages."""

import importlib
import re
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

import shards.__main__
from pipelines.job.command import main
from shards.commands.table import COMMANDS
from shards.manifest import read_manifest
from tests import evidence_page, flags_page
from tests.test_readme import Command, commands, main_job, make_place

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "README.zh.md", *sorted((ROOT / "docs").glob("*.md"))]
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
PATH = re.compile(r"(?<![\w/.-])(?:pipelines|shards|trainer|tests|docs|\.ci)/[\w./-]*\w\.\w+")
IMPORT = re.compile(r"^from ((?:pipelines|shards|trainer)[\w.]*) import", re.MULTILINE)
FACE = re.compile(r"^from (pipelines|shards|trainer) import ([\w, ]+)$", re.MULTILINE)
MODULE = re.compile(r"python -m ((?:pipelines|shards|trainer)[a-z_.]*[a-z])\b")
COMMAND = re.compile(r"(?:^\$ |`)corpusmill ([a-z]+(?:-[a-z]+)*)(?=[\s`])", re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_and_modules_that_a_page_names_exist(page: Path) -> None:
    text = page.read_text("utf-8")
    paths = {path for path in PATH.findall(text) if "NAME" not in path}
    assert {path for path in paths if not (ROOT / path).exists()} == set()
    for name in {*IMPORT.findall(text), *MODULE.findall(text)}:
        path = ROOT / name.replace(".", "/")
        assert path.with_suffix(".py").exists() or (path / "__init__.py").exists(), name


def test_commands_that_a_page_names_exist() -> None:
    named = {name for page in PAGES for name in COMMAND.findall(page.read_text("utf-8"))}
    assert {"wudao", "completion"} <= named
    assert named - {"wudoa"} <= {*COMMANDS, "completion", "run", "shards"}


def test_names_that_pages_import_are_public() -> None:
    imported = [names for page in PAGES for names in FACE.findall(page.read_text("utf-8"))]
    assert len(imported) > 8
    for package, names in imported:
        public = {*importlib.import_module(package).__all__}
        assert {name.strip() for name in names.split(",")} <= public


def test_links_between_pages_lead_somewhere() -> None:
    links = 0
    for page in [*PAGES, *NOTEBOOKS]:
        for target, anchor in re.findall(r"\]\(([\w./-]+)?(?:#([\w-]+))?\)", page.read_text()):
            linked = (page.parent / target).resolve() if target else page
            assert linked.exists(), f"{page.name} -> {target}"
            if anchor:
                assert anchor in anchors(linked), f"{page.name} -> {linked.name}#{anchor}"
            links += 1
    assert links > 100


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, by GitHub's rules."""
    headings = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.MULTILINE)
    plain = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
    return {heading.replace(" ", "-") for heading in plain}


def test_the_corpus_of_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (ROOT / "docs" / "own.md").read_text("utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    (source,) = (block for block in blocks if "CORPUS = " in block)
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "my_notes.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path / "code")
    (tmp_path / "notes").mkdir()
    lines = [f'{{"body": "the note number {i} of quite a few", "author": "me"}}' for i in range(50)]
    (tmp_path / "notes" / "a.jsonl").write_text("\n".join([*lines, '{"body": "short"}', "{}"]))
    flags = ["--input", tmp_path / "notes", "--output", tmp_path / "out", "--languages", "all"]
    flags += ["--tokenizer", f"sentencepiece:{ROOT / 'pipelines/sample/sample.model'}"]
    try:
        assert main("my_notes", [*map(str, flags), "--max-reject-rate", "5%"]) == 0
    finally:
        sys.modules.pop("my_notes", None)
    account = read_manifest(tmp_path / "out").generations[0].accounting["notes"]
    assert account["read"] == 52
    assert account["dropped"]["too-short"] == 1
    assert account["quarantined"] == {"missing-field": 1}


def test_the_targets_of_make_are_shown() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    targets = re.findall(r"^([a-z-]+):.*?## (.*)$", makefile, re.MULTILINE)
    assert len(targets) > 10
    page = (ROOT / "docs" / "development.md").read_text("utf-8")
    (shown,) = re.findall(r"\$ make help\n(.*?)```", page, re.DOTALL)
    assert shown.splitlines() == [f"{name:<13} {text}" for name, text in targets]


DATASET = "docs/dataset.md"
of_python_3_11 = pytest.mark.skipif(
    sys.version_info[:2] != (3, 11),
    reason="the page shows a dataset of Python 3.11: another one's Unicode has another identity",
)


@pytest.mark.slow
@of_python_3_11
@pytest.mark.parametrize(
    ("page", "headings", "flags", "names"),
    [
        (
            "docs/loading.md",
            ["## place", "## trace"],
            ["--shards", "8"],
            ["place", "trace", "trace"],
        ),
        (DATASET, ["## python -m shards"], [], ["inspect", "stats", "verify"]),
    ],
    ids=["loading", "dataset"],
)
def test_a_page_shows_the_output_of_its_commands(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    *,
    page: str,
    headings: list[str],
    flags: list[str],
    names: list[str],
) -> None:
    monkeypatch.chdir(make_place(tmp_path))
    assert main("pipelines.wudao", [*main_job()[0].split()[3:], *flags]) == 0
    every = [(each, each.text.split()) for heading in headings for each in commands(page, heading)]
    shown = [(each, words) for each, words in every if "build/wudao" in words]
    assert [words[3] for _, words in shown] == names
    capsys.readouterr()
    for command, words in shown:
        # The bytes of tables depend on pyarrow's version, and the speed depends on the machine.
        lines = (re.sub(r"^ *[\d,]+  (?=\S)", "…", line) for line in command.shown)
        counts = (re.sub(r"[\d,]+ bytes, \d+ MB/s", "…", line) for line in lines)
        assert shards.__main__.main(words[3:]) == 0
        Command(command.text, tuple(counts)).check(capsys.readouterr().out)
    if page == DATASET:
        check_script((ROOT / page).read_text("utf-8"), capsys)


def check_script(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Check that the Python code of a page prints the text in the code's comments."""
    section = page.partition("\n## Reading it\n")[2].partition("\n## ")[0]
    script = "".join(re.findall(r"```python\n(.*?)```", section, re.DOTALL))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Megatron warns about missing libraries
        exec(script, {})
    printed = re.findall(r"^# (.*)$", script, re.MULTILINE)
    assert len(printed) == 4
    # The page does not show the last line, the fate of every record.
    assert capsys.readouterr().out.splitlines()[:-1] == printed


@pytest.mark.parametrize("made", [flags_page, evidence_page], ids=["flags", "evidence"])
def test_a_generated_page_is_up_to_date(made: Any) -> None:
    assert made.page() == made.PAGE.read_text("utf-8"), f"python -m {made.__name__} --write"
