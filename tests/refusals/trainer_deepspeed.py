"""Invalid keys and values in DeepSpeed's JSON, and batch sizes that contradict it."""

from typing import Any

from tests.refusals.refusal import Refusal, no_files
from tests.refusals.setups import Setup, all_of, with_file
from tests.refusals.setups_shards import with_json
from tests.refusals.setups_trainer import ready

_COMMAND = "trainer.train --data data --model tiny --max-steps 9 --batch-size 4 --deepspeed ds.json"
_ZERO = "zero_optimization"


def _nested(place: str, value: Any) -> Any:
    for part in reversed(place.split(".")):
        value = {part: value}
    return value


def _row(name: str, content: Any, *, command: str = _COMMAND) -> Refusal:
    return Refusal(name=f"deepspeed: {name}", command=command, setup=with_json("ds.json", content))


_VALUES = (
    ("train_micro_batch_size_per_gpu", 0),
    ("train_batch_size", 1.5),
    ("train_batch_size", True),
    (_ZERO, 2),
)
"""Paths in DeepSpeed's JSON, and invalid values."""

_PLACES = (
    "scheduler",
    "amp",
    "pipeline",
    "checkpoint",
)
"""Keys of DeepSpeed's JSON that the trainer sets itself."""

_KEYS = (
    _row("an unknown key", {"foo": 1}),
    _row("a mistyped key", {"zero_optimisation": {}}),
    _row("another optimizer", {"optimizer": {"type": "Lamb"}}),
    *(
        _row(f"AdamW with {params}", {"optimizer": {"type": "AdamW", "params": params}})
        for params in ({"lr": "x"}, {"betas": [0.9]}, {"betas": "x"})
    ),
    _row("a list", [1]),
    Refusal(name="deepspeed: no JSON", command=_COMMAND, setup=with_file("ds.json", "{'a': 1}")),
    Refusal(name="deepspeed: no file", command=_COMMAND),
    Refusal(
        name="deepspeed: a mistyped preset", command=_COMMAND.replace("ds.json", "zero2-ofload")
    ),
    _row(
        "rates that are wrong here",
        {"optimizer": {"type": "adam", "params": {"betas": [0.9, 0.9], "eps": 0}}},
    ),
)

_FITTING: dict[str, Any] = {
    "train_micro_batch_size_per_gpu": 2**24,
    "gradient_accumulation_steps": "auto",
    "gradient_clipping": 0,
    "gradient_predivide_factor": 1e-6,
    "steps_per_print": None,
    "optimizer": {
        "type": "ADAMW",
        "params": {"lr": 1, "betas": [0, 0.999999999], "adam_w_mode": True},
    },
    "fp16": {
        "enabled": False,
        "initial_scale_power": 64,
        "loss_scale_window": 1,
        "hysteresis": 2**31,
    },
    "bf16": {"enabled": "auto", "check_grad_overflow": False},
    "data_types": None,
    "communication_data_type": "FP32",
    "zero_optimization": {
        "stage": 3,
        "reduce_bucket_size": 5e7,
        "sub_group_size": 2**63 - 1,
        "overlap_comm": None,
        "offload_param": {"device": "none", "buffer_count": 0},
        "offload_optimizer": {"ratio": 1, "cpuadam_cores_perc": 0},
    },
    "flops_profiler": {"module_depth": -1},
    "amp": {"enabled": False},
    "activation_checkpointing": {"number_checkpoints": None},
}
_BATCH = "trainer.train --data data --model model.json --max-steps 9 --deepspeed ds.json"


def _batch(name: str, content: Any, flags: str, setup: Setup = no_files) -> Refusal:
    return Refusal(
        name=f"deepspeed: {name}",
        command=f"{_BATCH} {flags}",
        setup=all_of(setup, ready, with_json("ds.json", content)),
    )


_BATCHES = (
    Refusal(
        name="deepspeed: values at their bounds",
        command=_COMMAND,
        setup=with_json("ds.json", _FITTING),
        output_before=r"^ds\.json: activation_checkpointing is ignored: --checkpoint-activations"
        r" recomputes layers here$",
    ),
    _batch("a micro-batch that does not divide", {}, "--batch-size 8 --micro-batch 3"),
    _batch("a micro-batch above the batch", {}, "--batch-size 8 --micro-batch 9"),
    _batch("a later batch that does not divide", {}, "--batch-size 8 5:9 --micro-batch 4"),
    _batch("a micro-batch in the file", {"train_micro_batch_size_per_gpu": 3}, "--batch-size 8"),
    _batch(
        "an accumulation that is not so",
        {"gradient_accumulation_steps": 3},
        "--batch-size 8 --micro-batch 2",
    ),
    _batch(
        "two precisions",
        {"bf16": {"enabled": True}, "fp16": {"enabled": True}, _ZERO: {"stage": 1}},
        "--batch-size 4",
    ),
    _batch("a precision in quotes", {"bf16": {"enabled": "true"}}, "--batch-size 4"),
    _batch("no stage", {_ZERO: {"stage": -1}}, "--batch-size 4"),
    _batch("what DeepSpeed refuses", {_ZERO: {"stage": 1, "cpu_offlod": 1}}, "--batch-size 4"),
    _batch("half precision at stage 0", {_ZERO: {"stage": 0}}, "--batch-size 4 --precision bf16"),
)

ROWS = (
    *(_row(f"{place} {value!r}", _nested(place, value)) for place, value in _VALUES),
    *(_row(f"{place}, which has no place here", _nested(place, {"a": 1})) for place in _PLACES),
    *_KEYS,
    *_BATCHES,
)
