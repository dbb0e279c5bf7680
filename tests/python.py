"""Python started anew, with this code, as a shell starts it."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def python(*words: object, at: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """Run Python with some words in a folder; `env` is added to the environment."""
    return subprocess.run(
        [sys.executable, *map(str, words)],
        cwd=at,
        env={**os.environ, "PYTHONPATH": str(ROOT), **env},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
