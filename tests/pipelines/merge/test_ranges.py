"""Ranges: a dataset has the same bytes whether its groups were cut before merge or not."""

import json
import shutil
from pathlib import Path

import pytest

from pipelines.map import builder
from pipelines.merge import ranges
from pipelines.run.build import build
from shards import range as range_module
from tests.pipelines.merge.test_group import (
    KINDS,
    corpus,
    dataset,
    figures,
    options,
    small_groups,
)
from tests.pipelines.runs import FLAGS, MODULE, run

__all__ = ["corpus"]


@pytest.mark.parametrize(
    ("segments", "shards", "rows", "near", "far"),
    [
        (249, 2048, 1e9, (), ()),  # 3 TB
        (8253, 65_536, 3.3e10, (128,), (128,)),  # 100 TB
        (82_530, 1 << 19, 3.3e11, (64, 64), (64, 64)),  # 1 PB
        (1, 1 << 30, 4e6, (), ()),
        (500, 8192, 2e9, (), (64,)),  # short slices are avoided behind a URL
        (500, 8192, 2e10, (), ()),
    ],
)
def test_cuts_follow_from_segments_and_shards(
    segments: int, shards: int, rows: float, near: tuple[int, ...], far: tuple[int, ...]
) -> None:
    assert ranges.choose_cuts(segments, shards, rows=rows, remote=False) == near
    assert ranges.choose_cuts(segments, shards, rows=rows, remote=True) == far


@pytest.mark.slow
@pytest.mark.parametrize("cuts", [(4,), (2, 4)], ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_ranges_change_no_byte(
    corpus: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    cuts: tuple[int, ...],
) -> None:
    monkeypatch.setattr(builder, "MAX_RECORDS", 7)
    monkeypatch.setattr(range_module, "ROWS_AT_ONCE", 10)
    plain, merged = tmp_path / "plain", tmp_path / "merged"
    build(MODULE, options(corpus, plain, **KINDS[kind]))
    shutil.copytree(plain / ".work" / "map", merged / ".work" / "map")
    small_groups(monkeypatch, rows=14)
    monkeypatch.setattr(ranges, "choose_cuts", lambda *_, **__: cuts)
    build(MODULE, options(corpus, merged, **KINDS[kind]))
    assert dataset(merged) == dataset(plain)
    assert figures(merged) == figures(plain)
    tasks = json.loads((merged / "report.json").read_text())["tasks"]["ranges"]["all"]
    assert len(list((merged / ".work" / "ranges").glob("*.tokens"))) == tasks > 8


@pytest.mark.slow
def test_one_source_may_be_cut_and_another_not(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, merged = tmp_path / "plain", tmp_path / "merged"
    build(MODULE, options(corpus, plain))
    chosen = iter([(4,), ()])
    monkeypatch.setattr(ranges, "choose_cuts", lambda *_, **__: next(chosen))
    build(MODULE, options(corpus, merged))
    assert dataset(merged) == dataset(plain)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pattern", "nth", "phase"),
    [
        (r"\.work/group/.*\.tokens$", 3, "group"),
        (r"\.work/ranges/.*\.tokens$", 3, "ranges"),
        (r"\.work/ranges/.*\.json$", 3, "ranges"),
        (r"\.work/plan/", 3, "ranges"),
        (r"\.work/merge/.*\.json$", 2, "merge"),
    ],
)
def test_killed_at_a_group_or_a_range_the_same_command_goes_on(
    reference: Path, tmp_path: Path, pattern: str, nth: int, phase: str
) -> None:
    output = tmp_path / "out"
    shutil.copytree(reference / ".work" / "map", output / ".work" / "map")
    script = Path(__file__).with_name("kill_in_ranges.py")
    flags = (*FLAGS, "--output", output)
    killed = run(*flags, script=[script, pattern, nth, "kill -9 0"])
    assert killed.returncode == -9, killed.stderr
    done = len(list((output / ".work" / phase).glob("[!.]*.json")))
    again = run(*flags, script=[script, "never", 1, "kill -9 0"])
    assert again.returncode == 0, again.stderr
    assert not done or f"{phase}: {done} of " in again.stderr
    assert "map 100 %" not in again.stderr
    assert phase == "group" or "group 100 %" not in again.stderr
    assert dataset(output) == dataset(reference)
