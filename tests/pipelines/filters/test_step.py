import time

import pytest

from pipelines.filters.step import Clock


def burn(seconds: float) -> None:
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def test_stages_add_up_to_what_the_process_took() -> None:
    clock = Clock()
    before = time.process_time()
    for _ in range(2):
        with clock.time("clean"):
            burn(0.01)
    burn(0.01)
    shares = clock.shares("read")
    assert list(shares) == ["read", "clean"]
    assert shares["clean"] >= 0.02
    assert sum(shares.values()) <= time.process_time() - before + 0.01


def test_a_stage_that_fails_is_counted_too() -> None:
    clock = Clock()
    with pytest.raises(KeyError), clock.time("clean"):
        raise KeyError
    assert "clean" in clock.seconds
