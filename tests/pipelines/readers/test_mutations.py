"""Damaged at random, a file is refused in one paragraph or costs what is damaged."""

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.pipelines.readers.mutations import files, outcome

EACH = int(os.environ.get("MUTATIONS", "50"))
"""How many of each file are tried."""


@pytest.mark.parametrize("name", [name for name in files() if "a.zip" not in name])
def test_undamaged(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(files()[name])
    expected = "refused" if name.endswith((".arrow", "zipped.jsonl")) else "same"
    assert outcome(tmp_path / name).split()[0] == expected


@pytest.mark.nightly
def test_no_mutation_ends_a_run_without_words(tmp_path: Path) -> None:
    """No crash, no traceback, and no change in silence where a format shows changes."""
    module = "tests.pipelines.readers.mutations"
    done = subprocess.run(
        [sys.executable, "-m", module, str(tmp_path), "0", str(EACH)],
        capture_output=True,
        text=True,
        check=False,
    )
    outcomes = [line.split(maxsplit=3) for line in done.stdout.splitlines()]
    assert (done.returncode, len(outcomes)) == (0, EACH * len(files())), done.stderr[-2000:]
    worst = [line for line in outcomes if line[2] in ("TRACEBACK", "SILENT")]
    assert worst == []
    counts = Counter(line[2] for line in outcomes)
    assert min(counts["damage"], counts["refused"]) > len(outcomes) // 5
