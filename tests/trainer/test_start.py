from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from shards.errors import UserError
from shards.records import from_json
from shards.run import Run
from tests.trainer.alone import ALONE
from tests.trainer.golden import SHAPE
from trainer.config import Config
from trainer.data import open_data
from trainer.model.model import GLM
from trainer.start import StartedRun, load_weights


def started(configured: Callable[..., Config], *, step: int) -> StartedRun:
    config = configured()
    stepper: Any = SimpleNamespace(micro_batch=2, stage=0)
    return StartedRun(
        config=config,
        ranks=ALONE,
        data=open_data(config),
        schedule=config.settings.schedule_of(3),
        stepper=stepper,
        disk=None,
        step=step,
        bad_losses=0,
        precision="fp32",
        epoch=100,
    )


def test_the_summary_of_a_run(configure: Callable[..., Config]) -> None:
    shape, batch, run = started(configure, step=0).lines()
    assert shape.endswith("vocabulary 128, fp32, ZeRO stage 0")
    assert batch.startswith("batch 4 = micro-batch 2 x accumulation 2 x 1 ranks; validation: ")
    assert run == "the run starts from the beginning and ends after step 3; it is not saved"
    assert "the run resumes after step 2 and" in started(configure, step=2).lines()[-1]


def test_what_a_checkpoint_records(configure: Callable[..., Config]) -> None:
    run = started(configure, step=0)
    state = run.state(2, run.data, bad_losses=1)
    assert from_json(Run, state["run"], where="run") == run.data.run
    assert state["loader"]["position"] == 8
    assert state["bad_losses"] == 1
    assert state["identity"]["objective"] == "glm"
    assert state["schedule"]["decay"] == 3


def test_weights_of_a_published_checkpoint(tmp_path: Path) -> None:
    torch.manual_seed(1)
    published, model = GLM(SHAPE), GLM(SHAPE)
    path = tmp_path / "mp_rank_00_model_states.pt"
    torch.save({"module": published.state_dict()}, path)
    load_weights(tmp_path, model)
    pairs = zip(published.parameters(), model.parameters(), strict=True)
    assert all(torch.equal(one, other) for one, other in pairs)
    with pytest.raises(UserError, match="there is no checkpoint"):
        load_weights(tmp_path / "none", model)


@pytest.mark.slow  # it loads DeepSpeed
def test_weights_that_there_is_no_memory_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def load(*_: object, **__: object) -> None:
        raise MemoryError

    (tmp_path / "whole-00000.json").touch()
    for name in ("bf16_zero_pp_rank_0_mp_rank_00_optim_states", "mp_rank_00_model_states"):
        torch.save({}, tmp_path / f"{name}.pt")
    monkeypatch.setattr(torch, "load", load)
    with pytest.raises(MemoryError):
        load_weights(tmp_path, GLM(SHAPE))
