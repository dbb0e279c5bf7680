"""Intermediate files that are harmed between two runs: the second ends in the same bytes."""

import logging
import re
import shutil
from pathlib import Path

import pytest

from pipelines.run.build import build
from shards import Dataset
from shards.verify import verify
from tests.pipelines.runs import MODULE, many_splits, shipped


def flip(path: Path) -> None:
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 4
    path.write_bytes(raw)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-7])


def empty(path: Path) -> None:
    path.write_bytes(b"")


HARMS = {"flip": flip, "cut": cut, "empty": empty, "remove": Path.unlink}

LEFT = [
    *(
        f".work/map/*.{suffix}"
        for suffix in (
            *("tokens", "documents", "bins", "holdout", "hashes", "slots", "bands"),
            *("audit", "examples", "rejects", "texts", "json"),
        )
    ),
    *(".work/dedup/*.drops", ".work/dedup/*.json"),
    *(".work/drops/*.drops", ".work/drops/*.json", ".work/merge/*.json"),
    *("g*/wudao/*.bin", "g*/wudao/*.idx", "g*/wudao/*.arrow"),
    *("g*/audit/*", "g*/signatures/*", "g*/rejects/*", "g*/dropped/*", ".work/slots/*.json"),
]
"""Every kind of file that a run leaves before its manifest."""


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a run leaves that was killed when it was about to write its manifest."""
    output = tmp_path_factory.mktemp("left") / "dataset"
    build(MODULE, many_splits(output, dedup="minhash", keep_dropped=True, keep_segments=True))
    return output


def task_of(path: Path) -> str:
    """The name of the task that left a file of intermediate results, or the number of its shard."""
    found = re.match(r"[0-9a-f]{24}", path.name) or re.search(r"\d{5}(?=\.)", path.name)
    assert found, path
    return found[0]


@pytest.mark.slow
@pytest.mark.parametrize("harm", HARMS)
@pytest.mark.parametrize("part", range(4))
def test_what_was_harmed_between_two_runs_is_told_and_made_again(
    left: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture, harm: str, part: int
) -> None:
    output = tmp_path / "out"
    shutil.copytree(left, output)
    (output / "manifest.json").unlink()
    kinds = [sorted(output.glob(pattern)) for pattern in LEFT[part::4]]
    victims: list[Path] = []
    for at, kind in enumerate(sorted(kinds, key=len)):  # of different tasks: each is told once
        told = {task_of(path) for path in victims}
        free = [path for path in kind if task_of(path) not in told]
        victims.append(free[at % len(free)])
        HARMS[harm](victims[-1])
    with caplog.at_level(logging.WARNING, "corpusmill"):
        build(MODULE, many_splits(output, dedup="minhash", keep_dropped=True, keep_segments=True))
    assert shipped(output) == shipped(left)
    assert list(verify(Dataset.open(output))) == []
    for victim in victims:
        if victim.suffix != ".json" or harm != "remove":
            assert str(victim) in caplog.text
