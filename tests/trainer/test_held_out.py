from dataclasses import replace
from pathlib import Path

import pytest

from shards.errors import UserError
from shards.records import to_json
from shards.storage.files import write_json
from tests.trainer.saved import SHAPE, random_model, save_run
from trainer.checkpoints.checkpoint import read_list
from trainer.held_out import open_held_out
from trainer.opening import Opening
from trainer.trained import find_origin


def test_a_fine_tuned_model_is_asked_by_task(tmp_path: Path) -> None:
    save_run(tmp_path / "run", random_model(SHAPE), objective="glm")
    path = tmp_path / "run" / "step-7" / "whole-00000.json"
    saved = read_list(path)
    state = {**saved.state, "tuning": {"task": "copa"}, "run": {"mixes": [{"data": []}]}}
    write_json(path, to_json(replace(saved, state=state)))
    origin = find_origin(tmp_path / "run", Opening())
    with pytest.raises(UserError, match=r"fine-tuned .* no held-out text.* --task NAME=FILE"):
        open_held_out(origin, (), eval_samples=1)
