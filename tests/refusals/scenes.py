"""Folders that rows start from: small inputs, finished datasets, broken files of each kind."""

import atexit
import json
import shutil
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from tests.refusals.job import ROOT
from tests.refusals.refusal import Refusal
from tests.refusals.runner import run

MODEL = ROOT / "pipelines" / "sample" / "sample.model"
TOKENIZER = f"--tokenizer sentencepiece:{MODEL}"
"""The flag of a tokenizer that is well."""
SAMPLE = ROOT / "pipelines" / "sample"

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


def left_by(command: str, scene: Scene) -> Scene:
    """Return the scene of what a command leaves that starts in another scene; it runs once."""

    def fill(folder: Path) -> None:
        made = _made(command, scene)
        shutil.copytree(made, folder, symlinks=True, dirs_exist_ok=True)
        inputs = folder / "data" / "inputs.json"  # the files lie where they were copied to
        if inputs.exists():
            inputs.write_text(inputs.read_text().replace(f"{made}/", f"{folder}/"))

    return fill


@cache
def _shelf() -> Path:
    """Return a folder that ends with this process."""
    folder = Path(tempfile.mkdtemp(prefix="refusals-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@cache
def _made(command: str, scene: Scene) -> Path:
    """Return the folder that a command leaves which starts in a scene; made once."""
    folder = Path(tempfile.mkdtemp(dir=_shelf()))
    scene(folder)
    done = run(Refusal(name="scene", command=command, says=""), folder)
    assert done.code == 0, done.err
    return folder


dataset = left_by(f"pipelines.wudao --input in {TOKENIZER} --output data", wudao)
"""A folder `in`, and `data`, the dataset that pipelines.wudao makes of it."""
