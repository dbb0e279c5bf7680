"""What may stand in a DeepSpeed JSON, as far as DeepSpeed itself does not check it.

DeepSpeed (0.19) checks the values of its sections, but ignores top-level keys that it does not
know, and takes "false" in quotes for false in one section and for true in another. So here unknown
keys and quoted values are refused, and what has no place here is refused with its reason. "auto"
stands for a key that is left out, as in DeepSpeed, and so does null for a section.

Files made for other trainers have more: sections that change no result here are left out, and the
user is told.
"""

import json
import re
import reprlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from shards.errors import UserError
from shards.spelling import nearest

_AUTO = "auto"
_ZERO = "zero_optimization"
_SCALAR = re.compile(r"(?i)true|false|[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?")
"""A text that spells what JSON writes without quotes."""

SECTIONS = (
    *("optimizer", "bf16", "fp16", "data_types", _ZERO, "aio", "checkpoint", "flops_profiler"),
    *("comms_logger", "timers", "compile", "tensorboard", "csv_monitor", "wandb", "comet"),
)
_BATCHES = ("train_micro_batch_size_per_gpu", "gradient_accumulation_steps", "train_batch_size")
_VALUES = (
    *(*_BATCHES, "gradient_clipping", "gradient_predivide_factor", "prescale_gradients"),
    *("communication_data_type", "zero_allow_untested_optimizer", "zero_force_ds_cpu_optimizer"),
    *("disable_allgather", "wall_clock_breakdown", "memory_breakdown", "dump_state"),
    *("steps_per_print", "log_level"),
)
_WHOLE = {**dict.fromkeys(_BATCHES, 1), f"{_ZERO}.stage": 0}
"""Whole numbers that the trainer itself computes with, and the least that they may be."""

_IGNORED = {"activation_checkpointing": "--checkpoint-activations recomputes layers here"}
"""Sections that change no result, and what says the same here."""

_REFUSED: Mapping[str, str] = {
    "scheduler": "this trainer sets the learning rate: --schedule, --warmup, --decay-steps",
    "elasticity": "a run resumes on any number of ranks anyway",
    "data_efficiency": "the sampler decides the order of the data",
    "curriculum_learning": "the sampler decides the order of the data: --data-from",
    "gradient_allreduce_op": "the loss is already divided by the tokens of the global batch",
    "managed_gradient_accumulation": "accumulation follows from --batch-size and --micro-batch",
    "torch_autocast": "give bf16 or fp16",
    "amp": "give bf16 or fp16",
    "sparse_attention": "the model brings its own attention",
    "pipeline": "there is no pipeline parallelism here",
    "tensor_parallel": "there is no tensor parallelism here",
    "checkpoint.load_universal": "the trainer converts checkpoints itself",
    "checkpoint.writer": "the trainer writes checkpoints itself, while training goes on",
    "checkpoint.use_node_local_storage": "the trainer finds out whether nodes share a folder",
    "zero_optimization.compute_grad_norm": "the log has the norm of the gradients",
    "zero_optimization.zenflow": "exact resume was never tried with it",
}
"""Keys that DeepSpeed knows, by their place, and why they have none here."""

_FIXED: Mapping[str, tuple[bool, str]] = {
    "optimizer.params.adam_w_mode": (True, "weight decay is decoupled here"),
    "optimizer.params.bias_correction": (True, "this trainer's AdamW always has it"),
    "optimizer.params.amsgrad": (False, "this trainer's AdamW never has it"),
}
"""Keys that may have one value only, and why."""

_FORMER = {"cpu_offload": "offload_optimizer", "cpu_offload_param": "offload_param"}
"""In zero_optimization: flags of DeepSpeed before 0.4, which THUDM/GLM's files have, and the
sections that they are now."""

_ENDLESS = 2**40

_shown = reprlib.Repr()
_shown.maxstring = 60


@dataclass(frozen=True)
class Checked:
    """What a DeepSpeed JSON says, as far as it has a place here."""

    settings: dict[str, Any]
    """Without keys that are "auto", and without null sections."""
    notes: tuple[str, ...]
    """What else it says, and what became of that; one clause each."""


