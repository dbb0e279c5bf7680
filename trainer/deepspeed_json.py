"""A DeepSpeed JSON file: read, checked, and completed with what the run decides.

DeepSpeed (0.19) checks the values of its sections, but ignores top-level keys that it does not
know, and takes "false" in quotes for false in one section and for true in another. So here unknown
keys and quoted values are refused, and what has no place here is refused with its reason. "auto"
and null stand for a key that is left out.
"""

import json
import logging
import os
import re
import reprlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from shards.errors import UserError
from shards.spelling import expected, nearest
from trainer.json_file import is_file, read_object

_log = logging.getLogger(__name__)

CONFIGS = Path(__file__).parent / "configs"
"""Presets: NAME.json is the DeepSpeed JSON of a recipe, NAME.args its flags."""

FINETUNE = CONFIGS / "finetune"
"""The recipes of trainer.finetune."""

BF16, FP16, FP32 = "bf16", "fp16", "fp32"
AUTO = "auto"

FP16_SECTION: Mapping[str, Any] = {
    "enabled": True,
    "loss_scale": 0,
    "loss_scale_window": 1000,
    "hysteresis": 2,
    "min_loss_scale": 1,
}
"""The dynamic loss scaling that THUDM/GLM trains with (config/config_block_*.json)."""

_MICRO = "train_micro_batch_size_per_gpu"
_ACCUMULATION = "gradient_accumulation_steps"
_GLOBAL = "train_batch_size"
_ZERO = "zero_optimization"
_RECOMPUTING = "activation_checkpointing"
"""A section that changes no result: --checkpoint-activations is what recomputes layers here."""

SECTIONS = (
    *("optimizer", BF16, FP16, "data_types", _ZERO, "aio", "checkpoint", "flops_profiler"),
    *("comms_logger", "timers", "compile", "tensorboard", "csv_monitor", "wandb", "comet"),
)
_TOP = (
    *(*SECTIONS, _RECOMPUTING, _MICRO, _ACCUMULATION, _GLOBAL, "gradient_clipping"),
    *("gradient_predivide_factor", "prescale_gradients", "communication_data_type"),
    *("zero_allow_untested_optimizer", "zero_force_ds_cpu_optimizer", "disable_allgather"),
    *("wall_clock_breakdown", "memory_breakdown", "dump_state", "steps_per_print", "log_level"),
)
"""The top-level keys of DeepSpeed that have a place here."""

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

_ADAM: Mapping[str, bool] = {
    "optimizer.params.adam_w_mode": True,
    "optimizer.params.bias_correction": True,
    "optimizer.params.amsgrad": False,
}
"""Flags of DeepSpeed's Adam, and what they are in this trainer's."""

_LEAST = {_MICRO: 1, _ACCUMULATION: 1, _GLOBAL: 1, f"{_ZERO}.stage": 0}
"""Whole numbers that the trainer itself computes with, and the least that they may be."""

_FORMER = {"cpu_offload": "offload_optimizer", "cpu_offload_param": "offload_param"}
"""In zero_optimization: flags of DeepSpeed before 0.4, which THUDM/GLM's files have, and the
sections that they are now."""

_SCALAR = re.compile(r"(?i)true|false|[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?")
"""A text that spells what JSON writes without quotes."""

_shown = reprlib.Repr()
_shown.maxstring = 60


def read_json(name: str) -> dict[str, Any]:
    """Return the content of a DeepSpeed JSON file, or of the preset of that name, checked.

    Raises:
        UserError: there is no such file, it is not a JSON object, or a key or its value is not
            what is expected.
    """
    path = next(filter(is_file, (Path(name), CONFIGS / f"{name}.json")), None)
    if path is None:
        raise UserError(
            f"--deepspeed {name}: there is no such file, and no preset of that name: "
            f"{expected(name, presets('json'))}."
        )
    content = read_object(path)
    if content.get(_RECOMPUTING) and os.environ.get("RANK", "0") == "0":
        _log.warning(
            "%s: %s is ignored: --checkpoint-activations recomputes layers here", path, _RECOMPUTING
        )
    return checked(content, where=str(path))


def presets(suffix: str, *, folder: Path = CONFIGS) -> list[str]:
    """Return the names of the presets with a suffix, json or args."""
    return sorted(path.stem for path in folder.glob(f"*.{suffix}"))


