"""DeepSpeed JSON in which a key or a value is refused, and batches that do not fit it."""

from collections.abc import Sequence
from typing import Any

from tests.refusals.refusal import Refusal, nothing
from tests.refusals.scenes import Scene, holding, together
from tests.refusals.scenes_shards import holding_json
from tests.refusals.scenes_trainer import imported, ready

_COMMAND = "trainer.train --data data --model tiny --max-steps 9 --batch-size 4 --deepspeed ds.json"
_CORRECT = r"\. Correct it, or leave the key out for its defaults?\.$"
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


_WHOLE = "a whole number from {} to {}"
_NUMBER = r"a number from {} to 1e\+12"
_FLAG = "true or false, without quotes"
_SAMPLES = _WHOLE.format(1, 2**24)
_COUNT = _WHOLE.format(1, 2**31)
_SIZE = _WHOLE.format(0, 2**63 - 1)
_VALUES: Sequence[tuple[str, Any, str]] = (
    ("train_micro_batch_size_per_gpu", 0, _SAMPLES),
    ("train_micro_batch_size_per_gpu", 2**24 + 1, _SAMPLES),
    ("gradient_accumulation_steps", 0, _SAMPLES),
    ("train_batch_size", 1.5, _SAMPLES),
    ("train_batch_size", "8", _SAMPLES),
    ("train_batch_size", True, _SAMPLES),
    ("gradient_clipping", -0.1, _NUMBER.format(0)),
    ("gradient_clipping", 2e12, _NUMBER.format(0)),
    ("gradient_predivide_factor", 0, _NUMBER.format("1e-06")),
    ("steps_per_print", 0, _WHOLE.format(1, 2**40) + ", or null"),
    ("optimizer.params.lr", -1, _NUMBER.format(0)),
    ("optimizer.params.lr", "1e-4", _NUMBER.format(0)),
    ("optimizer.params.betas", [0.9], r"a list of 2, each a number from 0 to 1"),
    ("optimizer.params.betas", [0.9, 1], r"a list of 2, each a number from 0 to 1"),
    ("optimizer.params.eps", -1, _NUMBER.format(0)),
    ("optimizer.params.weight_decay", -1, _NUMBER.format(0)),
    ("optimizer.params.adam_w_mode", False, "true, as weight decay is decoupled here"),
    ("optimizer.params.bias_correction", False, "true, as this trainer's AdamW always has it"),
    ("optimizer.params.amsgrad", True, "false, as this trainer's AdamW never has it"),
    ("optimizer.params.fused", 1, _FLAG),
    ("optimizer.type", 5, "text in quotes"),
    ("bf16.enabled", "true", _FLAG),
    ("bf16.enabled", None, _FLAG),
    ("fp16.loss_scale", -1, _NUMBER.format(0)),
    ("fp16.initial_scale_power", 65, _WHOLE.format(0, 64)),
    ("fp16.initial_scale_power", -1, _WHOLE.format(0, 64)),
    ("fp16.loss_scale_window", 0, _COUNT),
    ("fp16.hysteresis", 2**31 + 1, _COUNT),
    ("fp16.min_loss_scale", 0, _COUNT),
    ("data_types.grad_accum_dtype", "fp8", r"one of fp32, float32, torch\.float32, .*, or null"),
    ("data_types.keep_in_fp32_modules", ["a", 5], "a list of items, each text in quotes"),
    ("communication_data_type", "int8", "one of fp32, fp16, bf16, or null"),
    (f"{_ZERO}.stage", 4, _WHOLE.format(0, 3)),
    (f"{_ZERO}.stage", -1, _WHOLE.format(0, 3)),
    (f"{_ZERO}.stage", "2", _WHOLE.format(0, 3)),
    (f"{_ZERO}.overlap_comm", "yes", _FLAG + ", or null"),
    (f"{_ZERO}.contiguous_gradients", 1, _FLAG),
    (f"{_ZERO}.reduce_bucket_size", 0, _WHOLE.format(1, 2**62)),
    (f"{_ZERO}.reduce_bucket_size", 2**63, _WHOLE.format(1, 2**62)),
    (f"{_ZERO}.sub_group_size", -1, _SIZE),
    (f"{_ZERO}.stage3_prefetch_bucket_size", 0.5, _SIZE),
    (f"{_ZERO}.offload_param.device", "gpu", "one of none, cpu, nvme"),
    (f"{_ZERO}.offload_optimizer.device", 1, "one of none, cpu, nvme"),
    (f"{_ZERO}.offload_optimizer.ratio", 1.1, "a number from 0 to 1"),
    (f"{_ZERO}.offload_optimizer.cpuadam_cores_perc", -0.1, "a number from 0 to 1"),
    (f"{_ZERO}.offload_param.nvme_path", 5, "text in quotes, or null"),
    (f"{_ZERO}.leaf_module.classes", "x", "a list of items, each text in quotes"),
    (_ZERO, 2, r"\{…\} with keys of stage, .*, …"),
    ("bf16", True, r"\{…\} with keys of enabled, .*, …"),
    ("checkpoint.tag_validation", "Never", "one of Ignore, Warn, Fail"),
    ("flops_profiler.module_depth", -2, _WHOLE.format(-1, 2**40)),
    ("flops_profiler.top_modules", 0, _COUNT),
    ("comms_logger.prof_ops", "x", "a list of items, each text in quotes"),
    ("log_level", "loud", "one of debug, info, warning, error, critical, or null"),
    ("compile.passes", ["z2"], "a list of items, each one of z1, z3, autosp, autotp, or null"),
    ("tensorboard.output_path", 5, "text in quotes"),
    ("comet.samples_log_interval", 0, _COUNT),
    ("activation_checkpointing.number_checkpoints", -1, _WHOLE.format(0, 2**40) + ", or null"),
    ("activation_checkpointing.profile", "x", _FLAG),
)
"""Place, value, and what is expected there."""

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
    ("aio.thread_count", "its name in DeepSpeed is now intra_op_parallelism"),
    ("checkpoint.load_universal", "the trainer converts checkpoints itself"),
    ("checkpoint.writer", "the trainer writes checkpoints itself, while training goes on"),
    ("checkpoint.use_node_local_storage", "the trainer finds out whether nodes share a folder"),
    (f"{_ZERO}.compute_grad_norm", "the log has the norm of the gradients"),
    (f"{_ZERO}.cpu_offload_use_pin_memory", "give pin_memory in offload_optimizer"),
    (f"{_ZERO}.zenflow", "exact resume was never tried with it"),
)
"""What DeepSpeed knows and has no place here, and why."""

