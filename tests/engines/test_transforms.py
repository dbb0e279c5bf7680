"""A pipeline of transforms makes the same dataset on every engine."""

import os
import sys
from pathlib import Path

import pytest

from shards.manifest import read_manifest
from tests.engines.inputs import write
from tests.engines.processes import started
from tests.engines.runs import ROOT, finished
from tests.pipelines.runs import content

FLAGS = ("--dedup", "exact", "--languages", "zh,en", "--language-threshold", "0.5")


@pytest.mark.parametrize("engine", ["prism", pytest.param("job_server", marks=pytest.mark.nightly)])
def test_every_engine_makes_the_dataset_of_the_command(
    request: pytest.FixtureRequest, tmp_path: Path, engine: str
) -> None:
    flags = request.getfixturevalue(engine)
    corpus = write("wudao", tmp_path / "wudao")
    sizes = ["--split-bytes", "8000", "--shards", "4"]
    expected = finished(
        "pipelines.wudao", ["--input", corpus, *sizes, *FLAGS], tmp_path / "expected"
    )
    made, log = tmp_path / "made", tmp_path / "made.log"
    command = [sys.executable, "-m", "tests.engines.composed", corpus, made, *flags]
    with started(command, log=log, env={**os.environ, "PYTHONPATH": str(ROOT)}, cwd=ROOT) as run:
        assert run.wait(timeout=300) == 0, log.read_text(errors="replace")
    (ours,), (theirs,) = (read_manifest(path).generations for path in (made, expected.output))
    assert ours.accounting == theirs.accounting
    assert generation(made) == generation(expected.output)


def generation(output: Path) -> dict[str, str]:
    """The hash of every file of a dataset's generation, whatever that is called."""
    folder = read_manifest(output).generations[0].name
    return {
        name.removeprefix(folder): digest
        for name, digest in content(output).items()
        if name.startswith(folder)
    }
