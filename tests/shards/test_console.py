"""The console script: the same as python -m, under a name."""

import configparser
import os
import signal
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

import shards.__main__
from shards import console
from shards.program import COMMANDS, PROGRAM

ROOT = Path(__file__).parents[2]
SCRIPT = """
import signal, sys
from shards.console import main

signal.signal(signal.SIGINT, signal.default_int_handler)  # pytest may run where it is ignored
sys.exit(main())
"""
CORPUS = """
import sys
from pipelines.corpus import Document, Options, Reading, Recipe, always, strings
from pipelines.run.command import main

RECIPE = Recipe(
    name="notes", about="Notes.", pattern="*.json", options=Options,
    reading=always(Reading(format="json", text_fields=("text",))),
    documents=lambda record, options: (Document(record["text"], {}),), provenance=strings(),
)

if __name__ == "__main__":
    sys.exit(main("my_notes", sys.argv[1:]))
"""


def run(*words: str, at: Path, script: str = SCRIPT) -> subprocess.CompletedProcess[str]:
    """Run the console script in a folder; it lies in another one."""
    path = at / "bin" / PROGRAM
    path.parent.mkdir(exist_ok=True)
    path.write_text(script)
    return subprocess.run(
        [sys.executable, str(path), *words],
        cwd=at,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_entry_point_is_the_script() -> None:
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    scripts = setup["options.entry_points"]["console_scripts"].split()
    assert scripts == [PROGRAM, "=", "shards.console:main"]
    assert callable(console.main)


def test_the_list_of_commands_loads_no_library(tmp_path: Path) -> None:
    script = SCRIPT.replace(
        "sys.exit(main())", "main(); print({'numpy', 'shtab'} & {*sys.modules})"
    )
    for words in ([], ["--help"]):
        done = run(*words, at=tmp_path, script=script)
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith("usage: corpusmill COMMAND …\n")
        assert done.stdout.endswith("set()\n")
        for command in COMMANDS.values():
            assert f"\n  {command.name} " in done.stdout
            assert command.about in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 90


def test_the_version(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", [PROGRAM, "--version"])
    assert console.main() == 0
    assert capsys.readouterr().out.startswith(f"corpusmill {metadata.version(PROGRAM)}, Python 3.")


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("wudoa", "Did you mean wudao? "),
        ("cc_news", "Did you mean cc-news? "),
        ("pipelines.pile", "Did you mean pile? "),
        ("Train", "Did you mean train"),
        ("xyzzy", "corpusmill --help lists all"),
    ],
)
def test_a_word_that_is_no_command(
    word: str, hint: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", [PROGRAM, word])
    assert console.main() == 2
    told = capsys.readouterr().err
    assert told.startswith(f"corpusmill: there is no command {word!r}. {hint}")
    assert told.endswith("corpusmill --help lists all\n")


@pytest.mark.parametrize("package", ["pipelines", "trainer"])
def test_a_package_lists_its_commands(package: str, capsys: pytest.CaptureFixture[str]) -> None:
    for words in ([], ["--help"]):
        assert console.list_commands(package, words) == 0
        shown = capsys.readouterr().out
        assert shown.startswith(f"usage: python -m {package}.COMMAND …\n")
        for command in COMMANDS.values():
            line = f"  {command.module} "
            assert (line in shown) == command.module.startswith(f"{package}."), command


def test_a_command_behind_a_space_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert console.list_commands("pipelines", ["wudoa"]) == 2
    assert " Did you mean python -m pipelines.wudao? " in capsys.readouterr().err


def test_a_command_is_what_python_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["inspect", str(tmp_path / "nothing")]
    done = run("shards", *words, at=tmp_path)
    assert done.returncode == shards.__main__.main(words) == 2
    assert done.stderr == f"corpusmill {capsys.readouterr().err}"


def test_a_corpus_of_ones_own(tmp_path: Path) -> None:
    (tmp_path / "my_notes.py").write_text(CORPUS)
    assert run("run", "my_notes", "--help", at=tmp_path).stdout.startswith(
        "usage: corpusmill run my_"
    )
    assert "there is no module 'my_note'" in run("run", "my_note.x", at=tmp_path).stderr
    assert "name the module of your corpus" in run("run", at=tmp_path).stderr


def test_an_installed_corpus_is_a_command(tmp_path: Path) -> None:
    (tmp_path / "my_notes.py").write_text(CORPUS)
    about = tmp_path / "notes-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: notes\nVersion: 1\n")
    (about / "entry_points.txt").write_text("[corpusmill.corpora]\nmy-notes = my_notes:RECIPE\n")
    path = f"sys.path.insert(0, {str(tmp_path)!r})\n"
    script = SCRIPT.replace("\nsignal.signal", f"\n{path}\nsignal.signal")
    listed = run(at=tmp_path, script=script)
    assert "installed corpora:\n  my-notes " in listed.stdout
    helped = run("my-notes", "--help", at=tmp_path, script=script)
    assert helped.stdout.startswith("usage: corpusmill run my_notes"), helped.stderr
    refused = run("my-note", at=tmp_path, script=script)
    assert refused.stderr.startswith("corpusmill: there is no command 'my-note'. Did you mean my-n")


@pytest.mark.parametrize("name", ["trainer.py", "shards/__init__.py"])
def test_files_with_names_of_packages_are_not_taken_for_them(name: str, tmp_path: Path) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("raise SystemExit('mine')")
    done = run("shards", "inspect", "nothing", at=tmp_path)
    assert done.stderr.startswith("corpusmill shards: nothing does not exist")
    refused = run("run", "my_notes", at=tmp_path)
    assert refused.returncode == 2
    assert f"{tmp_path / name} has the name of a part of corpusmill" in refused.stderr


WAITS = """
import time
from shards.command import exit_code

def work():
    print("working", flush=True)
    time.sleep(60)

raise SystemExit(exit_code("waits", work, stopped="nothing was done"))
"""


def test_ctrl_c_reaches_the_command(tmp_path: Path) -> None:
    (tmp_path / "waits.py").write_text(WAITS)
    (tmp_path / PROGRAM).write_text(SCRIPT)
    with subprocess.Popen(
        [sys.executable, str(tmp_path / PROGRAM), "run", "waits"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "working\n"
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=60)
    assert process.returncode == 130
    assert error == "\nwaits: stopped; nothing was done\n"


def test_the_file_of_a_module_is_no_module(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my_notes.py").write_text("raise SystemExit('it ran')\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [PROGRAM, "run", "my_notes.py"])
    assert console.main() == 2
    assert "my_notes.py is a file: name its module, my_notes" in capsys.readouterr().err
