import math
from pathlib import Path

from tests.trainer.checkpoints.test_saver import GOOD, saver, steps
from trainer.bad_losses import BadLosses
from trainer.checkpoints.checkpoint import BAD_STREAK, read_list
from trainer.log import RunLog


def test_too_many_in_a_row(tmp_path: Path) -> None:
    log = RunLog(tmp_path, step=0, steps=9, show=False)
    bad = BadLosses(3, most=2)
    told = []
    for step, loss in enumerate((1.0, math.nan, 1.0, math.inf, math.nan), 1):
        bad.count(loss, step=step, is_finite=math.isfinite(loss), log=log)
        told.append((bad.total, bad.streak, bad.are_too_many))
    log.close()
    assert told == [(3, 0, False), (4, 1, False), (4, 0, False), (5, 1, False), (6, 2, True)]
    _, saving = saver(tmp_path)
    for step in (2, 3):
        saving.save(step=step, state=GOOD)
    bad.condemn(saving, step=5)
    streaks = [
        read_list(tmp_path / f"step-{step}/whole-00000.json").state[BAD_STREAK]
        for step in steps(tmp_path)
    ]
    assert streaks == [0, 2]
