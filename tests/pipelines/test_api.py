import json
import logging
import subprocess
import sys
import time
from pathlib import Path

import pytest

import pipelines
from pipelines import Built, build, estimate
from pipelines.wudao import WudaoOptions
from shards.errors import UserError

ROOT = Path(__file__).parents[2]
SCRIPT = """
print("begun", __name__)
from pipelines import build
built = build("wudao", output="out", workers=2, split_bytes=12_000)
print(len(built.dataset.documents()))
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """The result of a call of build, after checking that no reported time exceeds the call's."""
    output, began = tmp_path_factory.mktemp("built") / "out", time.time()
    made = build("wudao", output=output, shards=2, validation="5%", keep_dropped=True)
    report, whole = json.loads((output / "report.json").read_text()), time.time() - began
    times = (made.seconds, report["elapsed"], *report["seconds"].values())
    assert all(0 <= seconds <= whole + 0.1 for seconds in times)
    return made


def test_a_call_finds_the_dataset_complete_and_leaves_logs_alone(
    built: Built, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(built.dataset.directory.parent)  # type: ignore[arg-type]
    root, beam = logging.getLogger(), logging.getLogger("apache_beam")
    monkeypatch.setattr(beam, "level", logging.INFO)
    before = [*root.handlers], root.level, logging.getLogger("corpusmill").level, beam.level
    again = build("wudao", output="out", shards=2, validation=0.05, keep_dropped=True)
    assert before == (
        [*root.handlers], root.level, logging.getLogger("corpusmill").level, beam.level,
    )  # fmt: skip
    assert again.manifest == built.manifest
    assert again.account == built.account
    assert repr(again.dataset).startswith("Dataset('out', manifest 1: ")


@pytest.mark.slow
def test_a_script_needs_no_guard(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    ran = subprocess.run(
        [sys.executable, "script.py"],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert ran.stdout == "begun __main__\n484\n", ran.stderr


def test_options_are_the_dataclass_of_the_command(built: Built) -> None:
    assert {*pipelines.__all__} < {*dir(pipelines)}
    output = built.dataset.directory
    options = WudaoOptions(output=output, shards=2, validation=0.05, keep_dropped=True)
    assert build(options).manifest == built.manifest
    assert estimate(options).documents > 400
    with pytest.raises(UserError, match="pass either an options object, or the name"):
        build(options, seed=1)
