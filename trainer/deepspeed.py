"""Reads and checks a DeepSpeed JSON file and completes it with the run's values.

DeepSpeed (0.19) checks the values of its sections, but ignores unknown top-level keys: these are
refused here, as are keys that the trainer sets itself. "auto" and null mean that a key is left
out.
"""

import logging
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from shards.commands.output import quantity
from shards.commands.spelling import expected, nearest
from shards.errors import UserError
from trainer.json_file import is_file, read_object

_log = logging.getLogger(__name__)

CONFIGS = Path(__file__).parent / "configs"
"""The folder of presets: NAME.json is the DeepSpeed JSON of a recipe, NAME.args its flags."""

FINETUNE = CONFIGS / "finetune"
"""The recipes of trainer.finetune."""

_MAX_SHOWN = 60
"""The maximum number of characters of a value in a message."""
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
_BATCHES = (_MICRO, _ACCUMULATION, _GLOBAL)
_ZERO = "zero_optimization"
_RECOMPUTING = "activation_checkpointing"
"""A section that has no effect, because --checkpoint-activations recomputes layers here."""

ZERO_3 = 3
"""The lowest ZeRO stage at which no rank has the whole model."""
SECTIONS = ("optimizer", BF16, FP16, _ZERO)
"""The sections that the trainer reads; each is an object."""
_KNOWN = (
    *(*SECTIONS, *_BATCHES, "gradient_clipping", "data_types", "aio"),
    *("flops_profiler", "comms_logger", "timers", "tensorboard", "csv_monitor"),
    *("wandb", "comet", "gradient_predivide_factor", "prescale_gradients"),
    *("communication_data_type", "zero_allow_untested_optimizer", "zero_force_ds_cpu_optimizer"),
    *("disable_allgather", "wall_clock_breakdown", "memory_breakdown", "dump_state"),
    *("steps_per_print", "log_level"),
)
"""The top-level keys that are passed to DeepSpeed."""

_FORMER = {"cpu_offload": "offload_optimizer", "cpu_offload_param": "offload_param"}
"""Flags in zero_optimization from before DeepSpeed 0.4, which THUDM/GLM's files have, and the
sections that replaced them."""


def read_json(name: str) -> dict[str, Any]:
    """Return the checked settings in a DeepSpeed JSON file, or in the preset with that name.

    Raises:
        UserError: there is no such file, it is not a JSON object, or a key or its value is invalid.
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
    return parse_settings(content, where=str(path))


def presets(suffix: str, *, folder: Path = CONFIGS) -> list[str]:
    """Return the names of the presets with a suffix, json or args."""
    return sorted(path.stem for path in folder.glob(f"*.{suffix}"))


def parse_settings(content: Mapping[str, Any], *, where: str) -> dict[str, Any]:
    """Return the settings in a DeepSpeed JSON that are not off, ignored or set by the trainer.

    Args:
        content: the content of the file.
        where: the name of the file.

    Raises:
        UserError: a top-level key is not one that is passed to DeepSpeed, or a batch size is
            invalid.
    """
    settings = {
        name: _without_auto(value)
        for name, value in content.items()
        if _is_known(name, value, where=where) and not _is_left_out(value)
    }
    for name, value in settings.items():
        if name in SECTIONS and not isinstance(value, Mapping):
            raise UserError(f"{where}: {name} is {_shown(value)}; expected {{…}} with its keys.")
        if name in _BATCHES:
            if not isinstance(value, int | float) or value is True or value < 1 or value % 1:
                raise UserError(
                    f"{where}: {name} is {_shown(value)}; expected a whole number from 1 on."
                )
            settings[name] = int(value)  # it may be written as 5e2
    for name in settings.get(_ZERO, {}).keys() & _FORMER:
        if settings[_ZERO].pop(name):
            settings[_ZERO][_FORMER[name]] = {"device": "cpu"}
    return settings


def _is_known(name: str, value: Any, *, where: str) -> bool:
    """Return whether a key is passed to DeepSpeed; a section that is off may have any name.

    Raises:
        UserError: the key is not allowed here.
    """
    is_off = isinstance(value, Mapping) and value.get("enabled") is False
    if name in _KNOWN or name == _RECOMPUTING or is_off:
        return name in _KNOWN
    near = nearest(name, _KNOWN, most=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise UserError(
        f"{where}: {_shown(name)} is not allowed here: a flag of the trainer sets it, or "
        f"DeepSpeed does not know it and would ignore it.{hint} Correct or remove it."
    )


def _is_left_out(value: Any) -> bool:
    """Return whether a value means that its key is left out."""
    is_auto = isinstance(value, Mapping) and value.get("enabled") == AUTO
    return value is None or value == AUTO or is_auto


def _without_auto(value: Any) -> Any:
    """Return a value without the keys whose values mean that they are left out."""
    if not isinstance(value, Mapping):
        return value
    return {name: _without_auto(inner) for name, inner in value.items() if not _is_left_out(inner)}


def _shown(value: Any) -> str:
    shown = ascii(value)
    return shown if len(shown) <= _MAX_SHOWN else f"{shown[:_MAX_SHOWN]}…"


def stage_of(content: Mapping[str, Any]) -> int:
    """Return the ZeRO stage in DeepSpeed's settings."""
    return int(content.get(_ZERO, {}).get("stage", 0))


