"""A DeepSpeed JSON file: read, checked, and completed with what the run decides."""

import logging
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from shards.errors import UserError
from shards.spelling import expected
from trainer.deepspeed_keys import checked
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


def read_json(name: str) -> dict[str, Any]:
    """Return the content of a DeepSpeed JSON file, or of the preset of that name, checked.

    The user is told, by the first rank, what in it is ignored or read as something else.

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
    found = checked(read_object(path), where=str(path))
    if found.notes and os.environ.get("RANK", "0") == "0":
        _log.warning("%s: %s", path, "; ".join(found.notes))
    return found.settings


def presets(suffix: str, *, folder: Path = CONFIGS) -> list[str]:
    """Return the names of the presets with a suffix, json or args."""
    return sorted(path.stem for path in folder.glob(f"*.{suffix}"))


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
    kept = dict(content) if choice == precision_of(content) else _without_precision(content)
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


def _without_precision(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings without those that belong to a precision."""
    return {key: content[key] for key in content if key not in (BF16, FP16, "data_types")}


def micro_batch_of(
    content: Mapping[str, Any], wanted: int | None, *, sizes: tuple[int, ...], world: int
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
    micro = wanted or content.get(_MICRO) or _default_micro_batch(content, sizes[0], world)
    check_batches(content, (micro,) * world, sizes=sizes)
    return int(micro)


def check_batches(
    content: Mapping[str, Any], micros: Sequence[int], *, sizes: Sequence[int]
) -> None:
    """Check that micro-batches make up the global batch.

    Args:
        content: DeepSpeed's settings.
        micros: samples that each rank computes at a time, by rank.
        sizes: of the global batch.

    Raises:
        UserError: a size is no multiple of what all ranks compute at a time, or the file
            contradicts it.
    """
    at_once, are_equal = sum(micros), len(set(micros)) == 1
    shown = (
        f"(micro-batch {micros[0]}) x (accumulation) x ({len(micros)} ranks)"
        if are_equal
        else f"(micro-batches {'+'.join(map(str, micros))} of the ranks) x (accumulation)"
    )
    for size in sizes:
        if size % at_once:
            below = size // at_once * at_once
            near = " or ".join(f"{n:,}" for n in (below, below + at_once) if n)
            other = f" that divides {size:,} / {len(micros)} ranks" if are_equal else ""
            raise UserError(
                f"a global batch of {size:,} samples is not {shown}: {at_once:,} does not divide "
                f"it. Give --batch-size {near}, or a --micro-batch{other or ' of other sizes'}."
            )
    steps, stated = sizes[0] // at_once, content.get(_ACCUMULATION)
    if stated not in (None, "auto", steps):
        raise UserError(
            f"the DeepSpeed JSON says {_ACCUMULATION} {stated}, but a global batch of {sizes[0]:,} "
            f"= {shown} takes {steps}: remove it from the file, or set --batch-size "
            f"{stated * at_once:,}."
        )


def _default_micro_batch(content: Mapping[str, Any], size: int, world: int) -> int:
    steps = content.get(_ACCUMULATION, 1)
    return max(1, size // (world * (steps if isinstance(steps, int) else 1)))


def batch_size_of(content: Mapping[str, Any], micro: int | None, *, world: int) -> int | None:
    """Return the global batch size that a file describes, None if it does not."""
    if isinstance(content.get(_GLOBAL), int):
        return int(content[_GLOBAL])
    micro = micro or content.get(_MICRO)
    steps = content.get(_ACCUMULATION, 1)
    return micro * world * (steps if isinstance(steps, int) else 1) if micro else None


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
        "checkpoint": {
            **content.get("checkpoint", {}),
            **({"use_node_local_storage": True} if node_local else {}),
        },
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
