"""What may stand in a DeepSpeed JSON: keys, their types and ranges.

These are the keys of DeepSpeed 0.19 that make sense here (deepspeed.ai/docs/config-json).
DeepSpeed converts what it is given: "false" in quotes is false to one of its sections and true to
another, and it ignores top-level keys that it does not know. Here each value is what it looks like,
or is refused. "auto" stands for a key that is left out, as in DeepSpeed, and so does null for a
section.

Files made for other trainers have more: sections that change no result here are left out, former
names of DeepSpeed are read as what they are called now, and the user is told both.
"""

import json
import math
import reprlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from shards.errors import UserError
from shards.spelling import nearest

_AUTO = "auto"
_ZERO_SECTION = "zero_optimization"


@dataclass(frozen=True)
class Kind:
    """The values that a key may have."""

    expected: str
    """In words."""
    accepts: Callable[[object], bool]
    whole: bool = False
    """Write 5e7 as 50000000."""


Section = Mapping[str, "Kind | Section"]
"""The keys of a JSON object."""


def _is_number(value: object) -> bool:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    return isinstance(value, int) or math.isfinite(value)


def _whole(low: int, high: int = 2**40) -> Kind:
    def accepts(value: object) -> bool:
        return _is_number(value) and low <= value <= high and int(value) == value  # type: ignore[operator, call-overload]

    return Kind(f"a whole number from {low} to {high}", accepts, whole=True)


def _number(low: float, high: float = 1e12) -> Kind:
    def accepts(value: object) -> bool:
        return _is_number(value) and low <= value <= high  # type: ignore[operator]

    return Kind(f"a number from {low:g} to {high:g}", accepts)


def _one_of(*names: str) -> Kind:
    def accepts(value: object) -> bool:
        return isinstance(value, str) and value.lower() in {name.lower() for name in names}

    return Kind(f"one of {', '.join(names)}", accepts)


def _exactly(*names: str) -> Kind:
    return Kind(
        f"one of {', '.join(names)}", lambda value: isinstance(value, str) and value in names
    )


def _list_of(item: Kind, *, length: int | None = None) -> Kind:
    def accepts(value: object) -> bool:
        return (
            isinstance(value, list)
            and length in (None, len(value))
            and all(map(item.accepts, value))
        )

    return Kind(f"a list of {length or 'items'}, each {item.expected}", accepts)


def _or_none(kind: Kind) -> Kind:
    return Kind(
        f"{kind.expected}, or null",
        lambda value: value is None or kind.accepts(value),
        whole=kind.whole,
    )


def _always(value: bool, why: str) -> Kind:
    return Kind(f"{str(value).lower()}, as {why}", lambda given: given is value)


_FLAG = Kind("true or false, without quotes", lambda value: isinstance(value, bool))
_TEXT = Kind("text in quotes", lambda value: isinstance(value, str))
_COMMUNICATED = _one_of("fp32", "fp16", "bf16")
_TYPE = _exactly(
    *("fp32", "float32", "torch.float32", "float"),
    *("fp16", "float16", "torch.float16", "half"),
    *("bf16", "bfloat16", "torch.bfloat16"),
)
_SIZE = _whole(0, 2**63 - 1)
"""Of a buffer; DeepSpeed has sys.maxsize for one without end."""
_COUNT = _whole(1, 2**31)
_SAMPLES = _whole(1, 2**24)
_SHARE = _number(0, 1)
_BETA = _number(0, 0.999999999)


def _flags(*names: str) -> Section:
    return dict.fromkeys(names, _FLAG)


