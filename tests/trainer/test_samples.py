import json
import math
import signal
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from shards.errors import UserError
from shards.manifest import read_manifest, write_manifest
from tests.trainer.alone import ALONE
from tests.trainer.corpus import SHAPE, build
from tests.trainer.runs import Trial, events, losses
from trainer.decode.decoding import Decoding
from trainer.decode.prompt import Reading
from trainer.decode.reader import Reader
from trainer.decode.writer import Writer
from trainer.generate.__main__ import main
from trainer.log import SAMPLE, RunLog
from trainer.model.cache import Cache
from trainer.model.sizes import ModelConfig
from trainer.samples import TEMPERATURE, TOP_K, Samples, open_samples
from trainer.settings import Settings
from trainer.step import WEIGHTS_SPLIT
from trainer.stop import Stop
from trainer.tokenizer import TextTokenizer

TOKENIZER = f"sentencepiece:{Path(__file__).parents[2] / 'pipelines' / 'sample' / 'sample.model'}"
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
def test_samples_of_a_run(trial: Trial, capsys: pytest.CaptureFixture[str]) -> None:
    plain, sampled = trial.folder / "plain", trial.folder / "sampled"
    trial.run("--save", plain)
    running = trial.run("--save", sampled, *sampling(trial))
    assert losses(plain) == losses(sampled)
    found = events(sampled, SAMPLE)
    assert [(event["step"], event["number"]) for event in found] == [
        (step, number) for step in (2, 3) for number in range(3)
    ]
    assert [event["prompt"] for event in found[:3]] == list(PROMPTS)
    assert all(event["text"].startswith("Fold six") for event in found[::3])
    assert found[:3] != found[3:]
    assert running.output().count("  sample  ") == 6
    # The command writes the same.
    last = [event["text"] for event in found[3:]]
    options = ["--temperature", str(TEMPERATURE), "--top-k", str(TOP_K), "--max-new-tokens", "5"]
    asked = [str(sampled), *PROMPTS, "--tokenizer", TOKENIZER, "--device", "cpu", "--dtype", "fp32"]
    assert main([*asked, *options, "--json"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [json.loads(line)["text"] for line in lines] == last


@pytest.mark.slow
def test_samples_where_no_rank_has_the_model(trial: Trial) -> None:
    alone, split = trial.folder / "alone", trial.folder / "split"
    trial.run("--save", alone, *sampling(trial))
    zero3 = trial.folder / "zero3.json"
    trial.run("--save", split, "--deepspeed", zero3, *sampling(trial), world=2)
    assert events(split, SAMPLE) == events(alone, SAMPLE)
    assert losses(split) == pytest.approx(losses(alone), abs=1e-4)


@pytest.mark.slow
def test_prompts_that_cannot_be_used(trial: Trial) -> None:
    long = trial.folder / "long.txt"
    long.write_text("paper " * 99)
    running = trial.run("--sample-every", 1, "--sample-prompts", long, code=2)
    assert 'the prompt "paper paper' in running.output()
    assert "Traceback" not in running.output()


def test_between_batches_it_may_be_stopped(tmp_path: Path) -> None:
    asked: list[int] = []

    def write(batch: list[Any], *, first: int) -> list[Any]:
        asked.append(first)
        return [SimpleNamespace(prompt="", text="") for _ in batch]

    prompts: list[Any] = [None] * 20
    writer: Any = SimpleNamespace(write=write)
    reader: Any = None
    samples = Samples(prompts, reader, Decoding(), writer=writer, is_split=False)
    log = RunLog(tmp_path, step=0, steps=1, show=False)
    samples.write(1, log, stop=lambda: 143)
    assert asked == []
    samples.write(1, log, stop=lambda: 143 if asked else 0)
    assert asked == [0]
    log.close()
    assert len(events(tmp_path, SAMPLE)) == 8


def test_a_model_that_diverged_says_so_and_its_run_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shape = ModelConfig(**{**SHAPE, "vocab_size": 4096})

    def forward(_: Cache) -> Tensor:
        return torch.full((8, shape.vocab_size), math.nan)

    reader = Reader(forward, shape, torch.device("cpu"))
    tokenizer = TextTokenizer(TOKENIZER)
    decoding = Decoding(max_new_tokens=4, top_k=3)
    reading = Reading(causal=False, positions=shape.position_rows)
    writer = Writer(reader, tokenizer, decoding, reading)
    prompts = [writer.prompt("Bread")] * 9  # two batches
    asked: list[int] = []

    def stop() -> int:
        asked.append(1)
        return 0

    log = RunLog(tmp_path, step=0, steps=1, show=True)
    for each in (writer, None):
        samples = Samples(prompts, reader, decoding, writer=each, is_split=True)
        samples.write(1, log, stop=stop)
        (line,) = capsys.readouterr().err.splitlines()
        assert line == "step 1: no samples: the model's logits are NaN or infinite"
    assert len(asked) == 4  # as on the ranks that write nothing
    log.close()
    assert events(tmp_path, SAMPLE) == []


@pytest.mark.parametrize("given", [{"sample_every": 3}, {"sample_prompts": Path("prompts.txt")}])
def test_both_or_none(given: dict[str, object]) -> None:
    with pytest.raises(UserError, match=r"--sample-every N says when and --sample-prompts FILE"):
        Settings(model="tiny", **given)  # type: ignore[arg-type]  # of several types, by name


@pytest.mark.parametrize("stage", [0, WEIGHTS_SPLIT])
def test_a_signal_is_obeyed_before_the_next_token(tmp_path: Path, stage: int) -> None:
    shape = ModelConfig(**{**SHAPE, "vocab_size": 4096})
    read: list[int] = []

    def logits(cache: Cache) -> torch.Tensor:
        read.append(len(cache.tokens))
        if len(read) == 3:
            signal.raise_signal(signal.SIGTERM)
        return torch.zeros(len(cache.tokens), shape.vocab_size)

    (tmp_path / "prompts.txt").write_text("\n".join(PROMPTS * 4))
    settings = Settings(
        model="tiny", sample_every=1, sample_prompts=tmp_path / "prompts.txt", tokenizer=TOKENIZER
    )
    data = SimpleNamespace(
        shape=shape, blanks=None, tokenizer={}, datasets=[SimpleNamespace(directory=tmp_path)]
    )
    started: Any = SimpleNamespace(
        config=SimpleNamespace(settings=settings, run=SimpleNamespace(seed=0, objective="glm")),
        ranks=ALONE,
        data=data,
        stepper=SimpleNamespace(stage=stage, logits=logits),
        step=0,
    )
    with Stop() as stop:
        samples = open_samples(started, stop=stop)
        assert samples is not None
        log = RunLog(tmp_path, step=0, steps=1, show=False)
        samples.write(1, log, stop=lambda: stop.agreed_exit_code(ALONE))
        log.close()
    assert len(read) == 3
    assert not events(tmp_path, SAMPLE)