def checked(content: Mapping[str, Any], *, where: str) -> Checked:
    """Return the settings in a DeepSpeed JSON.

    Args:
        content: of the file.
        where: its name.

    Raises:
        UserError: a key is not known or has no place here, or a value is in quotes; names both.
    """
    notes: list[str] = []
    kept = dict(_in_place(content, notes))
    for place, value in _places(kept):
        if problem := _problem(place, value):
            raise UserError(f"{where}: {problem}")
    settings = _without_auto(kept)
    if _ZERO in settings:
        settings[_ZERO] = dict(_by_present_names(settings[_ZERO], notes))
    for name in settings.keys() & set(_BATCHES):
        settings[name] = int(settings[name])  # it may be written 5e2
    return Checked(settings, tuple(notes))


def _in_place(content: Mapping[str, Any], notes: list[str]) -> Iterator[tuple[str, Any]]:
    """Yield the top-level keys, but those that make no difference, which are noted."""
    for name, value in content.items():
        if name in _IGNORED:
            notes.append(f"{name} is ignored: {_IGNORED[name]}")
        elif name in _REFUSED and isinstance(value, Mapping) and value.get("enabled") is False:
            notes.append(f"{name} is ignored, as it is off")
        else:
            yield name, value


def _places(content: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Yield all values with their places, as zero_optimization.stage."""
    for name, value in content.items():
        yield f"{above}{name}", value
        if isinstance(value, Mapping):
            yield from _places(value, f"{above}{name}.")


def _problem(place: str, value: Any) -> str | None:
    """Return what is wrong with a key or its value, None if that is left to DeepSpeed."""
    shown = f"{ascii(place)[1:-1]} is {_shown.repr(value)}"
    if place in _REFUSED:
        return f"{place!r} has no place here: {_REFUSED[place]}. Remove it."
    if "." not in place and place not in (*SECTIONS, *_VALUES):
        near = nearest(place, [*SECTIONS, *_VALUES, *_IGNORED], most=1)
        hint = f"; did you mean {near[0]!r}?" if near else "."
        return (
            f"{_shown.repr(place)} is not a top-level key of DeepSpeed, which would ignore it"
            f"{hint} Correct or remove it."
        )
    if place in SECTIONS and not isinstance(value, Mapping | None):
        return f"{shown}; expected {{…}} with its keys."
    return _problem_of_value(place, value, shown)


def _problem_of_value(place: str, value: Any, shown: str) -> str | None:
    if isinstance(value, str) and _SCALAR.fullmatch(value):
        return f"{shown}: write it without quotes, or leave the key out for its default."
    if place in _FIXED and value is not _FIXED[place][0]:
        allowed, why = _FIXED[place]
        return f"{shown}; expected {json.dumps(allowed)}, as {why}."
    if place in _WHOLE and value != _AUTO:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not (is_number and _WHOLE[place] <= value < _ENDLESS and int(value) == value):
            return f"{shown}; expected a whole number from {_WHOLE[place]} on."
    if place == "gradient_clipping" and isinstance(value, int | float) and not value >= 0:
        return f"{shown}; expected a number from 0 on."
    return None


def _without_auto(section: Mapping[str, Any]) -> dict[str, Any]:
    """Return a section without what is left to the trainer and to defaults."""
    kept = {}
    for name, value in section.items():
        if value == _AUTO or (value is None and name in SECTIONS):
            continue
        if isinstance(value, Mapping):
            if value.get("enabled") == _AUTO:
                continue  # what else stands in it is for when it is enabled
            inner = _without_auto(value)
            if inner or not value:  # not a section of nothing but "auto"
                kept[name] = inner
        else:
            kept[name] = value
    return kept


def _by_present_names(zero: Mapping[str, Any], notes: list[str]) -> Iterator[tuple[str, Any]]:
    """Yield zero_optimization with today's names, without null sections."""
    for name, value in zero.items():
        if name not in _FORMER:
            if value is not None or not name.startswith("offload_"):
                yield name, value
        elif value:
            yield _FORMER[name], {"device": "cpu"}
            notes.append(f'{_ZERO}.{name} is read as {_FORMER[name]} {{"device": "cpu"}}')
