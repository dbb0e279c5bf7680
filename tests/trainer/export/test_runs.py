"""Exports of runs that DeepSpeed saved, at several ZeRO stages."""

import json
from pathlib import Path

import pytest
import torch

from tests.trainer.corpus import SHAPE, build
from tests.trainer.runs import Trial
from trainer.export.command import Export
from trainer.export.export import export
from trainer.weights.read import read_weights

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("stage", [1, 3])
def test_the_weights_are_those_that_deepspeed_joins(tmp_path: Path, stage: int) -> None:
    from deepspeed.utils.zero_to_fp32 import (  # noqa: PLC0415 - slow
        get_fp32_state_dict_from_zero_checkpoint,
    )

    build(tmp_path / "data")
    (tmp_path / "model.json").write_text(json.dumps({**SHAPE, "block_positions": False}))
    (tmp_path / "zero.json").write_text(json.dumps({"zero_optimization": {"stage": stage}}))
    trial = Trial(tmp_path, ("--data", "data", "--model", "model.json", "--objective", "causal"))
    flags = ("--batch-size", 6, "--max-steps", 2, "--lr", 0.01, "--deepspeed", "zero.json")
    trial.run(*flags, "--save", "run", world=2)
    run = tmp_path / "run"
    export(Export(path=run, to="safetensors", output=tmp_path / "out"))
    ours = read_weights(tmp_path / "out", vocab_size=0)
    theirs = get_fp32_state_dict_from_zero_checkpoint(str(run), "step-2")
    assert {*ours.parts} == {*theirs}
    assert all(torch.equal(ours.read(name), theirs[name]) for name in theirs)
