"""A run that is killed, whenever and whichever of its processes, goes on as if it had not been."""

import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from pipelines.run.ledger import NAME
from pipelines.wudao import RECIPE
from tests.nightly import a_few
from tests.pipelines.dedup.pages import related_pages
from tests.pipelines.runs import AT, FLAGS, MODULE, run, shipped, write_pages, write_wudao

pytestmark = pytest.mark.slow

IN_RANGES = Path(__file__).with_name("kill_in_ranges.py")
"""at.py on a run whose segments are cut by ranges of the order."""

OWN = [
    *("--tokenizer", RECIPE.sample_tokenizer, "--languages", "all", "--language-threshold", "0"),
    *("--validation", "0.02", "--shards", "4", "--split-bytes", "40000"),
]


@dataclass(frozen=True)
class Scene:
    """A command that is killed."""

    flags: list[str]
    whole: Path
    """What it makes in peace."""
    begun: Path | None = None
    """The dataset that it adds to."""


def near(folder: Path) -> list[str]:
    """Pages of which many are versions of others."""
    for part in range(3):
        pages = related_pages(random.Random(11), 300)[part::3]
        records = [{"uniqueKey": "", "title": "", "content": page} for page in pages]
        write_wudao(folder / "in" / f"part-{part}.json", records)
    return [*OWN, "--input", str(folder / "in"), "--dedup", "minhash"]


def components(folder: Path) -> list[str]:
    return [*near(folder), "--minhash-threshold", "0", "--clusters", "components"]


def appended(folder: Path) -> list[str]:
    """A second generation, some of whose pages are those of the first."""
    flags = [*OWN, "--input", str(folder / "in"), "--append", "--keep-segments"]
    write_pages(folder / "in" / "part-1.json", *range(20))
    assert run(*flags, "--output", folder / "begun").returncode == 0
    write_pages(folder / "in" / "part-2.json", *range(15, 40))
    return flags


def every_tokens(folder: Path) -> list[str]:
    """More than two generations of two sources."""
    flags = [*OWN, "--every-tokens", "6000", "--append"]
    for source, count in (("a", 4), ("b", 2)):
        flags += ["--input", f"{source}={folder / source}"]
        for number in range(count):
            first = 100 * ord(source) + 10 * number
            write_pages(folder / source / f"part-{number}.json", *range(first, first + 12))
    return flags


SCENES = {make.__name__: make for make in (near, components, appended, every_tokens)}

EVENTS = [
    ("sample", 0, r"\.work/map/[0-9a-f]+-0000\.tokens$", 5),
    ("sample", 0, r"\.work/map/[0-9a-f]+-0000\.audit$", 17),
    ("sample", 0, r"\.work/map/[0-9a-f]+\.json$", 30),
    ("sample", 2, r"\.work/map/[0-9a-f]+-0000\.documents$", 9),
    ("sample", 2, r"\.work/map/[0-9a-f]+\.json$", 12),
    ("sample", 0, r"\.work/plan/", 1),
    ("sample", 0, r"\.work/dedup/.*\.drops$", 1),
    ("sample", 0, r"signatures/exact", 1),
    ("sample", 2, r"\.work/dedup/.*\.json$", 1),
    ("sample", 0, r"\.work/drops/.*\.drops$", 1),
    ("sample", 2, r"\.work/drops/.*\.json$", 1),
    ("sample", 0, r"wudao/00002\.bin$", 1),
    ("sample", 0, r"wudao/validation-00000\.arrow$", 1),
    ("sample", 0, r"audit/wudao-00005", 1),
    ("sample", 2, r"wudao/0000.\.idx$", 6),
    ("sample", 0, r"\.work/merge/.*\.json$", 7),
    ("sample", 2, r"\.work/merge/.*\.json$", 9),
    ("sample", 0, r"vocabulary-", 1),
    ("sample", 2, r"inputs\.json$", 1),
    ("sample", 0, r"report\.html$", 1),
    ("sample", 0, r"/manifest\.json$", 1),
    ("sample", 0, r"rmtree .*\.work$", 1),
    ("ranges", 0, r"\.work/ranges/.*\.audit$", 1),
    ("ranges", 0, r"\.work/ranges/.*\.json$", 3),
    ("ranges", 0, r"\.work/plan/", 2),
    ("ranges", 0, r"\.work/merge/.*\.json$", 2),
    ("near", 0, r"\.work/map/.*\.bands$", 3),
    ("near", 2, r"\.work/map/.*\.slots$", 2),
    ("near", 0, r"\.work/dedup/.*\.json$", 9),
    ("near", 2, r"\.work/drops/.*\.drops$", 1),
    ("near", 0, r"signatures/band-07-00000.arrow", 1),
    ("near", 0, r"signatures/slots-00000.arrow", 1),
    ("components", 0, r"\.work/dedup/.*\.edges$", 4),
    ("components", 2, r"\.work/components/.*\.json$", 1),
    ("components", 0, r"\.work/components/.*\.drops$", 1),
    ("appended", 0, r"/ledger\.json$", 1),
    ("appended", 2, r"\.work/dedup/.*\.json$", 1),
    ("appended", 0, r"g0002-.*/00000\.bin$", 1),
    ("every_tokens", 2, r"g0002-.*/00000\.idx$", 1),
    ("appended", 0, r"inputs\.json$", 1),
    ("appended", 0, r"/manifest\.json$", 1),
    ("every_tokens", 0, r"rmtree .*\.work$", 1),
]
"""Scene, workers (0: all in the driver), and the n-th file that is about to get its name."""


