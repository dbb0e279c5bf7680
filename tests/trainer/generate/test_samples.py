import math
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
from tests.trainer.alone import ALONE
from tests.trainer.runs import Trial, events, losses
from tests.trainer.saved import SHAPE, TOKENIZER
from trainer.deepspeed import ZERO_3
from trainer.distributed import Stop
from trainer.generate.decoder import CachedDecoder
from trainer.generate.decoding import Decoding
from trainer.generate.prompt import Blank, Prompt
from trainer.generate.rank_generator import RankGenerator
from trainer.generate.samples import Samples
from trainer.log import SAMPLE, RunLog
from trainer.tokenizer import TextTokenizer

TEXTS = ("Fold six [MASK] of paper in [sMASK].", "Bread", "[gMASK]")
BLANK = Blank(token=5, position=0, block_position=1)
PROMPTS = 4 * (Prompt(context=(1, 2), blanks=(BLANK,), ends=frozenset({0}), causal=False),)


@pytest.fixture(scope="module")
def trial(tmp_path_factory: pytest.TempPathFactory) -> Trial:
    flags = ("--batch-size", 4, "--max-steps", 3, "--lr", 0.01, "--tokenizer", TOKENIZER)
    folder = tmp_path_factory.mktemp("sampled")
    trial = Trial.on_corpus(folder, *flags, vocab_size=4096, hidden_dropout=0, attention_dropout=0)
    manifest = read_manifest(folder / "data")
    # As if this tokenizer had encoded the dataset's texts.
    entry = replace(manifest.tokenizer, sha256=TextTokenizer(TOKENIZER).sha256)
    write_manifest(folder / "data", replace(manifest, tokenizer=entry))
    (folder / "prompts.txt").write_text("\n".join(TEXTS))
    return trial


@pytest.mark.slow
def test_samples_where_no_rank_has_the_model(trial: Trial) -> None:
    prompts = trial.folder / "prompts.txt"
    flags = ("--sample-every", 2, "--sample-prompts", prompts, "--sample-tokens", 5)
    alone, split = trial.once(*flags), trial.once(*flags, *trial.zero(3), world=2)
    assert events(split, SAMPLE) == events(alone, SAMPLE)
    assert losses(split) == pytest.approx(losses(alone), abs=1e-4)


def generator_of(
    model: Callable[[CachedDecoder], Tensor], stop: Stop, *, stage: int = 0
) -> RankGenerator:
    engine: Any = SimpleNamespace(stage=stage, wrapped=model, eval_mode=lambda **_: nullcontext())
    return RankGenerator(
        engine=engine,
        shape=SHAPE,
        decoding=Decoding(),
        ranks=ALONE,
        stop=stop,
        batch_size=8,
    )


def test_a_model_that_diverged_says_so_and_its_run_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def diverged(cache: CachedDecoder) -> Tensor:
        return torch.full((len(cache.tokens), SHAPE.vocab_size), math.nan)

    generator = generator_of(diverged, Stop(ALONE))
    log = RunLog(tmp_path, step=0, steps=1, show=True)
    Samples(prompts=PROMPTS, generator=generator, tokenizer=None).write(1, log)
    log.close()
    (line,) = capsys.readouterr().err.splitlines()
    assert line == "step 1: no samples: the model's logits are NaN or infinite"


@pytest.mark.parametrize("stage", [0, ZERO_3])
@pytest.mark.parametrize("calls", [0, 3])
def test_a_signal_is_obeyed_before_the_next_token(stage: int, calls: int) -> None:
    read: list[int] = []

    def signalled(cache: CachedDecoder) -> Tensor:
        read.append(len(cache.tokens))
        if len(read) == calls:
            signal.raise_signal(signal.SIGTERM)
        return torch.ones(len(cache.tokens), SHAPE.vocab_size).cumsum(1)

    with Stop(ALONE) as stop:
        generator = generator_of(signalled, stop, stage=stage)
        if not calls:
            signal.raise_signal(signal.SIGTERM)
        assert generator.fill(len(PROMPTS), PROMPTS.__getitem__) is None
    assert len(read) == calls
