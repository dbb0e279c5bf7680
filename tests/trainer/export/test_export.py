import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from shards.errors import UserError
from tests.trainer.runs import Trial, before_a_file_is_whole, kill_minus_nine
from tests.trainer.saved import GPT2_SHAPE, SHAPE, causal_logits, random_model, save_run
from trainer.export.command import Export
from trainer.export.export import export
from trainer.import_weights.load import load_weights
from trainer.import_weights.loaded_model import resolve_model
from trainer.load_options import LoadOptions
from trainer.model.model import GLM


def export_to(form: str, path: Path, output: Path, **options: Any) -> list[str]:
    return export(Export(path=path, to=form, output=output, **options))


def test_weights_that_no_reader_could_use(tmp_path: Path) -> None:
    model = random_model(SHAPE)
    model.transformer.final_layernorm.weight[3] = 1e6
    save_run(tmp_path / "large", model, objective="glm")
    with pytest.raises(UserError, match=r"final_layernorm\.weight has values up to 1e\+06.*bf16"):
        export_to("safetensors", tmp_path / "large", tmp_path / "out", dtype="fp16")
    model.transformer.final_layernorm.weight[3] = torch.nan
    save_run(tmp_path / "nan", model, objective="glm")
    with pytest.raises(UserError, match=r"NaN or infinite: the run had diverged"):
        export_to("safetensors", tmp_path / "nan", tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert not [*tmp_path.glob(".tmp-*")]


def killed_at_the_first_file() -> None:
    before_a_file_is_whole(lambda _: kill_minus_nine())


@pytest.mark.slow
def test_a_killed_export_leaves_nothing_that_looks_whole(tmp_path: Path) -> None:
    run = save_run(tmp_path / "glm", random_model(SHAPE), objective="glm")
    (output := tmp_path / "there" / "out").parent.mkdir()
    words = (str(run), "--to", "safetensors", "--output", str(output))
    trial = Trial(tmp_path, command="export")
    trial.run(*words, prepare=killed_at_the_first_file, code=-signal.SIGKILL)
    assert [path.name for path in output.parent.iterdir()] == [".tmp-export-out"]
    export_to("safetensors", run, output)
    assert [path.name for path in output.parent.iterdir()] == ["out"]


def test_a_causal_model_with_block_positions_is_a_gpt2_too(tmp_path: Path) -> None:
    model = random_model(SHAPE)
    export_to("hf", save_run(tmp_path / "run", model, objective="causal"), tmp_path / "out")
    read = GLM(resolve_model(tmp_path / "out", LoadOptions()).shape).eval()
    load_weights(tmp_path / "out", read)
    assert read.config == replace(GPT2_SHAPE, max_positions=25)
    tokens = torch.randint(384, (2, 24))
    with torch.no_grad():
        assert (causal_logits(read, tokens) - causal_logits(model, tokens)).abs().max() < 1e-5