def precision_of(content: Mapping[str, Any]) -> str | None:
    """Return the precision in DeepSpeed's settings: bf16, fp16 or fp32; None if it is not set."""
    enabled = {
        name: content[name].get("enabled", False) for name in (BF16, FP16) if name in content
    }
    for name, is_on in enabled.items():
        if not isinstance(is_on, bool):
            raise UserError(
                f"the DeepSpeed JSON sets {name}.enabled to {_shown(is_on)}; expected true or "
                "false, without quotes."
            )
    if all(enabled.get(name) for name in (BF16, FP16)):
        raise UserError("the DeepSpeed JSON enables both bf16 and fp16: keep only one of them.")
    return next((name for name, is_on in enabled.items() if is_on), FP32 if enabled else None)


def scales_loss(content: Mapping[str, Any]) -> bool:
    """Return whether the settings compute in fp16 with a dynamic loss scale."""
    return precision_of(content) == FP16 and not content[FP16].get("loss_scale")


def with_precision(
    content: Mapping[str, Any], wanted: str | None, *, supported: tuple[str, ...]
) -> dict[str, Any]:
    """Return the settings with a precision that the device supports.

    Args:
        content: the settings.
        wanted: bf16, fp16, fp32 or auto; None for the precision of the settings, or for auto if
            they have none.
        supported: the precisions that the device supports, best first; auto takes the first.

    Raises:
        UserError: the device or the ZeRO stage does not support the precision.
    """
    stated = precision_of(content)
    choice = wanted or stated or AUTO
    if choice == AUTO:
        choice = supported[0]
    if choice not in supported:
        raise UserError(
            f"this device does not support {choice}, only {', '.join(supported)}: give "
            f"--precision {supported[0]} (fp16 on Volta and Turing cards, fp32 on Pascal and on a "
            "CPU)."
        )
    settings = dict(content)
    if choice != stated:
        for name in (BF16, FP16, "data_types"):
            settings.pop(name, None)
        if choice != FP32:
            settings[choice] = dict(FP16_SECTION) if choice == FP16 else {"enabled": True}
    if choice != FP32 and settings.get(_ZERO, {}).get("stage", 0) == 0:
        if _ZERO in settings:
            raise UserError(
                f"{choice} needs ZeRO stage 1 or more, even on one device: at stage 0 DeepSpeed's "
                "optimizer starts with one step already counted. Set zero_optimization.stage to 1."
            )
        settings[_ZERO] = {"stage": 1}
    return settings


def micro_batch_of(
    content: Mapping[str, Any], wanted: int | None, *, sizes: Sequence[int], world: int
) -> int:
    """Return the number of samples per rank and micro-batch, for all sizes of the global batch.

    Args:
        content: DeepSpeed's settings.
        wanted: the size on the command line, which takes precedence.
        sizes: all sizes of the global batch.
        world: the number of ranks.

    Raises:
        UserError: a size is not a multiple of micro-batch x ranks, or the settings contradict the
            first size.
    """
    at_most = max(1, sizes[0] // (world * content.get(_ACCUMULATION, 1)))
    micro: int = wanted or content.get(_MICRO) or at_most
    at_once, shown = (
        micro * world,
        f"(micro-batch {micro}) x (accumulation) x ({quantity(world, 'rank')})",
    )
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
            f"the DeepSpeed JSON sets {_ACCUMULATION} to {stated}, but a global batch of "
            f"{sizes[0]:,} = {shown} takes {steps}: remove it from the file, or set --batch-size "
            f"{stated * at_once:,}."
        )
    return micro


def batch_size_of(content: Mapping[str, Any], micro: int | None, *, world: int) -> int | None:
    """Return the global batch size that DeepSpeed's settings set; None if they set none."""
    micro = micro or content.get(_MICRO)
    size: int | None = micro and micro * world * content.get(_ACCUMULATION, 1)
    return content.get(_GLOBAL) or size


def engine_settings(
    content: Mapping[str, Any], *, micro: int, size: int, world: int
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
    }


def adam_of(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values among lr, betas, eps and weight_decay that the file's optimizer sets.

    Raises:
        UserError: the optimizer is not Adam with decoupled weight decay.
    """
    section = content.get("optimizer")
    if section is None:
        return {}
    if str(section.get("type")).lower() not in ("adam", "adamw"):
        raise UserError(
            f"the DeepSpeed JSON names the optimizer {section.get('type')!r}: this trainer only "
            "has AdamW, with which ZeRO and exact resume are tested. Set type to AdamW."
        )
    params = section.get("params") or {}
    names = ("lr", "betas", "eps", "weight_decay")
    return {name: params[name] for name in names if isinstance(params, dict) and name in params}
