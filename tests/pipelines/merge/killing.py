"""A run of a sample corpus that is killed at a file event, and the same command again."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

MODULE = "pipelines.wudao"


def check_goes_on(reference: Path, output: Path, *, at: tuple[str, int], phase: str) -> str:
    """Kill a run, check that the same command finishes it, and return what that one says.

    Args:
        reference: A finished run, whose segments the run takes.
        output: Where the run writes.
        at: It is killed at the n-th file of a pattern.
        phase: What its finished tasks are named after.
    """
    shutil.copytree(reference / ".work" / "map", output / ".work" / "map")
    assert _run(*at, output).returncode == -9
    done = len(list((output / ".work" / phase).glob("[!.]*.json")))
    again = _run("never", 1, output)
    assert again.returncode == 0, again.stderr
    if done:
        assert f"{phase}: {done} of " in again.stderr
    return again.stderr


def _run(pattern: str, nth: int, output: Path) -> subprocess.CompletedProcess[str]:
    words = [
        str(Path(__file__).with_name("kill_in_ranges.py")),
        pattern,
        str(nth),
        "kill -9 0",
        MODULE,
    ]
    flags = ["--split-bytes", "12000", "--shards", "8", "--output", str(output)]
    return subprocess.run(
        [sys.executable, *words, *flags],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        env={**os.environ, "EVENTS_SO_FAR": str(output.with_name(f"events-{pattern[:3]}"))},
        start_new_session=True,
    )
