import pytest

from trainer.schedule import CONSTANT, LINEAR, Schedule


def make(**more: object) -> Schedule:
    options = {"peak": 1e-4, "warmup": 7000, "decay": 175_000, "floor": 0.1}
    return Schedule(**{**options, **more})  # type: ignore[arg-type]  # a table of options


# THUDM/GLM's AnnealingLR with lr 1e-4, 175,000 steps, warm-up .04, ratio .1, run as it is.
REFERENCE = {3500: 5e-5, 7000: 1e-4, 91_000: 5.5e-5, 175_000: 1e-5, 250_000: 1e-5}


@pytest.mark.parametrize(("step", "rate"), REFERENCE.items())
def test_cosine_is_the_reference_s(step: int, rate: float) -> None:
    assert make().rate(step) == pytest.approx(rate, rel=1e-12)


def test_the_first_step_learns() -> None:
    assert make().rate(1) == pytest.approx(1e-4 / 7000)
    assert make(warmup=0).rate(1) == pytest.approx(1e-4, rel=1e-6)


def test_linear_stops_at_its_floor() -> None:
    linear = make(shape=LINEAR, warmup=0, decay=100)
    assert linear.rate(50) == pytest.approx(1e-4 * 0.55)
    assert linear.rate(100) == linear.rate(250) == pytest.approx(1e-5)


def test_constant_warms_up_and_stays() -> None:
    constant = make(shape=CONSTANT, warmup=10, decay=1)
    assert [constant.rate(step) for step in (5, 10, 9999)] == [5e-5, 1e-4, 1e-4]