def checked(content: Mapping[str, Any], *, where: str) -> dict[str, Any]:
    """Return the settings in a DeepSpeed JSON: without what is off, ignored or left to the trainer.

    Args:
        content: of the file.
        where: its name.

    Raises:
        UserError: a key is not known or has no place here, or a value is in quotes; names both.
    """
    try:
        settings = _section(
            {name: value for name, value in content.items() if not _is_off(name, value)}
        )
    except ValueError as error:
        raise UserError(f"{where}: {error}") from None
    settings.pop(_RECOMPUTING, None)
    for name in settings.keys() & _LEAST:
        settings[name] = int(settings[name])  # it may be written 5e2
    for name in settings.get(_ZERO, {}).keys() & _FORMER:
        if settings[_ZERO].pop(name):
            settings[_ZERO][_FORMER[name]] = {"device": "cpu"}
    return settings


def _is_off(name: str, value: Any) -> bool:
    """Return whether a top-level key only says that what has no place here is off."""
    return name in _REFUSED and isinstance(value, Mapping) and value.get("enabled") is False


def _section(content: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    """Return a section without what is left to the trainer and to defaults.

    Args:
        content: of the section.
        above: its place, with a dot, as `zero_optimization.`

    Raises:
        ValueError: a key or a value is refused.
    """
    kept = {}
    for name, value in content.items():
        _check(f"{above}{name}", value)
        if value is None or value == AUTO:
            continue
        if isinstance(value, Mapping):
            inner = _section(value, f"{above}{name}.")
            # What else stands in a section is for when it is enabled.
            if value.get("enabled") != AUTO and (inner or not value):
                kept[name] = inner
        else:
            kept[name] = value
    return kept


def _check(place: str, value: Any) -> None:
    """Check a key and its value, as far as that is not left to DeepSpeed.

    Raises:
        ValueError: it is refused; says why.
    """
    shown = f"{ascii(place)[1:-1]} is {_shown.repr(value)}"
    if place in _REFUSED:
        raise ValueError(f"{place!r} has no place here: {_REFUSED[place]}. Remove it.")
    if "." not in place and place not in _TOP:
        near = nearest(place, _TOP, most=1)
        hint = f"; did you mean {near[0]!r}?" if near else "."
        raise ValueError(
            f"{_shown.repr(place)} is not a top-level key of DeepSpeed, which would ignore it"
            f"{hint} Correct or remove it."
        )
    if place in SECTIONS and not isinstance(value, Mapping | None):
        raise ValueError(f"{shown}; expected {{…}} with its keys.")
    if isinstance(value, str) and _SCALAR.fullmatch(value):
        raise ValueError(f"{shown}: write it without quotes, or leave the key out for its default.")
    if place in _ADAM and value is not _ADAM[place]:
        raise ValueError(
            f"{shown}; expected {json.dumps(_ADAM[place])}, as in this trainer's Adam."
        )
    if place in _LEAST and value not in (None, AUTO) and not _is_whole(value, _LEAST[place]):
        raise ValueError(f"{shown}; expected a whole number from {_LEAST[place]} on.")


def _is_whole(value: Any, least: int) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and value >= least and value % 1 == 0


def stage_of(content: Mapping[str, Any]) -> int:
    """Return the ZeRO stage."""
    return int(content.get("zero_optimization", {}).get("stage", 0))


def precision_of(content: Mapping[str, Any]) -> str | None:
    """Return bf16, fp16 or fp32 as the file says, None if it does not."""
    enabled = {
        name: content[name].get("enabled", False) for name in (BF16, FP16) if name in content
    }
    if all(enabled.get(name) for name in (BF16, FP16)):
        raise UserError("the DeepSpeed JSON enables both bf16 and fp16: keep only one of them.")
    return next((name for name, is_on in enabled.items() if is_on), FP32 if enabled else None)


def with_precision(
    content: Mapping[str, Any], wanted: str | None, *, supported: tuple[str, ...]
) -> dict[str, Any]:
    """Return the settings with a precision that the device supports.

    Args:
        content: the settings.
        wanted: bf16, fp16, fp32, auto, or None for what the settings say, else auto.
        supported: by the device, best first; auto takes the first.

    Raises:
        UserError: the device or the ZeRO stage does not support it.
    """
    choice = wanted or precision_of(content) or AUTO
    if choice == AUTO:
        choice = supported[0]
    if choice not in supported:
        raise UserError(
            f"this device does not compute in {choice}, only in {', '.join(supported)}: give "
            f"--precision {supported[0]} (fp16 on Volta and Turing cards, fp32 on Pascal and on a "
            "CPU)."
        )
    others = () if choice == precision_of(content) else (BF16, FP16, "data_types")
    kept = {name: value for name, value in content.items() if name not in others}
    if choice not in kept and choice != FP32:
        kept[choice] = dict(FP16_SECTION) if choice == FP16 else {"enabled": True}
    if choice != FP32 and stage_of(kept) == 0:
        if "zero_optimization" in kept:
            raise UserError(
                f"{choice} needs ZeRO stage 1 or more, even on one device: at stage 0 DeepSpeed's "
                "optimizer starts with one step already counted. Set zero_optimization.stage to 1."
            )
        kept["zero_optimization"] = {"stage": 1}
    return kept


def micro_batch_of(
    content: Mapping[str, Any], wanted: int | None, *, sizes: Sequence[int], world: int
) -> int:
    """Return how many samples a rank computes at a time, for all sizes of the global batch.

    Args:
        content: DeepSpeed's settings.
        wanted: what the command line says, which wins.
        sizes: of the global batch.
        world: number of ranks.

    Raises:
        UserError: a size is not a multiple of micro-batch x ranks, or the file contradicts it.
    """
    at_most = max(1, sizes[0] // (world * content.get(_ACCUMULATION, 1)))
    micro: int = wanted or content.get(_MICRO) or at_most
    _check_batches(content, micro, sizes=sizes, world=world)
    return micro


def _check_batches(
    content: Mapping[str, Any], micro: int, *, sizes: Sequence[int], world: int
) -> None:
    """Check that micro-batches make up the global batch.

    Raises:
        UserError: a size is no multiple of what all ranks compute at once, or the file contradicts
            it.
    """
    at_once, shown = micro * world, f"(micro-batch {micro}) x (accumulation) x ({world} ranks)"
    for size in sizes:
        if size % at_once:
            below = size // at_once * at_once
            near = " or ".join(f"{n:,}" for n in (below, below + at_once) if n)
            raise UserError(
                f"a global batch of {size:,} samples is not {shown}: {at_once:,} does not divide "
                f"it. Give --batch-size {near}, or a --micro-batch that divides {size:,} / {world} "
                "ranks."
            )
    steps, stated = sizes[0] // at_once, content.get(_ACCUMULATION)
    if stated not in (None, steps):
        raise UserError(
            f"the DeepSpeed JSON says {_ACCUMULATION} {stated}, but a global batch of {sizes[0]:,} "
            f"= {shown} takes {steps}: remove it from the file, or set --batch-size "
            f"{stated * at_once:,}."
        )


def batch_size_of(content: Mapping[str, Any], micro: int | None, *, world: int) -> int | None:
    """Return the global batch size that a file describes, None if it does not."""
    micro = micro or content.get(_MICRO)
    size: int | None = micro and micro * world * content.get(_ACCUMULATION, 1)
    return content.get(_GLOBAL) or size


def engine_settings(
    content: Mapping[str, Any], *, micro: int, size: int, world: int, node_local: bool
) -> dict[str, Any]:
    """Return the complete settings for `deepspeed.initialize`."""
    kept = {key: value for key, value in content.items() if key != "optimizer"}
    return {
        "gradient_clipping": 1.0,
        "steps_per_print": 2**31,
        **kept,
        _MICRO: micro,
        _ACCUMULATION: size // (micro * world),
        _GLOBAL: size,
        "checkpoint": {**content.get("checkpoint", {}), "use_node_local_storage": node_local},
    }


def adam_of(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return those of lr, betas, eps and weight_decay that the file's optimizer sets.

    Raises:
        UserError: the optimizer is not Adam with decoupled weight decay.
    """
    section = content.get("optimizer")
    if section is None:
        return {}
    if str(section.get("type")).lower() not in ("adam", "adamw"):
        raise UserError(
            f"the DeepSpeed JSON asks for the optimizer {section.get('type')!r}: this trainer only "
            "has AdamW, with which ZeRO and exact resume are tested. Set type to AdamW."
        )
    params = section.get("params") or {}
    names = ("lr", "betas", "eps", "weight_decay")
    found = {name: params[name] for name in names if isinstance(params, dict) and name in params}
    for name, value in found.items():
        numbers = value if name == "betas" and isinstance(value, list) else [value]
        is_right = len(numbers) == (2 if name == "betas" else 1)
        if not is_right or not all(type(number) in (int, float) for number in numbers):
            raise UserError(
                f"the DeepSpeed JSON says optimizer.params.{name} {value!a}; expected "
                f"{'two numbers' if name == 'betas' else 'a number'}."
            )
    return found