@pytest.fixture(scope="module")
def scene(reference: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Scene]:
    """Return a scene by its name, made when a test first asks for it."""
    sample = Scene([*FLAGS, "--keep-segments"], reference)
    known = {"sample": sample, "ranges": sample}

    def found(name: str) -> Scene:
        if name not in known:
            folder = tmp_path_factory.mktemp(name)
            flags, begun = SCENES[name](folder), folder / "begun"
            if begun.exists():
                shutil.copytree(begun, folder / "whole")
            done = run(*flags, "--output", folder / "whole")
            assert done.returncode == 0, done.stderr
            known[name] = Scene(flags, folder / "whole", begun if begun.exists() else None)
        return known[name]

    return found


def finished(output: Path, phase: str) -> dict[str, int]:
    """When the records of a phase's finished tasks were written."""
    folder = output / ".work" / phase
    return {path.name: path.stat().st_mtime_ns for path in folder.glob("[!.]*.json")}


@pytest.mark.parametrize("event", a_few(EVENTS, of_each=3), ids=lambda each: f"{each[0]}-{each[2]}")
def test_killed_anywhere_the_same_command_makes_the_same_bytes(
    scene: Callable[[str], Scene], tmp_path: Path, event: tuple[str, int, str, int]
) -> None:
    name, workers, pattern, nth = event
    command, output, ends = scene(name), tmp_path / "out", "rmtree" in pattern
    if command.begun:
        shutil.copytree(command.begun, output)
    flags = [each for each in command.flags if not ends or each != "--keep-segments"]
    flags += [*(["--workers", str(workers)] if workers else []), "--output", str(output)]
    script = IN_RANGES if name == "ranges" else AT
    killed = run(*flags, script=[script, pattern, nth, "kill -9 0"])
    assert killed.returncode == -9, killed.stderr
    assert ends or shipped(output) != shipped(command.whole)
    splits, shards, cut = (finished(output, phase) for phase in ("map", "merge", "ranges"))
    mapped = len(splits) == len(finished(command.whole, "map"))
    if name == "sample" and not ends:
        assert splits
        assert mapped == (".work/map" not in pattern)

    again = run(*flags, script=[script, "never", 1, "true"])
    assert again.returncode == 0, again.stderr
    assert shipped(output) == shipped(command.whole)
    assert [*output.rglob(".tmp-*"), *output.glob(NAME)] == []
    if "--keep-segments" in flags:
        assert splits.items() <= finished(output, "map").items(), "splits were mapped again"
        assert shards.items() <= finished(output, "merge").items(), "shards were made again"
        assert not mapped or "map 100 %" not in again.stderr, "it must not map anything again"
    assert (f"ranges: {len(cut)} of " in again.stderr) == bool(cut)


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
