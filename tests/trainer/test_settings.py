import math

import pytest

from shards.errors import UserError
from trainer.settings import Settings


def test_the_schedule_follows_from_the_steps() -> None:
    schedule = Settings(model="tiny", lr=2e-4, warmup=0.1).schedule_of(200)
    assert (schedule.peak, schedule.warmup, schedule.decay) == (2e-4, 20, 200)
    assert Settings(model="tiny", warmup=30, decay_steps=90).schedule_of(200).warmup == 30


def test_a_warm_up_that_cannot_be() -> None:
    with pytest.raises(UserError, match=r"--warmup -1"):
        Settings(model="tiny", warmup=-1).schedule_of(200)


@pytest.mark.parametrize("given", [{"weight_decay": x} for x in (math.nan, math.inf, -0.1)])
def test_numbers_that_an_optimizer_cannot_take(given: dict[str, float]) -> None:
    with pytest.raises(UserError, match=r"--weight-decay .*: a number from 0 on"):
        Settings(model="tiny", **given)  # type: ignore[arg-type]  # a number, by name
    with pytest.raises(UserError, match=r"--eps .*: a number above 0"):
        Settings(model="tiny", eps=given["weight_decay"])


def test_what_follows_a_corpus() -> None:
    assert Settings(model="tiny", follow=True, at_end="wait").follow_weight == "unseen"
    with pytest.raises(UserError, match="waits for a newer manifest: give --follow"):
        Settings(model="tiny", at_end="wait")
    for weight in ("0", "much", "nan"):
        with pytest.raises(UserError, match=f"--follow-weight {weight}: give unseen, or a number"):
            Settings(model="tiny", follow_weight=weight)
