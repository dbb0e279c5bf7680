"""A run that is killed, whenever and whichever of its processes, goes on as if it had not been."""

import subprocess
import sys
from pathlib import Path

import pytest

from shards import Dataset
from tests.nightly import a_few
from tests.pipelines.runs import AT, FLAGS, MODULE, run, shipped

pytestmark = pytest.mark.slow

EVENTS = [
    ("map", 0, r"\.work/map/[0-9a-f]+-0000\.tokens$", 5),
    ("map", 0, r"\.work/map/[0-9a-f]+-0000\.audit$", 17),
    ("map", 0, r"\.work/map/[0-9a-f]+\.json$", 30),
    ("map", 2, r"\.work/map/[0-9a-f]+-0000\.documents$", 9),
    ("map", 2, r"\.work/map/[0-9a-f]+\.json$", 12),
    ("plan", 0, r"\.work/plan/", 1),
    ("dedup", 0, r"\.work/dedup/.*\.drops$", 1),
    ("dedup", 0, r"signatures/exact", 1),
    ("dedup", 2, r"\.work/dedup/.*\.json$", 1),
    ("dedup", 0, r"\.work/drops/.*\.drops$", 1),
    ("dedup", 2, r"\.work/drops/.*\.json$", 1),
    ("merge", 0, r"wudao/00002\.bin$", 1),
    ("merge", 0, r"wudao/validation-00000\.arrow$", 1),
    ("merge", 0, r"audit/wudao-00005", 1),
    ("merge", 2, r"wudao/0000.\.idx$", 6),
    ("merge", 0, r"\.work/merge/.*\.json$", 7),
    ("merge", 2, r"\.work/merge/.*\.json$", 9),
    ("commit", 0, r"vocabulary-", 1),
    ("commit", 2, r"inputs\.json$", 1),
    ("commit", 0, r"report\.html$", 1),
    ("commit", 0, r"/manifest\.json$", 1),
    ("clean", 0, r"rmtree .*\.work$", 1),
    ("ranges", 0, r"\.work/ranges/.*\.audit$", 1),
    ("ranges", 0, r"\.work/ranges/.*\.json$", 3),
    ("ranges", 0, r"\.work/plan/", 2),
    ("ranges", 0, r"\.work/merge/.*\.json$", 2),
]
"""Phase, workers (0: all in the driver), and the n-th file that is about to get its name."""

IN_RANGES = Path(__file__).with_name("kill_in_ranges.py")
"""The same, of a run whose segments are cut by ranges of the order."""


def finished(output: Path, phase: str) -> dict[str, int]:
    """When the records of a phase's finished tasks were written."""
    folder = output / ".work" / phase
    return {path.name: path.stat().st_mtime_ns for path in folder.glob("[!.]*.json")}


@pytest.mark.parametrize(
    "event", a_few(EVENTS, of_each=4), ids=lambda event: f"{event[0]}-{event[2]}"
)
def test_killed_anywhere_the_same_command_makes_the_same_bytes(
    reference: Path,
    tmp_path: Path,
    event: tuple[str, int, str, int],
) -> None:
    phase, workers, pattern, nth = event
    output = tmp_path / "out"
    flags = [*FLAGS, "--keep-segments", *(["--workers", workers] if workers else [])]
    if phase == "clean":
        flags.remove("--keep-segments")
    flags += ["--output", output]
    script = IN_RANGES if phase == "ranges" else AT
    killed = run(*flags, script=[script, pattern, nth, "kill -9 0"])
    assert killed.returncode == -9, killed.stderr
    assert (output / "manifest.json").exists() == (phase == "clean")
    splits, shards, cut = (finished(output, name) for name in ("map", "merge", "ranges"))
    total = len(finished(reference, "map"))
    if phase == "map":
        assert 0 < len(splits) < total
    elif phase != "clean":
        assert len(splits) == total

    again = run(*flags, script=[script, "never", 1, "true"])
    assert again.returncode == 0, again.stderr
    assert shipped(output) == shipped(reference)
    assert Dataset.open(output).manifest.identity == Dataset.open(reference).manifest.identity
    if phase == "clean":
        return
    assert splits.items() <= finished(output, "map").items(), "finished splits were mapped again"
    assert shards.items() <= finished(output, "merge").items(), "finished shards were made again"
    assert (f"ranges: {len(cut)} of " in again.stderr) == bool(cut)
    if len(splits) == total:
        assert "map 100 %" not in again.stderr, "a kill after the map must re-run none of it"
    assert list(output.rglob(".tmp-*")) == []


def test_killing_the_driver_ends_its_workers_and_frees_the_folder(
    reference: Path, tmp_path: Path
) -> None:
    psutil = pytest.importorskip("psutil")
    output = tmp_path / "out"
    command = [sys.executable, "-m", MODULE, *FLAGS, "--workers", "2", "--output", str(output)]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as driver:
        children: list[object] = []
        while driver.poll() is None and not finished(output, "map"):
            children = psutil.Process(driver.pid).children(recursive=True) or children
        assert driver.poll() is None, "the run ended before it could be killed"
        driver.kill()
    assert len(children) >= 2
    assert psutil.wait_procs(children, timeout=20)[1] == []
    again = run(*FLAGS, "--output", output)
    assert again.returncode == 0, again.stderr
    assert "tasks were finished before" in again.stderr
    assert shipped(output) == shipped(reference)
