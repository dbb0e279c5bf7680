"""The console script does the same as python -m."""

import importlib.util
import re
import subprocess
from pathlib import Path

import pytest

from shards.commands.table import COMMANDS, PROGRAM
from tests.python import ROOT, python

SCRIPT = """
import signal, sys
from shards.console import main

signal.signal(signal.SIGINT, signal.default_int_handler)  # pytest may run where it is ignored
sys.exit(main())
"""
CORPUS = """
import os, signal, sys, time
from pipelines.corpus import Document, InputFormat, Options, CorpusSpec, text_columns
from pipelines.job.command import main

CORPUS = CorpusSpec(
    name="notes", about="Notes.", pattern="*.json", options=Options,
    input_format=InputFormat(format="json", text_fields=("text",)),
    documents=lambda record, options: (Document(record["text"], {}),), provenance=text_columns(),
)

if __name__ == "__main__":
    sys.exit(main("my_notes", sys.argv[1:]))
"""


def run(*words: str, at: Path, script: str = SCRIPT) -> subprocess.CompletedProcess[str]:
    """Run the console script, which is in a different folder, in a folder."""
    path = at / "bin" / PROGRAM
    path.parent.mkdir(exist_ok=True)
    path.write_text(script)
    return python(path, *words, at=at)


def test_every_command_is_a_module_that_can_be_run_and_every_one_has_a_name() -> None:
    for name, entry in COMMANDS.items():
        assert re.fullmatch(r"(shards )?[a-z]+(-[a-z]+)*", name)
        assert name == entry.name
        assert importlib.util.find_spec(entry.module) is not None
    runnable = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__main__")
        for package in ("pipelines", "shards", "trainer")
        for path in (ROOT / package).rglob("*.py")
        if "\nif __name__ ==" in path.read_text("utf-8")
    }
    assert len(runnable) > 20
    lists = {"pipelines", "trainer"}
    assert runnable == lists | {entry.module for entry in COMMANDS.values()}


def test_the_list_of_commands_loads_no_library(tmp_path: Path) -> None:
    script = SCRIPT.replace(
        "sys.exit(main())",
        "main(); print({'apache_beam', 'huggingface_hub', 'shtab', 'torch'} & {*sys.modules})",
    )
    for words in ([], ["--help"]):
        done = run(*words, at=tmp_path, script=script)
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith("usage: corpusmill COMMAND …\n")
        assert done.stdout.endswith("set()\n")
        for entry in COMMANDS.values():
            assert f"\n  {entry.name} " in done.stdout
            assert entry.about in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 90


def test_an_installed_corpus_is_a_command(tmp_path: Path) -> None:
    (tmp_path / "my_notes.py").write_text(CORPUS)
    about = tmp_path / "notes-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: notes\nVersion: 1\n")
    (about / "entry_points.txt").write_text("[corpusmill.corpora]\nmy-notes = my_notes:CORPUS\n")
    path = f"sys.path.insert(0, {str(tmp_path)!r})\n"
    script = SCRIPT.replace("\nsignal.signal", f"\n{path}\nsignal.signal")
    listed = run(at=tmp_path, script=script)
    assert "installed corpora:\n  my-notes " in listed.stdout
    helped = run("my-notes", "--help", at=tmp_path, script=script)
    assert helped.stdout.startswith("usage: corpusmill my-notes --input "), helped.stderr
    refused = run("my-note", at=tmp_path, script=script)
    assert refused.stderr.startswith("corpusmill: there is no command 'my-note'. Did you mean my-n")


@pytest.mark.parametrize("name", ["trainer.py", "shards/__init__.py"])
def test_files_with_names_of_packages_are_not_taken_for_them(name: str, tmp_path: Path) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("raise SystemExit('mine')")
    done = run("plot", "nothing", at=tmp_path)
    assert done.stderr.startswith("corpusmill plot: nothing has no ")


def test_ctrl_c_reaches_the_command(tmp_path: Path) -> None:
    pressed = "lambda record, options: os.kill(os.getpid(), signal.SIGINT) or time.sleep(60)"
    corpus = re.sub("documents=.*", f"documents={pressed}, provenance=text_columns(),", CORPUS)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "my_notes.py").write_text(corpus)
    (tmp_path / "notes.json").write_text('[{"text": "x"}]')
    model = f"sentencepiece:{ROOT / 'pipelines/sample/sample.model'}"
    done = run("run", "my_notes", "--input", "notes.json", "--tokenizer", model, at=tmp_path)
    assert done.returncode == 130
    stopped = "\ncorpusmill run my_notes: stopped; run the same command to continue\n"
    assert done.stderr.endswith(stopped)