_ZERO: Section = {
    "stage": _whole(0, 3),
    **_flags("contiguous_gradients", "reduce_scatter", "use_multi_rank_bucket_allreduce"),
    **_flags("allgather_partitions", "load_from_fp32_weights", "elastic_checkpoint"),
    **_flags("ignore_unused_parameters", "legacy_stage1", "round_robin_gradients"),
    **_flags("parameter_alignment", "zero_quantized_weights", "zero_quantized_gradients"),
    **_flags("zero_quantized_nontrainable_weights", "memory_efficient_linear"),
    **_flags("pipeline_loading_checkpoint", "override_module_apply", "log_trace_cache_warnings"),
    **_flags("enable_sanity_checks", "save_muon_momentum_buffer_in_memory"),
    **_flags("stage3_gather_16bit_weights_on_model_save", "stage3_use_all_reduce_for_fetch_params"),
    **_flags("stage3_allgather_sequential", "stage3_gather_fp16_weights_on_model_save"),
    "overlap_comm": _or_none(_FLAG),
    "reduce_bucket_size": _whole(1, 2**62),
    **dict.fromkeys(("allgather_bucket_size", "sub_group_size", "zero_hpz_partition_size"), _SIZE),
    **dict.fromkeys(("stage3_prefetch_bucket_size", "prefetch_bucket_size"), _SIZE),
    **dict.fromkeys(("stage3_max_live_parameters", "max_live_parameters"), _SIZE),
    **dict.fromkeys(("stage3_max_reuse_distance", "max_reuse_distance"), _SIZE),
    **dict.fromkeys(("stage3_param_persistence_threshold", "param_persistence_threshold"), _SIZE),
    **dict.fromkeys(("stage3_model_persistence_threshold", "model_persistence_threshold"), _SIZE),
    "stage3_module_granularity_threshold": _SIZE,
    "offload_param": {
        "device": _one_of("none", "cpu", "nvme"),
        "nvme_path": _or_none(_TEXT),
        **dict.fromkeys(("buffer_count", "buffer_size", "max_in_cpu"), _SIZE),
        "pin_memory": _FLAG,
    },
    "offload_optimizer": {
        "device": _one_of("none", "cpu", "nvme"),
        "nvme_path": _or_none(_TEXT),
        "buffer_count": _SIZE,
        **_flags("pin_memory", "pipeline_read", "pipeline_write", "fast_init", "super_offload"),
        **dict.fromkeys(("ratio", "cpuadam_cores_perc"), _SHARE),
    },
    "leaf_module": dict.fromkeys(("classes", "names", "name_suffixes"), _list_of(_TEXT)),
}

