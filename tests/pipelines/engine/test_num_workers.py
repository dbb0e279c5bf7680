import os

import pytest

from pipelines.engine.workers import num_workers


@pytest.mark.parametrize(
    ("given", "cores", "megabytes", "started"),
    [
        (0, 8, 1, 0),
        (0, 8, 20, 2),
        (0, 8, 10_000, 8),
        (3, 8, 1, 3),
        (12, 2, 10_000, 12),
    ],
)
def test_small_inputs_start_few_workers(
    monkeypatch: pytest.MonkeyPatch, given: int, cores: int, megabytes: int, started: int
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(cores)))
    assert num_workers(given, work_bytes=megabytes << 20) == started
