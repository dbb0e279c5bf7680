import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
def test_the_plain_command_loads_neither_beam_nor_pandas_unless_it_is_asked_to(
    tmp_path: Path,
) -> None:
    script = """
import sys
from pipelines.run.command import main
flags = sys.argv[1:]
code = main("pipelines.wudao", flags)
sys.exit(code or repr({"apache_beam", "pandas", "numba"} & {*sys.modules}))
"""
    root = Path(__file__).parents[3]
    for flags in [], ["--runner=DirectRunner"]:
        folder = tmp_path / str(len(flags))
        folder.mkdir()
        done = subprocess.run(
            [sys.executable, "-c", script, *flags],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(root)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert "531 read = 509 kept + 20 dropped + 2 quarantined" in done.stderr
        assert "WARNING" not in done.stderr
        assert (folder / "build" / "wudao" / "manifest.json").exists()
        *_, loaded = done.stderr.splitlines()
        assert "apache_beam" in loaded if flags else loaded == "set()"
