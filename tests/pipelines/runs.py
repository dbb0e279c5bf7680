"""Options and files for tests that need a whole run of the sample or of a small input."""

import hashlib
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from pipelines.corpus.spec import SAMPLE
from pipelines.text import TextOptions
from pipelines.wudao import CORPUS, WudaoOptions

MODULE, TEXT = "pipelines.wudao", "pipelines.text"

ABOUT_THE_RUN = {"report.json", "report.html", "inputs.json", ".lock"}


def cut_sample(folder: Path, *, files: int) -> Path:
    """Divide the records of the sample among several arrays, each of which is one split."""
    records = [
        record
        for path in sorted(SAMPLE.glob("part-*.json"))
        for record in json.loads(path.read_bytes())
    ]
    for number in range(files):
        write_wudao(folder / f"part-{number:02}.json", records[number::files])
    return folder


def many_splits(output: Path, sample: Path, **changes: Any) -> WudaoOptions:
    """Return options for the sample with many items and 8 shards, to show the order of work."""
    sizes = {"split_bytes": 12_000, "shards": 8}
    paths = _paths(output, (sample,))
    return WudaoOptions(**{**paths, **sizes, "tokenizer": CORPUS.sample_tokenizer, **changes})


def small(output: Path, *inputs: object, **changes: Any) -> WudaoOptions:
    """Return options for a run on a few pages in any language."""
    return WudaoOptions(**{**_SMALL, **_paths(output, inputs), "split_bytes": 12_000, **changes})


def small_lines(output: Path, *inputs: object, **changes: Any) -> TextOptions:
    """Return options, like those of `small`, for JSON lines, which are cut into splits."""
    given = {"text_field": "content", "split_bytes": 1000}
    return TextOptions(**{**_SMALL, **_paths(output, inputs), **given, **changes})


_SMALL: dict[str, Any] = {
    "tokenizer": CORPUS.sample_tokenizer,
    "languages": ("all",),
    "language_threshold": 0.0,
    "validation": 0.0,
    "shards": 1,
}


def _paths(output: Path, inputs: tuple[object, ...]) -> dict[str, Any]:
    return {"output": output, "input": tuple(map(str, inputs))}


def shipped(dataset: Path) -> dict[str, str]:
    """Return the hash of every file of a dataset except any segments that it kept."""
    return {name: digest for name, digest in content(dataset).items() if name[:5] != ".work"}


def content(dataset: Path) -> dict[str, str]:
    """Return the hash of every file of a dataset, including kept segments."""
    return {
        path.relative_to(dataset).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(dataset.rglob("*"))
        if path.is_file() and path.name not in ABOUT_THE_RUN
    }


def write_wudao(path: Path, records: Iterable[Any], *, indent: int | None = None) -> Path:
    """Write a file in WuDao's format."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(list(records), ensure_ascii=False, indent=indent))
    return path


def write_lines(path: Path, records: Iterable[Any]) -> Path:
    """Write JSON lines, with one object per line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = (json.dumps(record, ensure_ascii=False) for record in records)
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def touch(path: Path) -> None:
    """Change the modification time of a file."""
    before = path.stat().st_mtime_ns
    os.utime(path, ns=(before + 10**9, before + 10**9))


def own_text(number: int, size: int = 150) -> str:
    """Return a different text for each number."""
    chosen = np.random.default_rng(number).integers(0x4E00, 0x9F00, size)
    return "".join(map(chr, chosen.tolist()))


def write_pages(path: Path, *numbers: int) -> Path:
    """Write a file with one page for each number, each with a different text."""
    return write_wudao(path, [page(number, own_text(number)) for number in numbers])


def page(number: int, text: str = "") -> dict[str, Any]:
    """Return a record in WuDao's format with more than 100 characters of text."""
    body = (
        text
        or f"第{number}号工坊的老师傅每天清晨打开木门，先给炉子添上炭火，再把昨夜泡好的竹篾取出来。"
    )
    return {
        "id": number,
        "uniqueKey": f"{number:032x}",
        "titleUkey": f"{number:032x}",
        "dataType": "手艺",
        "title": f"工坊{number}",
        "content": body
        + f"他说，编号{number}的篮子要编三天，一天起底，一天收边，一天打磨，急不得。" * 3,
    }
