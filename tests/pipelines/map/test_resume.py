"""Which splits of an unfinished run are used again, of files on a disk and behind a URL."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from fsspec.implementations.memory import MemoryFileSystem

from pipelines.corpus.options import Options
from pipelines.inputs.files import InputFile
from pipelines.map.resume import unchanged
from pipelines.run.build import build
from tests.pipelines.runs import MODULE, page, small, touch, write_wudao


def mapped(options: Options) -> int:
    """Run a command whose manifest was not written, and return how many splits it maps."""
    Path(options.output, "manifest.json").unlink(missing_ok=True)
    build(MODULE, options)
    tasks = json.loads(Path(options.output, "report.json").read_bytes())["tasks"]["map"]
    return int(tasks["all"] - tasks["finished_before"])


def test_a_finished_split_is_used_while_its_bytes_are_the_same(tmp_path: Path) -> None:
    path = write_wudao(tmp_path / "in" / "part-1.json", map(page, range(12)))
    content = path.read_bytes()
    options = small(tmp_path / "out", path.parent, split_bytes=1000, keep_segments=True)
    number = mapped(options)
    assert number > 4
    assert mapped(options) == 0
    touch(path)
    assert mapped(options) == 0
    shutil.copytree(path.parent, tmp_path / "copy", copy_function=shutil.copyfile)
    assert mapped(replace(options, input=(str(tmp_path / "copy"),))) == 0
    path.write_bytes(content.replace("打磨".encode(), "磨光".encode(), 1))
    touch(path)
    assert mapped(options) == 1
    path.write_bytes(content + b"\n")
    assert mapped(options) == number


def test_a_file_behind_a_url_is_used_while_its_bytes_are_the_same(tmp_path: Path) -> None:
    path = write_wudao(tmp_path / "part-1.json", map(page, range(12)))
    system = MemoryFileSystem()
    options = small(
        tmp_path / "out", "memory://resumed/part-1.json", split_bytes=1000, keep_segments=True
    )
    found = []
    for words in (b"", b"", "磨光".encode(), "磨光".encode()):
        content = path.read_bytes().replace("打磨".encode(), words or "打磨".encode(), 1)
        system.pipe("/resumed/part-1.json", content)  # it gets another etag
        found.append(mapped(options))
    system.store.clear()
    assert found == [found[0], 0, 1, 0]
    assert found[0] > 4


@pytest.mark.parametrize(
    ("now", "before", "same"),
    [
        ((7, ""), (7, ""), True),
        ((8, ""), (7, ""), False),
        ((0, "e"), (0, "e"), True),
        ((0, "e"), (0, "f"), False),
        ((0, ""), (0, ""), False),
        ((7, ""), None, False),
    ],
)
def test_a_file_is_unchanged_by_its_time_or_etag(
    now: tuple[int, str], before: tuple[int, str] | None, same: bool
) -> None:
    time, etag = now
    file = InputFile(source="s", path="/a", relative="a", bytes=1, mtime_ns=time, etag=etag)
    assert unchanged(file, before) == same
