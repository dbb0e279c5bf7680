"""Folders that rows start from: small inputs, finished datasets, broken files of each kind."""

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
from tests.refusals.runner import run, tree

MODEL = ROOT / "pipelines" / "sample" / "sample.model"
TOKENIZER = f"--tokenizer sentencepiece:{MODEL}"
"""The flag of a tokenizer that is well."""

Scene = Callable[[Path], object]


def together(*scenes: Scene) -> Scene:
    """Return the scene of several, one after the other."""

    def fill(folder: Path) -> None:
        for scene in scenes:
            scene(folder)

    return fill


def holding(path: str, content: str | bytes = "") -> Scene:
    """Return the scene of a file; a text is written as UTF-8."""

    def fill(folder: Path) -> None:
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode() if isinstance(content, str) else content)

    return fill


def page(number: int) -> dict[str, Any]:
    """Return a record as WuDao has them, long enough to be kept."""
    text = f"第{number}号工坊的老师傅每天清晨打开木门，先给炉子添上炭火，再把昨夜泡好的竹篾取出来。"
    more = f"他说，编号{number}的篮子要编三天，一天起底，一天收边，一天打磨，急不得。"
    return {"id": number, "title": f"工坊{number}", "dataType": "手艺", "content": text + more * 3}


PAGES = json.dumps([page(number) for number in range(6)], ensure_ascii=False)
LINES = "".join(
    json.dumps({"text": page(number)["content"]}, ensure_ascii=False) + "\n" for number in range(6)
)

wudao = holding("in/part-1.json", PAGES)
"""A folder `in` with a file as WuDao has them."""
lines = holding("in/part-1.jsonl", LINES)
"""A folder `in` with JSON lines, which pipelines.text reads."""


def kept(folder: Path, name: str, make: Scene) -> Path:
    """Return the folder that a scene makes once in a session, for all processes of the tests.

    Args:
        folder: Of a row; the session's folder is above it.
        name: Of the scene.
        make: The scene.
    """
    sessions = [path for path in folder.parents if re.fullmatch(r"pytest-\d+", path.name)]
    made = (sessions[0] if sessions else _own_folder()) / f"refusals-{name}"
    with made.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = made.with_suffix(".done")
        if not done.exists():
            shutil.rmtree(made, ignore_errors=True)
            made.mkdir()
            make(made)
            done.touch()
    return made


def copied(name: str, make: Scene, *parts: str) -> Scene:
    """Return the scene of some files and folders that another scene makes, as `kept` does."""

    def fill(folder: Path) -> None:
        made = kept(folder, name, make)
        for part in parts:
            copy = shutil.copy if (made / part).is_file() else _copy_folder
            copy(made / part, folder / part)

    return fill


def _copy_folder(source: Path, target: Path) -> None:
    shutil.copytree(source, target, symlinks=True)


@cache
def _own_folder() -> Path:
    """Return a folder that ends with this process, of which it keeps only its own files."""
    folder = Path(tempfile.mkdtemp(prefix="refusals-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def left_by(command: str, scene: Scene) -> Scene:
    """Return the scene that a command leaves that starts in another scene; it runs once."""

    def make(folder: Path) -> None:
        scene(folder)
        done = run(Refusal(name="scene", command=command, says=""), folder)
        assert done.code == 0, done.err

    def fill(folder: Path) -> None:
        made = kept(folder, _name(command, scene), make)
        shutil.copytree(made, folder, symlinks=True, dirs_exist_ok=True)
        inputs = folder / "data" / "inputs.json"  # the files are where they were copied to
        if inputs.exists():
            inputs.write_text(inputs.read_text().replace(f"{made}/", f"{folder}/"))

    return fill


@cache
def _name(command: str, scene: Scene) -> str:
    """Return a name for the files that a command leaves: the same in all processes."""
    with tempfile.TemporaryDirectory() as folder:
        scene(Path(folder))
        started = {
            path: content.replace(folder, "") for path, content in tree(Path(folder)).items()
        }
    return hashlib.sha256(f"{command} {sorted(started.items())}".encode()).hexdigest()[:16]


dataset = left_by(f"pipelines.wudao --input in {TOKENIZER} --output data", wudao)
"""A folder `in`, and `data`, the dataset that pipelines.wudao makes of it."""
