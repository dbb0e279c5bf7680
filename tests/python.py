"""Starts a new Python process that finds this code."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def python(*words: object, at: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """Run Python with arguments in a folder; `env` adds environment variables."""
    return subprocess.run(
        [sys.executable, *map(str, words)],
        cwd=at,
        env={**os.environ, "PYTHONPATH": str(ROOT), **env},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
