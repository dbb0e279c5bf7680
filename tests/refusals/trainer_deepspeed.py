"""DeepSpeed JSON in which a key or a value is refused, and batches that do not fit it."""

from collections.abc import Sequence
from typing import Any

from tests.refusals.refusal import Refusal, nothing
from tests.refusals.scenes import Scene, holding, together
from tests.refusals.scenes_shards import holding_json
from tests.refusals.scenes_trainer import imported, ready

_COMMAND = "trainer.train --data data --model tiny --max-steps 9 --batch-size 4 --deepspeed ds.json"
_ZERO = "zero_optimization"


def _nested(place: str, value: Any) -> Any:
    for part in reversed(place.split(".")):
        value = {part: value}
    return value


def _row(name: str, content: Any, says: str, *, command: str = _COMMAND) -> Refusal:
    return Refusal(
        name=f"deepspeed: {name}",
        command=command,
        says=says,
        scene=holding_json("ds.json", content),
    )


_QUOTES = r": write it without quotes, or leave the key out for its default\.$"
_VALUES: Sequence[tuple[str, Any, str]] = (
    ("train_micro_batch_size_per_gpu", 0, r"; expected a whole number from 1 on\.$"),
    ("gradient_accumulation_steps", 0, r"; expected a whole number from 1 on\.$"),
    ("train_batch_size", 1.5, r"; expected a whole number from 1 on\.$"),
    ("train_batch_size", "8", _QUOTES),
    ("train_batch_size", True, r"; expected a whole number from 1 on\.$"),
    ("optimizer.params.lr", "1e-4", _QUOTES),
    ("optimizer.params.adam_w_mode", False, r"; expected true, as in this trainer's Adam\.$"),
    ("optimizer.params.bias_correction", False, r"; expected true, as in this trainer's Adam\.$"),
    ("optimizer.params.amsgrad", True, r"; expected false, as in this trainer's Adam\.$"),
    ("bf16.enabled", "true", _QUOTES),
    (f"{_ZERO}.stage", -1, r"; expected a whole number from 0 on\.$"),
    (f"{_ZERO}.stage", "2", _QUOTES),
    (f"{_ZERO}.stage3_prefetch_bucket_size", "5e7", _QUOTES),
    (_ZERO, 2, r"; expected \{…\} with its keys\.$"),
    ("bf16", True, r"; expected \{…\} with its keys\.$"),
)
"""Place, value, and what is said of it."""

_PLACES: Sequence[tuple[str, str]] = (
    ("scheduler", "this trainer sets the learning rate: --schedule, --warmup, --decay-steps"),
    ("elasticity", "a run resumes on any number of ranks anyway"),
    ("data_efficiency", "the sampler decides the order of the data"),
    ("curriculum_learning", "the sampler decides the order of the data: --data-from"),
    ("gradient_allreduce_op", "the loss is already divided by the tokens of the global batch"),
    ("managed_gradient_accumulation", "accumulation follows from --batch-size and --micro-batch"),
    ("torch_autocast", "give bf16 or fp16"),
    ("amp", "give bf16 or fp16"),
    ("sparse_attention", "the model brings its own attention"),
    ("pipeline", "there is no pipeline parallelism here"),
    ("tensor_parallel", "there is no tensor parallelism here"),
    ("checkpoint.load_universal", "the trainer converts checkpoints itself"),
    ("checkpoint.writer", "the trainer writes checkpoints itself, while training goes on"),
    ("checkpoint.use_node_local_storage", "the trainer finds out whether nodes share a folder"),
    (f"{_ZERO}.compute_grad_norm", "the log has the norm of the gradients"),
    (f"{_ZERO}.zenflow", "exact resume was never tried with it"),
)
"""What DeepSpeed knows and has no place here, and why."""

