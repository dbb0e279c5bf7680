"""If intermediate files are damaged between two runs, the second run gives the same bytes.

Guarantee: Finished work that was harmed between two runs is reported and redone.
"""

import logging
import re
import shutil
from pathlib import Path

import pytest

from pipelines.corpus.options import Options
from pipelines.job.build import build
from shards import Dataset
from shards.maintenance.verify import verify
from tests.pipelines.runs import MODULE, many_splits, shipped


def flip(raw: bytes) -> bytes:
    half = len(raw) // 2
    return raw[:half] + bytes([raw[half] ^ 4]) + raw[half + 1 :]


HARMS = {"flip": flip, "cut": lambda raw: raw[:-7], "empty": lambda _: b"", "remove": None}


def kinds(output: Path) -> list[list[Path]]:
    """Return the files that a run writes before the manifest, by kind of file."""
    found = [path for path in sorted(output.glob("**/*")) if path.is_file()]
    by_kind: dict[tuple[str, str], list[Path]] = {}
    for path in found:
        folder = path.parent.name
        if path.parent != output and folder != "plan":
            by_kind.setdefault((folder, path.suffix), []).append(path)
    assert len(by_kind) == 24
    return [*by_kind.values()]


def options(output: Path, sample: Path) -> Options:
    return many_splits(output, sample, dedup="minhash", keep_dropped=True, keep_segments=True)


@pytest.fixture(scope="module")
def left(sample: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The output of a run that was killed just before it wrote its manifest."""
    output = tmp_path_factory.mktemp("left") / "dataset"
    build(MODULE, options(output, sample))
    return output


def writers_of(output: Path) -> dict[Path, str]:
    """Return each file's item: the id in the file's name, or that of the record that names it."""
    records = {path.stem: path.read_text() for path in sorted((output / ".work").glob("*/*.json"))}
    found = {}
    for path in (path for kind in kinds(output) for path in kind):
        name = path.relative_to(output).with_suffix("").as_posix()
        named = re.match(r"[0-9a-f]{24}", path.name)
        recorded = [item for item, text in records.items() if re.search(rf'"{name}[."]', text)]
        assert named or recorded, path
        found[path] = named[0] if named else recorded[0]
    return found


@pytest.mark.slow
@pytest.mark.parametrize("harm", HARMS)
@pytest.mark.parametrize("part", range(2))
def test_files_harmed_between_two_runs_are_reported_and_made_again(
    left: Path, sample: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture, harm: str, part: int
) -> None:
    output = tmp_path / "out"
    shutil.copytree(left, output)
    (output / "manifest.json").unlink()
    writers = writers_of(output)
    victims: list[Path] = []
    for at, kind in enumerate(sorted(kinds(output)[part::2], key=len)):
        # Each file belongs to a different item, so that each is reported.
        harmed = {writers[path] for path in victims}
        free = [path for path in kind if writers[path] not in harmed]
        victims.append(free[at % len(free)])
        change, raw = HARMS[harm], victims[-1].read_bytes()
        victims[-1].unlink()
        if change:
            victims[-1].write_bytes(change(raw))
    with caplog.at_level(logging.WARNING, "corpusmill"):
        build(MODULE, options(output, sample))
    assert shipped(output) == shipped(left)
    assert list(verify(Dataset.open(output))) == []
    for victim in victims:
        if victim.suffix != ".json" or harm != "remove":
            assert str(victim) in caplog.text
