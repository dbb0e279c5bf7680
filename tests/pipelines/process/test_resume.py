"""An unfinished run's splits are used again, for files on disk and behind URLs."""

import json
import os
import shutil
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from fsspec.implementations.memory import MemoryFileSystem

from pipelines.corpus.options import Options
from pipelines.execute.records import read_record
from pipelines.job.build import build
from pipelines.process.processor import ProcessRecord
from shards.records import seal
from shards.storage.files import write_json
from tests.pipelines.runs import TEXT, page, small_lines, touch, write_lines


def mapped(options: Options) -> int:
    """Run a command after removing the manifest, and return how many splits it processes."""
    Path(options.output, "manifest.json").unlink(missing_ok=True)
    build(TEXT, options)
    tasks = json.loads(Path(options.output, "report.json").read_bytes())["stages"]["map"]
    return int(tasks["all"] - tasks["finished_before"])


def test_a_finished_split_is_used_while_its_bytes_are_the_same(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "in" / "a.jsonl", map(page, range(12)))
    content, times = path.read_bytes(), path.stat()
    other = content.replace("打磨".encode(), "磨光".encode(), 1)
    options = small_lines(tmp_path / "out", path.parent, keep_segments=True)
    number = mapped(options)
    assert number > 4
    path.write_bytes(other)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert mapped(options) == 0, "a file of the same time is not read"
    path.write_bytes(content)
    touch(path)
    assert mapped(options) == 0
    shutil.copytree(path.parent, tmp_path / "copy", copy_function=shutil.copyfile)
    assert mapped(replace(options, input=(str(tmp_path / "copy"),))) == 0
    path.write_bytes(other)
    touch(path)
    assert mapped(options) == 1
    path.write_bytes(content + b"\n")
    assert mapped(options) == number


def test_a_split_that_failed_is_mapped_again(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "in" / "a.jsonl", map(page, range(12)))
    options = small_lines(tmp_path / "out", path.parent, keep_segments=True)
    mapped(options)
    record = min((tmp_path / "out" / ".work" / "map").glob("*.json"))
    found = read_record(ProcessRecord, record)
    failed = replace(found.splits[0], failure="it ended")
    write_json(record, seal(replace(found, splits=(failed,))))
    assert mapped(options) == 1


def test_a_file_behind_a_url_is_used_while_its_bytes_are_the_same(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "a.jsonl", map(page, range(12)))
    system = MemoryFileSystem()
    options = small_lines(tmp_path / "out", "memory://resumed/a.jsonl", keep_segments=True)
    content = path.read_bytes()
    other = content.replace("打磨".encode(), "磨光".encode(), 1)
    found, etag = [], datetime(2026, 1, 1, tzinfo=UTC)
    for held, days in ((content, 0), (other, 0), (content, 1), (other, 2), (other, 3)):
        system.pipe("/resumed/a.jsonl", held)
        system.store["/resumed/a.jsonl"].created = etag + timedelta(days=days)
        found.append(mapped(options))
    system.store.clear()
    assert found == [found[0], 0, 0, 1, 0]
    assert found[0] > 4
