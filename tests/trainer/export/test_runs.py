"""Exports of runs that DeepSpeed saved at several ZeRO stages."""

from pathlib import Path

import pytest
import torch

from tests.nightly import a_few
from tests.trainer.runs import Trial
from trainer.capacity import checkpoint_bytes
from trainer.export.command import Export
from trainer.export.export import export
from trainer.import_weights.loaded_model import resolve_model
from trainer.import_weights.read import read_weights
from trainer.load_options import LoadOptions

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("stage", a_few([3, 1], of_each=2))
def test_the_weights_are_those_that_deepspeed_joins(tmp_path: Path, stage: int) -> None:
    from deepspeed.utils.zero_to_fp32 import (  # noqa: PLC0415 - slow
        get_fp32_state_dict_from_zero_checkpoint,
    )

    flags = ("--batch-size", 6, "--max-steps", 2, "--lr", 0.01, "--objective", "causal")
    trial = Trial.on_corpus(tmp_path, *flags, block_positions=False)
    trial.run(*trial.zero(stage), "--save", tmp_path / "run", world=2)
    run = tmp_path / "run"
    saved = sum(path.stat().st_size for path in (run / "step-2").iterdir())
    parameters = resolve_model(run, LoadOptions()).shape.num_parameters()
    assert saved >= checkpoint_bytes(parameters)  # a run begins only if this is free
    export(Export(path=run, to="safetensors", output=tmp_path / "out"))
    ours = read_weights(tmp_path / "out", vocab_size=0)
    theirs = get_fp32_state_dict_from_zero_checkpoint(str(run), "step-2")
    assert {*ours.parts} == {*theirs}
    assert all(torch.equal(ours.read(name), theirs[name]) for name in theirs)
