"""A run whose output has leftovers, or a dataset of the same or of different files and options."""

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from pipelines.corpus.spec import SAMPLE
from pipelines.job.build import build
from shards.errors import UserError
from shards.maintenance.prune import remove_unfinished
from tests.pipelines.runs import (
    MODULE,
    TEXT,
    page,
    small,
    small_lines,
    touch,
    write_lines,
    write_wudao,
)


def test_leftovers_of_killed_attempts_go_and_nothing_else(tmp_path: Path) -> None:
    mark, item = "1" * 32, "2" * 24
    folder = "g0001-00aa"
    stay = ["manifest.json", f"{folder}/s/00000.bin", f".work/map/{item}.json"]
    stay += [f"mine/.tmp-{mark}-manifest.json", ".tmp-1-manifest.json", ".work/map/thesis.txt"]
    gone = [f".tmp-{mark}-manifest.json", f"{folder}/s/.tmp-{mark}-00000.bin"]
    gone += [f".work/map/.tmp-{mark}-{item}.documents", f"{folder}/.tmp-x"]
    for name in (*stay, *gone):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    remove_unfinished(tmp_path)
    left = [p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*") if p.is_file()]
    assert sorted(left) == sorted(stay)


def test_options_are_called_as_flags_name_them_and_files_by_their_names(tmp_path: Path) -> None:
    path = write_wudao(tmp_path / "part-1.json", map(page, range(3)))
    shutil.copyfile(SAMPLE / "sample.model", tmp_path / "own.model")
    given: dict[str, Any] = {
        "tokenizer": f"sentencepiece:{tmp_path / 'own.model'}",
        "quality": ("glm",),
        "threshold": ("glm.min_chars=50",),
    }
    build(MODULE, small(tmp_path / "out", path, **given))
    message = "options: --threshold is glm.min_chars=60, the dataset has glm.min_chars=50. "
    with pytest.raises(UserError, match=message):
        build(MODULE, small(tmp_path / "out", path, **given | {"threshold": ("glm.min_chars=60",)}))
    with (tmp_path / "own.model").open("ab") as file:
        file.write(b"\xfa\x01\x01x")  # a field that the library does not recognise
    label = r"sentencepiece:own.model \(4,096 ids\) \(a file of SHA-256 [0-9a-f]{8}…\)"
    with pytest.raises(UserError, match=f"--tokenizer is .*{label}, the dataset has .*{label}"):
        build(MODULE, small(tmp_path / "out", path, **given))


def test_a_file_is_the_same_by_its_time_or_its_bytes(tmp_path: Path) -> None:
    path, output = write_lines(tmp_path / "a.jsonl", map(page, range(3))), tmp_path / "out"
    whole, times = path.read_bytes(), path.stat()
    other = whole.replace("打磨".encode(), "磨光".encode(), 1)
    options = small_lines(output, path)
    build(TEXT, options)
    before = (output / "manifest.json").stat().st_mtime_ns
    path.write_bytes(other)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    build(TEXT, options)  # the run does not read the file again
    path.write_bytes(whole)
    touch(path)
    build(TEXT, options)
    assert (output / "manifest.json").stat().st_mtime_ns == before
    path.write_bytes(other)
    touch(path)
    with pytest.raises(UserError, match=r"text/a\.jsonl has changed"):
        build(TEXT, options)