_KEYS = (
    _row(
        "an unknown key",
        {"foo": 1},
        r"ds\.json: 'foo' is not a top-level key of DeepSpeed, which would ignore it\. Correct or"
        r" remove it\.$",
    ),
    _row(
        "a mistyped key",
        {"zero_optimisation": {}},
        r"ds\.json: 'zero_optimisation' is not a top-level key of DeepSpeed, which would ignore"
        r" it; did you mean 'zero_optimization'\? Correct or remove it\.$",
    ),
    _row(
        "a mistyped ignored key",
        {"activation_checkpoint": {}},
        r"; did you mean 'activation_checkpointing'\? Correct",
    ),
    _row(
        "another optimizer",
        {"optimizer": {"type": "Lamb"}},
        r"the DeepSpeed JSON asks for the optimizer 'Lamb': this trainer only has AdamW, with"
        r" which ZeRO and exact resume are tested\. Set type to AdamW\.$",
    ),
    _row(
        "an optimizer of no type",
        {"optimizer": {"params": {"lr": 1}}},
        r"asks for the optimizer None: ",
    ),
    _row("a list", [1], r"ds\.json is not a JSON object: expected keys and values in \{…\}\.$"),
    Refusal(
        name="deepspeed: no JSON",
        command=_COMMAND,
        scene=holding("ds.json", "{'a': 1}"),
        says=r"ds\.json is not valid JSON \(.*\): correct it there\.$",
    ),
    Refusal(
        name="deepspeed: no file",
        command=_COMMAND,
        says=r"--deepspeed ds\.json: there is no such file, and no preset of that name: give one"
        r" of finetune-10b, .*, zero3-offload\.$",
    ),
    Refusal(
        name="deepspeed: a mistyped preset",
        command=_COMMAND.replace("ds.json", "zero2-ofload"),
        says=r"--deepspeed zero2-ofload: there is no such file, and no preset of that name: did"
        r" you mean zero2-offload( or zero3-offload)?\? Give one of ",
    ),
    _row(
        "rates that are wrong here",
        {"optimizer": {"type": "adam", "params": {"betas": [0.9, 0.9], "eps": 0}}},
        r"--eps: '0' is not a number above 0, as in 1 or 0\.5\. ",
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


def _batch(name: str, content: Any, flags: str, says: str, scene: Scene = nothing) -> Refusal:
    return Refusal(
        name=f"deepspeed: {name}",
        command=f"{_BATCH} {flags}",
        says=says,
        scene=together(scene, ready, holding_json("ds.json", content)),
    )


_BATCHES = (
    Refusal(
        name="deepspeed: values at their bounds",
        command=_COMMAND,
        scene=together(imported, holding_json("ds.json", _FITTING)),
        before=r"^ds\.json: activation_checkpointing is ignored: --checkpoint-activations"
        r" recomputes layers here$",
        says=r"^trainer\.train: data does not exist: give a dataset's folder",
    ),
    _batch(
        "a micro-batch that does not divide",
        {},
        "--batch-size 8 --micro-batch 3",
        r"a global batch of 8 samples is not \(micro-batch 3\) x \(accumulation\) x \(1 ranks\): 3"
        r" does not divide it\. Give --batch-size 6 or 9, or a --micro-batch that divides 8 / 1"
        r" ranks\.$",
    ),
    _batch(
        "a micro-batch above the batch",
        {},
        "--batch-size 8 --micro-batch 9",
        r"9 does not divide it\. Give --batch-size 9, or a --micro-batch that divides",
    ),
    _batch(
        "a later batch that does not divide",
        {},
        "--batch-size 8 5:9 --micro-batch 4",
        r"a global batch of 9 samples is not \(micro-batch 4\)",
    ),
    _batch(
        "a micro-batch in the file",
        {"train_micro_batch_size_per_gpu": 3},
        "--batch-size 8",
        r"a global batch of 8 samples is not \(micro-batch 3\)",
    ),
    _batch(
        "an accumulation that is not so",
        {"gradient_accumulation_steps": 3},
        "--batch-size 8 --micro-batch 2",
        r"the DeepSpeed JSON says gradient_accumulation_steps 3, but a global batch of 8 ="
        r" \(micro-batch 2\) x \(accumulation\) x \(1 ranks\) takes 4: remove it from the file, or"
        r" set --batch-size 6\.$",
    ),
    _batch(
        "two precisions",
        {"bf16": {"enabled": True}, "fp16": {"enabled": True}, _ZERO: {"stage": 1}},
        "--batch-size 4",
        r"the DeepSpeed JSON enables both bf16 and fp16: keep only one of them\.$",
    ),
    _batch(
        "half precision at stage 0",
        {_ZERO: {"stage": 0}},
        "--batch-size 4 --precision bf16",
        r"bf16 needs ZeRO stage 1 or more, even on one device: at stage 0 DeepSpeed's optimizer"
        r" starts with one step already counted\. Set zero_optimization\.stage to 1\.$",
    ),
    _batch(
        "micro-batches for two nodes",
        {},
        "--batch-size 4 --micro-batch 2,1",
        r"--micro-batch 2,1 is for 2 nodes, and this run has 1: give one number for each, in the"
        r" order of the launcher, or a single one for all\.$",
    ),
)

ROWS = (
    *(
        _row(
            f"{place} {value!r}",
            _nested(place, value),
            rf"ds\.json: {place} is .+{says}",
        )
        for place, value, says in _VALUES
    ),
    *(
        _row(
            f"{place}, which has no place here",
            _nested(place, {"a": 1}),
            rf"ds\.json: '{place}' has no place here: {why}\. Remove it\.$",
        )
        for place, why in _PLACES
    ),
    *_KEYS,
    *_BATCHES,
)
