"""Training runs that cannot start: unfit data or models, and unfit or damaged checkpoints."""

import shutil
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from shards.storage.lock import lock_dir
from tests.refusals.refusal import Accepted, Refusal
from tests.refusals.setups import Setup, all_of
from tests.refusals.setups_shards import (
    ABSENT,
    cut,
    json_changed,
    overwritten,
    with_json,
    with_manifest,
)
from tests.refusals.setups_trainer import SHAPE, ready, trained, tuned

_TRAIN = "trainer.train --data data --model model.json --max-steps 4 --batch-size 4"
_AGAIN = f"{_TRAIN} --log-every 1 --save-every 2 --save run"
_ALONE = f"{_TRAIN} --resume run/step-4 --save out"
"""A command that can resume only from step-4, the last checkpoint."""


def _row(name: str, command: str, setup: Setup) -> Refusal:
    return Refusal(name=f"train: {name}", command=command, setup=setup)


def _model(**changes: Any) -> Setup:
    return all_of(trained, with_json("model.json", {**SHAPE, **changes}))


_FRESH = (
    "--length 65",
    "--model gpt2.json",
    "--lr 0",
    "--lr-floor 1.1",
    "--warmup 4",
    "--warmup 0.99 --decay-steps 5",
    "--precision fp16",
)
_VAST = _model(num_layers=2**12, hidden_size=2**20)
_FRESH_WITH = {
    "": _model(vocab_size=256),
    "--seed 5": _VAST,
    "--save new": _VAST,
}

_BLANKS = (
    "bert_prop=0.5",
    "bert_prob=x",
    "random_position=maybe",
    "bert_prob=1.1",
    "bert_prob=-0.1",
    "bert_prob=0.8",
)

_RESUMED = (
    "--seed 1",
    "--length 32",
    "--blanks bert_prob=0.4",
    "--batch-size 8",
    "--data data:docs",
    "--resume none",
    "--resume gone",
    "--resume run/step-3",
    "--max-steps 3",
)
_RESUMED_WITH = {
    "": _model(num_layers=3),
    "--length 64": _model(max_positions=128),
    "--save tuned": tuned,
}


def _without_checkpoints(folder: Path) -> None:
    for step in (folder / "run").glob("step-*"):
        shutil.rmtree(step)


def _unfinished(folder: Path) -> None:
    for path in (folder / "run").glob("step-*/whole-*.json"):
        path.unlink()


def _being_written(folder: Path) -> None:
    """Lock the run until this process ends, as if another process were training it."""
    _HELD.enter_context(lock_dir(folder / "run"))


_HELD = ExitStack()
_GONE = {
    "a run without the checkpoints that it had": _without_checkpoints,
    "a run whose checkpoints lack their lists": _unfinished,
    "a run that is being written": _being_written,
}

_LIST = "run/step-4/whole-00000.json"
_STATE = (
    ("loader", ABSENT),
    ("identity", None),
    ("identity.tokenizer.sha256", "0" * 64),
    ("options", 5),
    ("bad_losses", "0"),
    ("loader.position", -1),
    ("loader.position", 2**62),
    ("loader.shards", []),
)
"""Paths in a run's state, and invalid values."""

_LISTED = (
    ("step", -1),
    ("step", 2**62 + 1),
    ("step", 3),
    ("world", 0),
    ("stage", 4),
    ("stage", -1),
    ("version", 1),
    ("files", {"../x": {"bytes": 1, "crc32c": 1}}),
    ("files", {"/x": {"bytes": 1, "crc32c": 1}}),
    ("files", []),
    ("colour", 1),
)
"""Paths in a checkpoint's list of files, and invalid values."""

_FILE = "run/step-4/mp_rank_00_model_states.pt"
_DAMAGE = {
    "a checkpoint cut short": cut(_FILE),
    "a checkpoint with another byte": overwritten(_FILE, 200_000, b"\xaa\x55"),
    "a list that is no JSON": cut(_LIST, 5),
}

ROWS = (
    *(
        _row(flags, f"{_TRAIN} {flags}", setup)
        for flags, setup in {**dict.fromkeys(_FRESH, ready), **_FRESH_WITH}.items()
    ),
    *(_row(f"blanks {text}", f"{_TRAIN} --blanks {text}", ready) for text in _BLANKS),
    _row(
        "blanks without their tokens",
        _TRAIN,
        all_of(
            ready, with_manifest("tokenizer.special.smask", ABSENT, "tokenizer.special.eop", ABSENT)
        ),
    ),
    _row("tokens of one id", _TRAIN, all_of(ready, with_manifest("tokenizer.special.gmask", 307))),
    *(
        replace(
            _row(f"again {flags}", f"{_AGAIN} {flags}", setup),
            output_before="decay_steps is 3" if flags == "--max-steps 3" else "",
        )
        for flags, setup in {**dict.fromkeys(_RESUMED, trained), **_RESUMED_WITH}.items()
    ),
    *(_row(name, _AGAIN, all_of(trained, setup)) for name, setup in _GONE.items()),
    Accepted(
        name="train: again --init-from run",
        command=f"{_AGAIN} --init-from run",
        setup=trained,
        message="--init-from run is not read: the run resumes from run/step-4",
    ),
    *(
        _row(
            f"a checkpoint with {path} {value!r:.9}",
            _AGAIN,
            all_of(trained, json_changed(_LIST, f"state.{path}", value)),
        )
        for path, value in _STATE
    ),
    _row(
        "the only checkpoint, damaged",
        _AGAIN,
        all_of(
            trained,
            lambda folder: shutil.rmtree(folder / "run" / "step-2"),
            json_changed(_LIST, "state.loader", []),
        ),
    ),
    *(
        _row(
            f"a list of files with {path} {value!r:.9}",
            _ALONE,
            all_of(trained, json_changed(_LIST, path, value)),
        )
        for path, value in _LISTED
    ),
    *(_row(name, _ALONE, all_of(trained, setup)) for name, setup in _DAMAGE.items()),
)
