import hashlib
import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pipelines.corpus.options import Options
from pipelines.steps.langid import installed_model
from shards.show import DEFAULT_OPTIONS


def test_the_overview_of_a_dataset_knows_the_defaults() -> None:
    for corpus, values in DEFAULT_OPTIONS.items():
        module = f"pipelines.{corpus}"
        usual = importlib.import_module(module).CORPUS.options() if corpus else Options()
        for name, value in values.items():
            default = getattr(usual, name)
            if name == "lid_model":
                default = hashlib.sha256(installed_model().read_bytes()).hexdigest()
            expected = sorted(default) if isinstance(default, tuple) else default
            assert value == expected, (corpus, name)


@pytest.mark.slow
def test_the_plain_command_does_without_pandas(tmp_path: Path) -> None:
    script = """
import sys
from pipelines.job.command import main
code = main("pipelines.wudao", [])
sys.exit(code or repr({"apache_beam", "pandas"} & {*sys.modules}))
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "531 read = 509 kept + 20 dropped + 2 quarantined" in done.stderr
    assert "WARNING" not in done.stderr
    assert (tmp_path / "build" / "wudao" / "manifest.json").exists()
    assert done.stderr.splitlines()[-1] == "{'apache_beam'}"
