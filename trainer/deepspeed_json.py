"""A DeepSpeed JSON file: read, checked, and completed with what the run decides.

DeepSpeed ignores a top-level key that it does not know, so that a misspelt one goes unnoticed; here
it is refused. What the trainer does itself (data, schedule, accumulation) is refused too.
"""

import difflib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from shards.errors import UserError

CONFIGS = Path(__file__).parent / "configs"
"""Presets: NAME.json is the DeepSpeed JSON of a recipe, NAME.args its flags."""

BF16, FP16, FP32 = "bf16", "fp16", "fp32"
AUTO = "auto"

FP16_SECTION: Mapping[str, Any] = {
    "enabled": True,
    "loss_scale": 0,
    "loss_scale_window": 1000,
    "hysteresis": 2,
    "min_loss_scale": 1,
}
"""Dynamic loss scale as THUDM/GLM trains with (config/config_block_*.json)."""

_MICRO = "train_micro_batch_size_per_gpu"
_ACCUMULATION = "gradient_accumulation_steps"
_GLOBAL = "train_batch_size"

_KEYS = frozenset(
    {
        *(_MICRO, _ACCUMULATION, _GLOBAL, "optimizer", "gradient_clipping"),
        *("bf16", "fp16", "data_types", "communication_data_type", "zero_optimization"),
        *("zero_allow_untested_optimizer", "zero_force_ds_cpu_optimizer", "aio", "checkpoint"),
        *("prescale_gradients", "gradient_predivide_factor", "disable_allgather"),
        *("steps_per_print", "wall_clock_breakdown", "memory_breakdown", "dump_state"),
        *("flops_profiler", "comms_logger", "timers", "log_level", "compile"),
        *("tensorboard", "wandb", "csv_monitor", "comet"),
    }
)
"""Top-level keys of DeepSpeed 0.19 that make sense here (deepspeed.ai/docs/config-json)."""

_OURS: Mapping[str, str] = {
    "scheduler": "the learning rate is this trainer's: --schedule, --warmup, --decay-steps",
    "activation_checkpointing": "give --checkpoint-activations",
    "elasticity": "a run goes on with any number of ranks by itself",
    "data_efficiency": "the order of the data is the sampler's",
    "curriculum_learning": "the order of the data is the sampler's: --data-from",
    "gradient_allreduce_op": "the loss is already divided by the tokens of the global batch",
    "managed_gradient_accumulation": "accumulation follows from --batch-size and --micro-batch",
    "torch_autocast": "give bf16 or fp16",
    "amp": "give bf16 or fp16",
    "sparse_attention": "attention is the model's",
    "pipeline": "there is no pipeline parallelism here",
    "tensor_parallel": "there is no tensor parallelism here",
}


def read_json(name: str) -> dict[str, Any]:
    """Return the content of a DeepSpeed JSON file, or of the preset of that name, checked.

    Raises:
        UserError: there is no such file, it is no JSON object, or it has a key that is not served.
    """
    path = Path(name) if Path(name).is_file() else CONFIGS / f"{name}.json"
    if not path.is_file():
        raise UserError(
            f"--deepspeed {name}: there is no such file, and no preset of that name; the presets "
            f"are {', '.join(presets('json'))}."
        )
    try:
        content = json.loads(path.read_text("utf-8"))
    except ValueError as error:
        raise UserError(f"{path} is no JSON ({error}): mend it there.") from error
    if not isinstance(content, dict):
        raise UserError(f"{path} is not an object of DeepSpeed's settings: it begins with {{.")
    for key in content:
        _check_key(key, path)
    return content


def presets(suffix: str) -> list[str]:
    """Return the names of the presets of a kind, json or args."""
    return sorted(path.stem for path in CONFIGS.glob(f"*.{suffix}"))


def _check_key(key: str, path: Path) -> None:
    if key in _OURS:
        raise UserError(f"{path}: {key!r} has no place here: {_OURS[key]}. Take it out.")
    if key not in _KEYS:
        near = difflib.get_close_matches(key, _KEYS, 1)
        hint = f"; is {near[0]!r} meant?" if near else ""
        raise UserError(
            f"{path}: {key!r} is no top-level key of DeepSpeed, which would ignore it{hint} "
            "Correct it or take it out."
        )


def stage_of(content: Mapping[str, Any]) -> int:
    """Return the ZeRO stage."""
    return int(content.get("zero_optimization", {}).get("stage", 0))


