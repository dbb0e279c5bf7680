"""Command lines of the trainer that are refused before any data are read."""

from typing import Any

from tests.refusals.refusal import Refusal, no_files
from tests.refusals.setups import Setup, with_file
from tests.refusals.setups_shards import with_json
from tests.refusals.setups_trainer import SHAPE

_BASE = "trainer.train --data data --model tiny --batch-size 4"
_TRAIN = f"{_BASE} --max-steps 9"
_FILE = "trainer.train --data data --model model.json --batch-size 4"
_TUNE = "trainer.finetune --task prompted --data items --init-from run --save out"

_COMMANDS = (
    "trainer.generate gone x",
    f"{_TRAIN} --follow --max-epochs data=2",
    f"{_TRAIN} --follow --data-from 9 data",
    # Flags of other trainers.
    "trainer.train --train_micro --seq_length=512 --train-iters 9 --micro_batch=4",
    "trainer.train --do_train --optim sgd --per_device_eval_batch_size 3 --adam_beta1 0.9",
    "trainer.finetune --learning_rate",
    "trainer.export --output-dir",
    # Flags of training.
    f"{_TRAIN} --modle x",
    f"{_TRAIN} --betas 0.9",
    f"{_TRAIN} --schedule cosin",
    f"{_TRAIN} --micro-batch 2,1",
    f"{_TRAIN} --save-every 0",
    f"{_TRAIN} --save s3://b/run",
    f"{_TRAIN} --eval-task lambada=x --eval-every 0",
    f"{_TRAIN} --sample-every 1",
    f"{_TRAIN} --sample-prompts x",
    f"{_TRAIN} --extend-positions",
    "trainer.train --data data --batch-size 4",
    "trainer.train --data hf:words --model tiny --batch-size 4",
    "trainer.train --model tiny --batch-size 4",
    "trainer.train --model tiny --data data",
    # Flags about the end of a run.
    f"{_TRAIN} --epochs 1",
    f"{_TRAIN} --max-tokens 9 --epochs 1",
    f"{_BASE} --epochs 0",
    f"{_BASE} --follow",
    f"{_BASE} --epochs 2 --data-from 9 data",
    f"{_BASE} --max-epochs data=2",
    # Recipes and models.
    f"{_BASE} --recipe glm-larg",
    "trainer.train --data data --model glm-larg --batch-size 4",
    _FILE,
    # Fine-tuning.
    f"{_TUNE} --length-penalty -1",
    f"{_TUNE} --seed 9223372036854775808",
    f"{_TUNE} --min-answer 9 --max-answer 8",
    f"{_TUNE} --loss hing",
    f"{_TUNE} --deepspeed qqqq",
    _TUNE.replace("prompted", "tnew"),
    # Generating text.
    "trainer.generate run x --temperature -1",
    "trainer.generate run x --top-p 1.5",
    "trainer.generate run x --top-p -0.1",
    "trainer.generate run x --min-new-tokens 9 --max-new-tokens 8",
    "trainer.generate run x --beams 2 --temperature 1",
    "trainer.generate run",
    "trainer.generate run x --samples 2",
    "trainer.generate run x --prompts gone",
    # Exports, plots and tasks.
    "trainer.export run --output out --to safetensors --vocabulary 5",
    "trainer.plot gone",
    "trainer.evaluate run --length 9",
    "trainer.evaluate run --blank mask",
    "trainer.evaluate run --tokenizer x:y",
    "trainer.evaluate run --task lambada",
    "trainer.evaluate run --task lambada=gone",
)
_WITH = {
    f"{_BASE} --save there": with_file("there/manifest.json"),
    "trainer.finetune --task copa --data x --init-from y --save there": with_file(
        "there/manifest.json"
    ),
    f"{_BASE} --recipe mine.args": with_file("mine.args", "--qqqq 5\n"),
    "trainer.generate run --prompts p": with_file("p", "\n \n"),
    "trainer.generate here x": with_file("here/x"),
    "trainer.generate here x --model tiny": with_file("here/x"),
    "trainer.evaluate run --task lambada=x --task lambada=x": with_file("x"),
    "trainer.evaluate run --task lambada=x --eval-samples 9": with_file("x"),
}

_NUMBERS = (
    ("--dropout", ("1", "-0.1")),
    ("--betas 0.9", ("1",)),
    ("--eps", ("0", "inf")),
    ("--weight-decay", ("-0.1",)),
    ("--warmup", ("-1",)),
)
"""Flags of training, and invalid values for each."""

