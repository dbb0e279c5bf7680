"""Tests jobs on Flink: slots, processes and errors."""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.engines.inputs import write
from tests.engines.runs import COMMON, completed_run
from tests.python import ROOT, python

FILTER = """
import os
from pathlib import Path

def note(batch):
    with Path({path!r}).open("a") as log:
        log.writelines(f"{{os.getpid()}}\\n" for _ in range(batch.num_rows))
    return [None] * batch.num_rows
"""


def flags_for(folder: Path) -> list[object]:
    return ["--input", write("wudao", folder / "wudao"), "--split-bytes", "5000", "--shards", "8"]


def test_each_slot_has_a_process_that_does_its_share(
    job_server: Sequence[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "pids"
    (tmp_path / "noting.py").write_text(FILTER.format(path=str(log)))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    own = ["--filter", "noting:note"]
    completed_run("pipelines.wudao", [*flags_for(tmp_path), *own, *job_server], tmp_path / "out")
    texts: defaultdict[str, int] = defaultdict(int)
    for pid in log.read_text().split():
        texts[pid] += 1
    assert len(texts) == 2
    assert min(texts.values()) > sum(texts.values()) / 10


def test_a_user_error_of_a_plan_comes_through_flink_word_for_word(
    job_server: Sequence[str], tmp_path: Path
) -> None:
    source = tmp_path / "in.jsonl"
    good, bad = '{"title": "a", "content": "A text."}', '{"title": 1}'
    source.write_text(f"[{', '.join([good, *[bad] * 40])}]")
    command = ["-m", "pipelines.wudao", *COMMON, "--input", source]
    said = []
    for number, flags in enumerate(([], [*job_server])):
        output = tmp_path / "out"
        done = python(*command, "--output", output, *flags, at=ROOT)
        assert done.returncode == 2, (number, done.stderr)
        said.append(done.stderr.splitlines()[-1])
    assert "cannot be read" in said[0]
    assert said[0] == said[1]
