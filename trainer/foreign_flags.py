"""The commonest flags of other trainers, and what each is here.

They are of THUDM/GLM, Megatron-LM, llm.c, DeepSpeed, the Trainer of transformers and
lm-evaluation-harness; docs/coming-from.md says more of some. Dashes stand for underscores too.
"""

from collections.abc import Mapping

from shards.program import called

_SIZES = "here --micro-batch N, and --batch-size N for all ranks together"
_SHAPE = "here --model NAME, or --model FILE.json with the shape"
_PRECISION = "here --precision of training, --dtype of the other commands"
_DATA = f"here --data DIR, which {called('CORPUS')} makes, with its --tokenizer"
_STEPS = "here --max-steps N, --max-tokens N or --epochs N"
_MODEL = "here --init-from PATH of training, the first word of the other commands"
_WHEN = "here --save-every, --eval-every and --log-every, in steps; the first two may be epoch"
_KIND = "not needed: trainer.train also validates, and trainer.evaluate evaluates"
_UPLOAD = "not there: trainer.export MODEL --to hf --output DIR, then upload the folder"
_DEEPSPEED = "here a key of the JSON of --deepspeed FILE"

FOREIGN_FLAGS: Mapping[str, str] = {
    "--deepspeed-config": "here --deepspeed FILE",
    **dict.fromkeys(("--zero-stage", "--gradient-clipping", "--clip-grad"), _DEEPSPEED),
    **dict.fromkeys(("--loss-scale", "--max-grad-norm"), _DEEPSPEED),
    **dict.fromkeys(("--micro-batch-size", "--per-device-train-batch-size"), _SIZES),
    "--per-device-eval-batch-size": _SIZES,
    **dict.fromkeys(("--gradient-accumulation-steps", "--global-batch-size"), _SIZES),
    **dict.fromkeys(("--fp16", "--bf16"), _PRECISION),
    **dict.fromkeys(("--num-layers", "--hidden-size", "--num-attention-heads"), _SHAPE),
    **dict.fromkeys(("--config-name", "--config-overrides"), _SHAPE),
    **dict.fromkeys(("--load-pretrained", "--model-name-or-path"), _MODEL),
    **dict.fromkeys(("--train-data", "--data-path", "--dataset", "--tokenizer-type"), _DATA),
    **dict.fromkeys(("--train-file", "--validation-file", "--dataset-name"), _DATA),
    "--tokenizer-name": _DATA,
    **dict.fromkeys(("--train-iters", "--num-train-epochs", "--num-steps"), _STEPS),
    **dict.fromkeys(("--seq-length", "--max-seq-length", "--block-size"), "here --length N"),
    **dict.fromkeys(("--save-interval", "--save-steps"), "here --save-every N, in steps"),
    **dict.fromkeys(("--eval-interval", "--eval-steps"), "here --eval-every N, in steps"),
    **dict.fromkeys(("--log-interval", "--logging-steps"), "here --log-every N, in steps"),
    **dict.fromkeys(("--warmup-steps", "--warmup-ratio"), "here --warmup N, a share below 1"),
    **dict.fromkeys(("--lr-decay-style", "--lr-scheduler-type"), "here --schedule"),
    **dict.fromkeys(("--save-strategy", "--eval-strategy", "--evaluation-strategy"), _WHEN),
    **dict.fromkeys(("--adam-beta1", "--adam-beta2"), "here --betas B B"),
    **dict.fromkeys(("--report-to", "--logging-dir"), "here TensorBoard's files are in --save DIR"),
    **dict.fromkeys(("--do-train", "--do-eval"), _KIND),
    **dict.fromkeys(("--push-to-hub", "--hub-model-id"), _UPLOAD),
    "--adam-epsilon": "here --eps EPS",
    "--optim": "not there: AdamW is the only optimizer",
    "--compile": "compiled is what a GPU does here, and --no-compile turns that off",
    "--torch-compile": "compiled is what a GPU does here, and --no-compile turns that off",
    "--fsdp": "not there: ZeRO divides the model, --deepspeed FILE says how",
    "--resume-from-checkpoint": "here repeat the command with the same --save, or --resume DIR",
    "--overwrite-output-dir": "not there: give another --save, or remove the folder first",
    "--load-best-model-at-end": "not needed: trainer.finetune keeps its best epoch in SAVE/best",
    "--dataloader-num-workers": "not needed: a thread of each rank reads ahead",
    "--label-smoothing-factor": "here --label-smoothing of trainer.finetune",
    "--max-source-length": "here --source-length of trainer.finetune",
    "--max-target-length": "here --target-length of trainer.finetune",
    "--learning-rate": "here --lr LR",
    "--min-lr": "here --lr-floor F, a share of --lr",
    "--load": "here --resume DIR of training, the first word of the other commands",
    "--output-dir": "here --save DIR of training, --output DIR of trainer.export",
    "--save-total-limit": "here --keep N",
    "--gradient-checkpointing": "here --checkpoint-activations",
    "--model-parallel-size": "not there: ZeRO divides the model, --deepspeed FILE says how",
    "--block-lm": "here --objective glm, the default; --blanks NAME=VALUE has its shares",
    "--task-name": "here --task",
    "--num-beams": "here --beams N",
    "--max-length": "here --max-new-tokens N",
}
