import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
def test_a_script_that_builds_a_dataset_sees_no_warning_of_beam() -> None:
    script = """
import logging
logging.disable(5)
from pipelines.run.build import build
assert logging.root.manager.disable == 5
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert (done.stdout, done.stderr) == ("", "")
