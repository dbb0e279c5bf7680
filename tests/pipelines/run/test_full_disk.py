"""A disk that fills up at any moment: a small file system of its own, really full."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.nightly import a_few
from tests.pipelines.runs import AT, FLAGS, MODULE, shipped

pytestmark = pytest.mark.slow

MOMENTS = [
    ("map", 0, r"\.work/map/[0-9a-f]+-0000\.tokens$", 3),
    ("map", 2, r"\.work/map/[0-9a-f]+-0000\.audit$", 7),
    ("dedup", 0, r"\.work/plan/", 1),
    ("dedup", 0, r"\.work/dedup/.*\.json$", 1),
    ("merge", 0, r"\.work/drops/.*\.json$", 1),
    ("merge", 0, r"wudao/00003\.bin$", 1),
    ("commit", 0, r"\.work/merge/.*\.json$", 9),
    ("commit", 0, r"inputs\.json$", 1),
    ("commit", 0, r"report\.html$", 1),
]
"""The phase that finds no room, the workers, and when the disk is filled to its last byte."""


@pytest.fixture(scope="module")
def namespace() -> list[str]:
    """What runs a command where it may mount a file system that goes with it."""
    unshare = ["unshare", "-rm"]
    tried = subprocess.run([*unshare, "true"], capture_output=True, check=False)
    if tried.returncode:
        pytest.skip(f"no mount namespaces here: {tried.stderr.decode().strip()}")
    return unshare


@pytest.mark.parametrize(
    "moment", a_few(MOMENTS, of_each=3), ids=lambda moment: f"{moment[0]}-{moment[2]}"
)
def test_a_full_disk_is_one_paragraph_and_the_run_goes_on_after_room_is_made(
    reference: Path, tmp_path: Path, namespace: list[str], moment: tuple[str, int, str, int]
) -> None:
    phase, workers, pattern, nth = moment
    disk = tmp_path / "disk"
    disk.mkdir()
    flags = [*FLAGS, *(["--workers", str(workers)] if workers else []), "--output", "out"]
    fill = " 2> /dev/null; ".join(
        f"dd if=/dev/zero bs={size} >> ballast" for size in ("64k", "1k", "1")
    )
    script = f"""
        set -e
        mount -t tmpfs -o size=30m tmpfs {disk}
        cd {disk}
        set +e
        {sys.executable} {AT} '{pattern}' {nth} '{fill}' {MODULE} {" ".join(flags)} 2> ../first
        echo code $?
        find out -name manifest.json -o -name '.tmp-*'
        rm ballast
        {sys.executable} -m {MODULE} {" ".join(flags)} 2> ../second
        echo then $?
        cp -r out ../saved
    """
    done = subprocess.run(
        [*namespace, "sh", "-c", script], capture_output=True, text=True, timeout=180, check=False
    )
    first, second = ((tmp_path / name).read_text() for name in ("first", "second"))
    assert done.stdout.split("\n") == ["code 2", "then 0", ""], (done, first, second)
    (told,) = [line for line in first.splitlines() if line.startswith(MODULE)]
    assert "no space left on the disk that holds" in told
    assert "make room and run the same command again; finished work is kept" in told
    assert "Traceback" not in first
    assert "tasks were finished before" in second
    assert (phase == "map") == ("map 100 %" in second)
    assert shipped(tmp_path / "saved") == shipped(reference)