_KEYS = (
    _row(
        "an unknown key",
        {"foo": 1},
        r"ds\.json: 'foo' is not a top-level key of DeepSpeed, which would "
        r"ignore it\. Correct or remove it\.$",
    ),
    _row(
        "a mistyped key",
        {"zero_optimisation": {}},
        r"ds\.json: 'zero_optimisation' is not a top-level key "
        r"of DeepSpeed, which would ignore it; did you mean 'zero_optimization'\? Correct or "
        r"remove it\.$",
    ),
    _row(
        "a mistyped ignored key",
        {"activation_checkpoint": {}},
        r"; did you mean "
        r"'activation_checkpointing'\? Correct",
    ),
    _row(
        "a mistyped key of a section",
        {_ZERO: {"stge": 1}},
        r"ds\.json: 'zero_optimization\.stge' is not a "
        r"key of DeepSpeed; did you mean 'stage'\? Correct or remove it\.$",
    ),
    _row(
        "a mistyped key two sections deep",
        _nested(f"{_ZERO}.offload_param.devce", "cpu"),
        r"'zero_optimizat"
        r"ion\.offload_param\.devce' is not a key of DeepSpeed; did you mean 'device'\?",
    ),
    _row(
        "a former name and the present one",
        {_ZERO: {"cpu_offload": True, "offload_optimizer": {"device": "cpu"}}},
        r"ds\.json: zero_optimization\.cpu_offload is a former name of offload_optimizer, which is "
        r"there as well: keep offload_optimizer and remove cpu_offload\.$",
    ),
    _row(
        "a former name that is no flag",
        {_ZERO: {"cpu_offload_param": "yes"}},
        r"ds\.json: zero_optimization"
        r"\.cpu_offload_param is 'yes'; expected true or false, without quotes" + _CORRECT,
    ),
    _row(
        "another optimizer",
        {"optimizer": {"type": "Lamb"}},
        r"the DeepSpeed JSON asks for the optimizer "
        r"'Lamb': this trainer only has AdamW, with which ZeRO and exact resume are tested\. Set "
        r"type to "
        r"AdamW\.$",
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
        says=r"--deepspeed ds\.json: there is no such file, "
        r"and no preset of that name: give one of finetune-10b, .*, zero3-offload\.$",
    ),
    Refusal(
        name="deepspeed: a mistyped preset",
        command=_COMMAND.replace("ds.json", "zero2-ofload"),
        says=r"--deepspeed zero2-ofload: there is no such file, and no preset of that name: did "
        r"you mean "
        r"zero2-offload( or zero3-offload)?\? Give one of ",
    ),
    _row(
        "rates that are wrong here",
        {"optimizer": {"type": "adam", "params": {"betas": [0.9, 0.9], "eps": 0}}},
        r"--eps 0: a number above 0\.$",
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
        before=r"^ds\.json: amp is ignored, as it is off; activation_checkpointing is ignored: "
        r"--checkpoint-activations recomputes layers here$",
        says=r"^trainer\.train: data does not exist: give a dataset's folder",
    ),
    Refusal(
        name="deepspeed: a former name alone",
        command=_COMMAND,
        scene=together(imported, holding_json("ds.json", {_ZERO: {"cpu_offload": True}})),
        before=r"^ds\.json: zero_optimization\.cpu_offload is read as offload_optimizer "
        r'\{"device": "cpu"\}$',
        says=r"^trainer\.train: data does not exist",
    ),
    _batch(
        "a micro-batch that does not divide",
        {},
        "--batch-size 8 --micro-batch 3",
        r"a global batch of 8 "
        r"samples is not \(micro-batch 3\) x \(accumulation\) x \(1 ranks\): 3 does not divide "
        r"it\. Give "
        r"--batch-size 6 or 9, or a --micro-batch that divides 8 / 1 ranks\.$",
    ),
    _batch(
        "a micro-batch above the batch",
        {},
        "--batch-size 8 --micro-batch 9",
        r"9 does not divide it\. Give "
        r"--batch-size 9, or a --micro-batch that divides",
    ),
    _batch(
        "a later batch that does not divide",
        {},
        "--batch-size 8 5:9 --micro-batch 4",
        r"a global batch of "
        r"9 samples is not \(micro-batch 4\)",
    ),
    _batch(
        "a micro-batch in the file",
        {"train_micro_batch_size_per_gpu": 3},
        "--batch-size 8",
        r"a global "
        r"batch of 8 samples is not \(micro-batch 3\)",
    ),
    _batch(
        "an accumulation that is not so",
        {"gradient_accumulation_steps": 3},
        "--batch-size 8 --micro-batch 2",
        r"the DeepSpeed JSON says gradient_accumulation_steps 3, but a global batch of 8 = "
        r"\(micro-batch 2\) x \(accumulation\) x \(1 ranks\) takes 4: remove it from the file, or "
        r"set "
        r"--batch-size 6\.$",
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
        r"bf16 needs "
        r"ZeRO stage 1 or more, even on one device: at stage 0 DeepSpeed's optimizer starts with "
        r"one step "
        r"already counted\. Set zero_optimization\.stage to 1\.$",
    ),
    _batch(
        "micro-batches for two nodes",
        {},
        "--batch-size 4 --micro-batch 2,1",
        r"--micro-batch 2,1 is for 2 "
        r"nodes, and this run has 1: give one number for each, in the order of the launcher, or a "
        r"single one "
        r"for all\.$",
    ),
)

ROWS = (
    *(
        _row(
            f"{place} {value!r}",
            _nested(place, value),
            rf"ds\.json: {place} is .+; expected {expected}" + _CORRECT,
        )
        for place, value, expected in _VALUES
    ),
    *(
        _row(
            f"{place}, which has no place here",
            _nested(place, {"a": 1}),
            rf"ds\.json: '{place}' has no place "
            rf"here: {why}\. Remove it\.$",
        )
        for place, why in _PLACES
    ),
    *_KEYS,
    *_BATCHES,
)
