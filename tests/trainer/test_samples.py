import json
import signal
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from shards.manifest import read_manifest, write_manifest
from shards.records import to_json
from tests.trainer.alone import ALONE
from tests.trainer.corpus import SHAPE, build
from tests.trainer.runs import Trial, events, losses
from trainer.log import SAMPLE, RunLog
from trainer.model.cache import Cache
from trainer.model.sizes import ModelConfig
from trainer.samples import open_samples
from trainer.settings import Settings
from trainer.step import WEIGHTS_SPLIT
from trainer.stop import Stop
from trainer.tokenizer import TextTokenizer

TOKENIZER = f"sentencepiece:{Path(__file__).parents[2] / 'pipelines' / 'sample' / 'sample.model'}"
MODEL = ModelConfig(**{**SHAPE, "vocab_size": 4096})
PROMPTS = ("Fold six [MASK] of paper in [sMASK].", "Bread", "[gMASK]")


@pytest.fixture(scope="module")
def trial(tmp_path_factory: pytest.TempPathFactory) -> Trial:
    folder = tmp_path_factory.mktemp("sampled")
    build(folder / "data")
    manifest = read_manifest(folder / "data")
    # As if its texts had been encoded by that tokenizer.
    entry = replace(manifest.tokenizer, sha256=TextTokenizer(TOKENIZER).sha256)
    write_manifest(folder / "data", replace(manifest, tokenizer=entry))
    (folder / "model.json").write_text(json.dumps({**SHAPE, "vocab_size": 4096}))
    (folder / "zero3.json").write_text(json.dumps({"zero_optimization": {"stage": 3}}))
    (folder / "prompts.txt").write_text("\n".join(PROMPTS))
    flags = ("--data", folder / "data", "--model", folder / "model.json", "--batch-size", "4")
    more = ("--max-steps", "3", "--lr", "0.01", "--dropout", "0", "--tokenizer", TOKENIZER)
    return Trial(folder, [*map(str, flags), *more])


def sampling(trial: Trial) -> tuple[object, ...]:
    prompts = trial.folder / "prompts.txt"
    return ("--sample-every", 2, "--sample-prompts", prompts, "--sample-tokens", 5)


@pytest.mark.slow
def test_samples_where_no_rank_has_the_model(trial: Trial) -> None:
    alone, split = trial.folder / "alone", trial.folder / "split"
    trial.run("--save", alone, *sampling(trial))
    zero3 = trial.folder / "zero3.json"
    trial.run("--save", split, "--deepspeed", zero3, *sampling(trial), world=2)
    assert events(split, SAMPLE) == events(alone, SAMPLE)
    assert losses(split) == pytest.approx(losses(alone), abs=1e-4)


def started_with(engine: Callable[[Cache], Tensor], folder: Path, *, stage: int = 0) -> Any:
    """A run with twelve prompts, as far as its samples go."""
    (folder / "prompts.txt").write_text("\n".join(PROMPTS * 4))
    settings = Settings(
        model="tiny", sample_every=1, sample_prompts=folder / "prompts.txt", tokenizer=TOKENIZER
    )
    data = SimpleNamespace(shape=MODEL, datasets=[SimpleNamespace(directory=folder)])
    identity = {"model": to_json(MODEL), "objective": "glm", "tokenizer": {}}
    stepper = SimpleNamespace(stage=stage, engine=engine, answering=nullcontext)
    return SimpleNamespace(
        config=SimpleNamespace(settings=settings, run=SimpleNamespace(seed=0)),
        fixed={"identity": identity},
        ranks=ALONE,
        data=data,
        stepper=stepper,
        step=0,
    )


@pytest.mark.parametrize("stage", [0, WEIGHTS_SPLIT])
@pytest.mark.parametrize("calls", [0, 3])
def test_a_signal_is_obeyed_before_the_next_token(tmp_path: Path, stage: int, calls: int) -> None:
    read: list[int] = []

    def signalled(cache: Cache) -> Tensor:
        read.append(len(cache.tokens))
        if len(read) == calls:
            signal.raise_signal(signal.SIGTERM)
        return torch.zeros(len(cache.tokens), MODEL.vocab_size)

    with Stop(ALONE) as stop:
        samples = open_samples(started_with(signalled, tmp_path, stage=stage), stop=stop)
        assert samples is not None
        if not calls:
            signal.raise_signal(signal.SIGTERM)
        log = RunLog(tmp_path, step=0, steps=1, show=False)
        samples.write(1, log)
        log.close()
    assert len(read) == calls
    assert not events(tmp_path, SAMPLE)
