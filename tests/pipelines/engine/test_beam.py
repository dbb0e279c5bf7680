import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
def test_a_script_that_runs_tasks_by_beam_sees_no_warnings_of_it() -> None:
    script = """
import logging
logging.disable(5)
import pipelines.engine.pipeline
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
