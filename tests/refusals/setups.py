"""Setups of rows: functions that fill a folder with inputs, datasets and damaged files."""

import atexit
import fcntl
import hashlib
import json
import re
import shutil
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from tests.forks import ROOT
from tests.refusals.refusal import Refusal
from tests.refusals.runner import content_hashes, run

MODEL = ROOT / "pipelines" / "sample" / "sample.model"
TOKENIZER = f"--tokenizer sentencepiece:{MODEL}"
"""The flag that selects a valid tokenizer."""

Setup = Callable[[Path], object]


def all_of(*setups: Setup) -> Setup:
    """Return a setup that applies several setups, one after the other."""

    def fill(folder: Path) -> None:
        for setup in setups:
            setup(folder)

    return fill


def with_file(path: str, content: str | bytes = "") -> Setup:
    """Return the setup that writes a file; text is encoded as UTF-8."""

    def fill(folder: Path) -> None:
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode() if isinstance(content, str) else content)

    return fill


def page(number: int) -> dict[str, Any]:
    """Return a record in WuDao's format that is long enough to be kept."""
    text = f"第{number}号工坊的老师傅每天清晨打开木门，先给炉子添上炭火，再把昨夜泡好的竹篾取出来。"
    more = f"他说，编号{number}的篮子要编三天，一天起底，一天收边，一天打磨，急不得。"
    return {"id": number, "title": f"工坊{number}", "dataType": "手艺", "content": text + more * 3}


PAGES = json.dumps([page(number) for number in range(6)], ensure_ascii=False)
LINES = "".join(
    json.dumps({"text": page(number)["content"]}, ensure_ascii=False) + "\n" for number in range(6)
)

wudao = with_file("in/part-1.json", PAGES)
"""A folder `in` with a file in WuDao's format."""
lines = with_file("in/part-1.jsonl", LINES)
"""A folder `in` with JSON lines for pipelines.text."""


def made_once(folder: Path, name: str, make: Setup) -> Path:
    """Return the folder that a setup has filled, once per session for all test processes.

    Args:
        folder: The folder of a row, below the session's folder.
        name: A name for the setup.
        make: The setup that fills it.
    """
    sessions = [path for path in folder.parents if re.fullmatch(r"pytest-\d+", path.name)]
    made = (sessions[0] if sessions else _temporary_folder()) / f"refusals-{name}"
    with made.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = made.with_suffix(".done")
        if not done.exists():
            shutil.rmtree(made, ignore_errors=True)
            made.mkdir()
            make(made)
            done.touch()
    return made


def copy_of(name: str, make: Setup, *parts: str) -> Setup:
    """Return a setup that copies parts of a folder that `made_once` fills."""

    def fill(folder: Path) -> None:
        made = made_once(folder, name, make)
        for part in parts:
            copy = shutil.copy if (made / part).is_file() else _copy_folder
            copy(made / part, folder / part)

    return fill


def _copy_folder(source: Path, target: Path) -> None:
    shutil.copytree(source, target, symlinks=True)


@cache
def _temporary_folder() -> Path:
    """Return a temporary folder that is deleted at the end of this process."""
    folder = Path(tempfile.mkdtemp(prefix="refusals-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def run_command(folder: Path, command: str) -> None:
    """Run a command, and check that it succeeds."""
    done = run(Refusal(name="setup", command=command, message=""), folder)
    assert done.code == 0, f"{command}\n{done.err}"


def after_command(command: str, setup: Setup) -> Setup:
    """Return a setup that copies the results of a command, which runs once, in a setup's folder."""

    def make(folder: Path) -> None:
        setup(folder)
        run_command(folder, command)

    def fill(folder: Path) -> None:
        made = made_once(folder, _name(command, setup), make)
        shutil.copytree(made, folder, symlinks=True, dirs_exist_ok=True)
        inputs = folder / "data" / "inputs.json"  # the input files have moved as well
        if inputs.exists():
            inputs.write_text(inputs.read_text().replace(f"{made}/", f"{folder}/"))

    return fill


@cache
def _name(command: str, setup: Setup) -> str:
    """Return a name for a command and its setup that is the same in all processes."""
    with tempfile.TemporaryDirectory() as folder:
        setup(Path(folder))
        started = {
            path: content.replace(folder, "")
            for path, content in content_hashes(Path(folder)).items()
        }
    return hashlib.sha256(f"{command} {sorted(started.items())}".encode()).hexdigest()[:16]


dataset = after_command(f"pipelines.wudao --input in {TOKENIZER} --output data", wudao)
"""A folder `in`, and `data`, the dataset that pipelines.wudao builds from it."""
