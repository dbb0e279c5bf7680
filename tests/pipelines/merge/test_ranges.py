"""Ranges: a dataset has the same bytes whether its groups were cut before merge or not."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipelines.map import builder
from pipelines.merge import group, merge, ranges, union
from pipelines.merge.ranges import choose_cuts
from pipelines.run.build import build
from tests.pipelines.merge.test_group import (
    KINDS,
    MODULE,
    corpus,
    dataset,
    figures,
    options,
    small_groups,
)

__all__ = ["corpus"]


@pytest.mark.parametrize(
    ("segments", "shards", "cuts"),
    [
        (249, 2048, ()),  # 3 TB
        (8253, 65_536, (256,)),  # 100 TB
        (82_530, 1 << 19, (128, 128)),  # 1 PB
        (10, 3, ()),
        (1, 1 << 30, ()),
    ],
)
def test_cuts_follow_from_segments_and_shards(
    segments: int, shards: int, cuts: tuple[int, ...]
) -> None:
    for remote in (False, True):
        assert choose_cuts(segments, shards, rows=4e6 * segments, remote=remote) == cuts


def test_short_slices_are_avoided_in_a_storage() -> None:
    assert choose_cuts(500, 8192, rows=2e9, remote=False) == ()
    assert choose_cuts(500, 8192, rows=2e9, remote=True) == (128,)
    assert choose_cuts(500, 8192, rows=2e10, remote=True) == ()


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
    monkeypatch.setattr(merge, "ROWS_AT_ONCE", 10)
    plain, merged = tmp_path / "plain", tmp_path / "merged"
    build(MODULE, options(corpus, plain, **KINDS[kind]))
    shutil.copytree(plain / ".work" / "map", merged / ".work" / "map")
    small_groups(monkeypatch, rows=14)
    monkeypatch.setattr(ranges, "choose_cuts", lambda *_, **__: cuts)
    build(MODULE, options(corpus, merged, **KINDS[kind]))
    assert dataset(merged) == dataset(plain)
    assert figures(merged) == figures(plain)