_BOUNDS = (
    "--dropout 0 --betas 0 0.999 --eps 1e-30 --weight-decay 0 --decay-steps 1 --micro-batch 1"
    " --save-every 1 --keep 1 --eval-every 0 --eval-samples 0 --log-every 1 --max-bad-losses 1"
    " --sample-tokens 1 --warmup 0 --lr-floor 0",
    "--dropout 0.99 --betas 0.9999 0 --save-every epoch --eval-every epoch --lr-floor 1 --warmup 8"
    " --follow --slack 0",
)
"""Flags with values at their bounds, which are accepted; the run then fails for lack of data."""

_OF_TEXTS = ("--beams 4", "--max-answer 5", "--by-loss")

_PROMPTS = (
    '{"prompt": "a"}\n{\n',
    '{"text": "a"}\n',
    '{"prompt": 3}\n',
    '\n["x"]\n',
)

_FILES = (
    "{",
    "[1]",
    "[" * 100_000,
    r'{"x": "\ud800"}',
    '{"num_layers": 2, "num_layers": 3}',
)
"""Invalid contents of model.json."""

_SHAPES = (
    ("colour", 1),
    ("num_layers", "2"),
    ("num_layers", 0),
    ("hidden_size", 2**24 + 1),
    ("vocab_size", 2**24 + 1),
    ("num_heads", 5),
    ("vocab_size", 385),
    ("hidden_dropout", 1),
    ("hidden_dropout", -0.1),
    ("layernorm_eps", 1),
    ("init_std", 1000),
)
"""Keys of model.json, and an invalid value for each."""

_AT_BOUNDS = {
    "num_layers": 2**24,
    "max_positions": 1,
    "num_heads": 32,
    "hidden_dropout": 0,
    "attention_dropout": 0.999,
    "layernorm_eps": 0,
    "init_std": 999,
    "vocab_size": 128,
}


_LAUNCHERS = (
    {"RANK": "1"},
    {"RANK": "1", "WORLD_SIZE": "2"},
    {"RANK": "0", "WORLD_SIZE": "2", "MASTER_PORT": "29500"},
    {"RANK": "x"},
    {"WORLD_SIZE": "2"},
    {"WORLD_SIZE": "2.0"},
    {"SLURM_STEP_NUM_TASKS": "4"},
    {"OMPI_COMM_WORLD_SIZE": "4"},
    {"PMI_SIZE": "4"},
)
"""Environment variables of launchers, some of which are missing or invalid."""

_ALONE: tuple[dict[str, str], ...] = (
    {"SLURM_STEP_NUM_TASKS": "1", "SLURM_NTASKS": "4"},
    {"RANK": "0", "WORLD_SIZE": "1"},
    {"WORLD_SIZE": "1"},
)
"""Variables of a single process, which are accepted; the run then fails for lack of data."""


def _row(command: str, setup: Setup = no_files, name: str = "") -> Refusal:
    return Refusal(name=name or command, command=command, setup=setup)


def _model(name: str, content: Any) -> Refusal:
    return _row(_FILE, with_json("model.json", content), f"train: a model {name}")


ROWS = (
    *(_row(command) for command in _COMMANDS),
    *(_row(command, setup) for command, setup in _WITH.items()),
    *(_row(f"{_TRAIN} {flag} {value}") for flag, values in _NUMBERS for value in values),
    *(_row(f"{_TRAIN} {flags}") for flags in _BOUNDS),
    *(_row(f"{_TUNE.replace('prompted', 'tnews')} {flags}") for flags in _OF_TEXTS),
    *(
        _row(
            "trainer.generate run --prompts p.jsonl",
            with_file("p.jsonl", content),
            f"generate: prompts as {content}",
        )
        for content in _PROMPTS
    ),
    *(
        _row(_FILE, with_file("model.json", content), f"train: a model as {content:.40}")
        for content in _FILES
    ),
    *(_model(f"with {key} {value}", {**SHAPE, key: value}) for key, value in _SHAPES),
    *(
        Refusal(name=f"train: launched with {env}", command=_TRAIN, env=env)
        for env in (*_LAUNCHERS, *_ALONE)
    ),
    _model("with nothing", {}),
    _model("at its bounds", {**SHAPE, **_AT_BOUNDS}),
)