KEYS: Section = {
    "train_micro_batch_size_per_gpu": _SAMPLES,
    "gradient_accumulation_steps": _SAMPLES,
    "train_batch_size": _SAMPLES,
    "gradient_clipping": _number(0),
    "optimizer": {
        "type": _TEXT,
        "legacy_fusion": _FLAG,
        "params": {
            "lr": _number(0),
            "betas": _list_of(_BETA, length=2),
            "eps": _number(0),
            "weight_decay": _number(0),
            **_flags("torch_adam", "fused"),
            "adam_w_mode": _always(True, "weight decay is decoupled here"),
            "bias_correction": _always(True, "this trainer's AdamW always has it"),
            "amsgrad": _always(False, "this trainer's AdamW never has it"),
        },
    },
    "bf16": _flags(
        *("enabled", "immediate_grad_update", "check_grad_overflow"),
        *("bf16_master_weights_and_grads", "bf16_optimizer_states"),
    ),
    "fp16": {
        **_flags("enabled", "auto_cast", "consecutive_hysteresis"),
        "fp16_master_weights_and_grads": _FLAG,
        "loss_scale": _number(0),
        "initial_scale_power": _whole(0, 64),
        **dict.fromkeys(("loss_scale_window", "hysteresis", "min_loss_scale"), _COUNT),
    },
    "data_types": {
        **dict.fromkeys(("grad_accum_dtype", "param_dtype", "buffer_dtype"), _or_none(_TYPE)),
        "keep_in_fp32_modules": _list_of(_TEXT),
    },
    "communication_data_type": _or_none(_COMMUNICATED),
    _ZERO_SECTION: _ZERO,
    **_flags("zero_allow_untested_optimizer", "zero_force_ds_cpu_optimizer", "disable_allgather"),
    **_flags("prescale_gradients", "wall_clock_breakdown", "memory_breakdown", "dump_state"),
    "gradient_predivide_factor": _number(1e-6),
    "steps_per_print": _or_none(_whole(1)),
    "aio": {
        **dict.fromkeys(("block_size", "queue_depth", "intra_op_parallelism"), _COUNT),
        **_flags("single_submit", "overlap_events", "use_gds"),
    },
    "checkpoint": {
        "tag_validation": _one_of("Ignore", "Warn", "Fail"),
        "checkpoint_serialization": _FLAG,
        "parallel_write": _flags("pipeline_stage"),
    },
    "flops_profiler": {
        **_flags("enabled", "detailed"),
        "recompute_fwd_factor": _number(0),
        **dict.fromkeys(("profile_step", "top_modules"), _COUNT),
        "module_depth": _whole(-1),
        "output_file": _or_none(_TEXT),
    },
    "comms_logger": {
        **_flags("enabled", "verbose", "prof_all", "debug"),
        "prof_ops": _list_of(_TEXT),
    },
    "timers": {"throughput": _flags("enabled", "synchronized")},
    "log_level": _or_none(_one_of("debug", "info", "warning", "error", "critical")),
    "compile": {
        **_flags("deepcompile", "autoep_non_moe", "free_activation", "offload_activation"),
        **_flags("offload_activation_pin_memory", "offload_opt_states", "double_buffer"),
        **_flags("symmetric_memory", "debug_log", "offload_parameters", "sync_before_reduce"),
        **_flags("sync_after_reduce", "sync_before_allgather", "sync_after_allgather"),
        **_flags("keep_int_input_tensors", "keep_all_input_tensors"),
        "free_activation_threshold": _SIZE,
        "passes": _or_none(_list_of(_one_of("z1", "z3", "autosp", "autotp"))),
    },
    "tensorboard": {"enabled": _FLAG, "output_path": _TEXT, "job_name": _TEXT},
    "csv_monitor": {"enabled": _FLAG, "output_path": _TEXT, "job_name": _TEXT},
    "wandb": {
        "enabled": _FLAG,
        "project": _TEXT,
        **dict.fromkeys(("group", "team"), _or_none(_TEXT)),
    },
    "comet": {
        "enabled": _FLAG,
        "samples_log_interval": _COUNT,
        "online": _or_none(_FLAG),
        **dict.fromkeys(("project", "workspace", "api_key", "mode"), _or_none(_TEXT)),
        **dict.fromkeys(("experiment_name", "experiment_key"), _or_none(_TEXT)),
    },
}

_CHECKPOINTING = "activation_checkpointing"

_IGNORED: Mapping[str, Section] = {
    _CHECKPOINTING: {
        **_flags("partition_activations", "contiguous_memory_optimization", "cpu_checkpointing"),
        **_flags("synchronize_checkpoint_boundary", "profile"),
        "number_checkpoints": _or_none(_whole(0)),
    },
}
"""Sections that change no result: they are checked, and left out."""

_FORMER: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "cpu_offload": ("offload_optimizer", {"device": "cpu"}),
    "cpu_offload_param": ("offload_param", {"device": "cpu"}),
}
"""In zero_optimization: flags of DeepSpeed before 0.4, and the sections that they are now."""

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
    "aio.thread_count": "its name in DeepSpeed is now intra_op_parallelism",
    "checkpoint.load_universal": "the trainer converts checkpoints itself",
    "checkpoint.writer": "the trainer writes checkpoints itself, while training goes on",
    "checkpoint.use_node_local_storage": "the trainer finds out whether nodes share a folder",
    "zero_optimization.compute_grad_norm": "the log has the norm of the gradients",
    "zero_optimization.cpu_offload_use_pin_memory": "give pin_memory in offload_optimizer",
    "zero_optimization.zenflow": "exact resume was never tried with it",
}
"""Keys that DeepSpeed knows, by their place, and why they have none here."""