def precision_of(content: Mapping[str, Any]) -> str | None:
    """Return bf16, fp16 or fp32 as the file says, None if it says nothing."""
    said = {name: content[name].get("enabled", False) for name in (BF16, FP16) if name in content}
    if all(said.get(name) for name in (BF16, FP16)):
        raise UserError("the DeepSpeed JSON enables both bf16 and fp16: leave one of them.")
    return next((name for name, on in said.items() if on), FP32 if said else None)


def with_precision(
    content: Mapping[str, Any], wanted: str | None, *, served: tuple[str, ...]
) -> dict[str, Any]:
    """Return the settings with a precision that the device serves.

    Args:
        content: the settings.
        wanted: bf16, fp16, fp32, auto, or None: what the settings say, else auto.
        served: by the device, best first: what auto takes.

    Raises:
        UserError: the device does not serve it, or the ZeRO stage does not.
    """
    choice = wanted or precision_of(content) or AUTO
    if choice == AUTO:
        choice = served[0]
    if choice not in served:
        raise UserError(
            f"this device does not compute in {choice}; it does in {', '.join(served)}: give "
            f"--precision {served[0]} (Volta and Turing cards take fp16, a CPU fp32)."
        )
    kept = dict(content) if choice == precision_of(content) else _without_precision(content)
    if choice not in kept and choice != FP32:
        kept[choice] = dict(FP16_SECTION) if choice == FP16 else {"enabled": True}
    if choice != FP32 and stage_of(kept) == 0:
        if "zero_optimization" in kept:
            raise UserError(
                f"{choice} needs ZeRO stage 1 or more, also on one device: at stage 0 DeepSpeed's "
                "optimizer starts with one step already counted. Set zero_optimization.stage to 1."
            )
        kept["zero_optimization"] = {"stage": 1}
    return kept


def _without_precision(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings without what only the precision that they name can use."""
    return {key: content[key] for key in content if key not in (BF16, FP16, "data_types")}


def micro_batch_of(
    content: Mapping[str, Any], given: int | None, *, sizes: tuple[int, ...], world: int
) -> int:
    """Return the samples that a rank computes at a time, for all sizes of the global batch.

    Args:
        content: DeepSpeed's settings.
        given: by the command line, which comes first.
        sizes: of the global batch.
        world: number of ranks.

    Raises:
        UserError: a size is no multiple of micro-batch x ranks, or the file contradicts it.
    """
    micro = given or content.get(_MICRO) or _accumulated(content, sizes[0], world)
    for size in sizes:
        if size % (micro * world):
            below = max(1, size // (micro * world)) * micro * world
            raise UserError(
                f"a global batch of {size:,} samples is not (micro-batch {micro}) x (accumulation) "
                f"x ({world} ranks): {micro * world:,} does not divide it. Take --batch-size "
                f"{below:,}, or a --micro-batch that divides {size:,} / {world} ranks."
            )
    steps, said = sizes[0] // (micro * world), content.get(_ACCUMULATION)
    if said not in (None, "auto", steps):
        raise UserError(
            f"the DeepSpeed JSON says {_ACCUMULATION} {said}, but a global batch of {sizes[0]:,} "
            f"on {world} ranks with a micro-batch of {micro} takes {steps}: leave it out of the "
            f"file, or set --batch-size {said * micro * world:,}."
        )
    return int(micro)


def _accumulated(content: Mapping[str, Any], size: int, world: int) -> int:
    steps = content.get(_ACCUMULATION, 1)
    return max(1, size // (world * (steps if isinstance(steps, int) else 1)))


def batch_size_of(content: Mapping[str, Any], micro: int | None, *, world: int) -> int | None:
    """Return the global batch that a file describes, None if it does not."""
    if isinstance(content.get(_GLOBAL), int):
        return int(content[_GLOBAL])
    micro = micro or content.get(_MICRO)
    steps = content.get(_ACCUMULATION, 1)
    return micro * world * (steps if isinstance(steps, int) else 1) if micro else None


def completed(
    content: Mapping[str, Any], *, micro: int, size: int, world: int, node_local: bool
) -> dict[str, Any]:
    """Return the settings for `deepspeed.initialize`."""
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
    """Return lr, betas, eps and weight_decay as far as the file's optimizer names them.

    Raises:
        UserError: it is another optimizer than Adam with decoupled weight decay.
    """
    section = content.get("optimizer")
    if section is None:
        return {}
    if str(section.get("type")).lower() not in ("adam", "adamw"):
        raise UserError(
            f"the DeepSpeed JSON asks for the optimizer {section.get('type')!r}: this trainer has "
            "AdamW, since ZeRO and an exact resume are tried with it. Set type to AdamW."
        )
    given = section.get("params", {})
    return {name: given[name] for name in ("lr", "betas", "eps", "weight_decay") if name in given}