_INSTEAD: Mapping[str, str] = {_CHECKPOINTING: "--checkpoint-activations recomputes layers here"}
"""What says here what an ignored section says."""

_shown = reprlib.Repr()
_shown.maxlevel = 2
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
        UserError: a key is not known or has no place here, or a value is not what is expected;
            names both.
    """
    kept, notes = dict(content), []
    for name, value in content.items():
        if name in _IGNORED:
            _section({name: kept.pop(name)}, _IGNORED, "", where)
            notes.append(f"{name} is ignored: {_INSTEAD[name]}")
        elif _is_off(name, value):
            del kept[name]
            notes.append(f"{name} is ignored, as it is off")
    if isinstance(zero := kept.get(_ZERO_SECTION), Mapping):
        kept[_ZERO_SECTION], renamed = _by_present_names(zero, where)
        notes += renamed
    return Checked(_section(kept, KEYS, "", where), tuple(notes))


def _is_off(name: str, value: Any) -> bool:
    """Return whether a section that has no place here is switched off in the file."""
    return name in _REFUSED and isinstance(value, Mapping) and value.get("enabled") is False


def _by_present_names(zero: Mapping[str, Any], where: str) -> tuple[dict[str, Any], list[str]]:
    """Return zero_optimization with today's names, and a note for each other one."""
    kept, notes = dict(zero), []
    for name in [name for name in zero if name in _FORMER]:
        place = f"{_ZERO_SECTION}.{name}"
        present, section = _FORMER[name]
        value = kept.pop(name)
        is_on = value is not None and value != _AUTO and _value(value, _FLAG, place, where)
        if is_on and present in zero:
            raise UserError(
                f"{where}: {place} is a former name of {present}, which is there as well: keep "
                f"{present} and remove {name}."
            )
        if is_on:
            kept[present] = dict(section)
            notes.append(f"{place} is read as {present} {json.dumps(section)}")
    return kept, notes


def _section(content: Mapping[str, Any], keys: Section, above: str, where: str) -> dict[str, Any]:
    kept = {}
    for name, value in content.items():
        place = f"{above}{name}"
        if name not in keys:
            raise UserError(_unknown(name, keys, place, where))
        is_left_out = value is None and isinstance(keys[name], Mapping)
        if value == _AUTO or is_left_out:
            continue
        checked_value = _value(value, keys[name], place, where)
        if isinstance(value, Mapping) and value.get("enabled") == _AUTO:
            continue  # what else stands in it is for when it is enabled
        if checked_value != {} or value == {}:  # not a section of nothing but "auto"
            kept[name] = checked_value
    return kept


def _value(value: Any, kind: "Kind | Section", place: str, where: str) -> Any:
    if isinstance(kind, Kind):
        if not kind.accepts(value):
            raise UserError(
                f"{where}: {place} is {_shown.repr(value)}; expected {kind.expected}. Correct it, "
                "or leave the key out for its default."
            )
        return int(value) if kind.whole and value is not None else value
    if not isinstance(value, Mapping):
        raise UserError(
            f"{where}: {place} is {_shown.repr(value)}; expected {{…}} with keys of "
            f"{', '.join(list(kind)[:4])}, …. Correct it, or leave the key out for its defaults."
        )
    return _section(value, kind, f"{place}.", where)


def _unknown(name: str, keys: Section, place: str, where: str) -> str:
    if place in _REFUSED:
        return f"{where}: {place!r} has no place here: {_REFUSED[place]}. Remove it."
    known = [*keys, *(_IGNORED if keys is KEYS else ())]
    near = nearest(name, known, most=1)
    hint = f"; did you mean {near[0]!r}?" if near else "."
    if keys is KEYS:
        what = "is not a top-level key of DeepSpeed, which would ignore it"
    else:
        what = "is not a key of DeepSpeed"
    return f"{where}: {_shown.repr(place)} {what}{hint} Correct or remove it."
