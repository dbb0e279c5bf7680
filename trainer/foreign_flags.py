"""The most common flags of other trainers, and their counterparts here.

The flags are those of THUDM/GLM, Megatron-LM, DeepSpeed and transformers' Trainer.
docs/coming-from.md explains some of these flags. A dash also matches an underscore.
"""

from collections.abc import Mapping

from shards.commands.table import called

_HERE = {
    "here --deepspeed FILE": "--deepspeed-config",
    "here a key of the JSON of --deepspeed FILE": (
        "--zero-stage --gradient-clipping --clip-grad --max-grad-norm"
    ),
    "here --micro-batch N, and --batch-size N for all ranks together": (
        "--micro-batch-size --per-device-train-batch-size --gradient-accumulation-steps "
        "--global-batch-size"
    ),
    "here --precision of training, --dtype of the other commands": "--fp16 --bf16",
    "here --model NAME, or --model FILE.json with the shape": (
        "--num-layers --hidden-size --num-attention-heads"
    ),
    "here --init-from PATH of training, the first word of the other commands": (
        "--load-pretrained --model-name-or-path"
    ),
    f"here --data DIR, which {called('CORPUS')} makes, with its --tokenizer": (
        "--train-data --data-path --train-file --dataset-name"
    ),
    "here --max-steps N, --max-tokens N or --epochs N": "--train-iters --num-train-epochs",
    "here --length N": "--seq-length --max-seq-length --block-size",
    "here --save-every N, in steps": "--save-interval --save-steps",
    "here --eval-every N, in steps": "--eval-interval --eval-steps",
    "here --log-every N, in steps": "--log-interval --logging-steps",
    "here --warmup N, a share below 1": "--warmup-steps --warmup-ratio",
    "here --schedule": "--lr-decay-style --lr-scheduler-type",
    "here --lr LR": "--learning-rate",
    "here --save DIR of training, --output DIR of trainer.export": "--output-dir",
    "here repeat the command with the same --save, or --resume DIR": "--resume-from-checkpoint",
    "here --checkpoint-activations": "--gradient-checkpointing",
    "compiled is what a GPU does here, and --no-compile turns that off": "--torch-compile",
    "not needed: trainer.train also validates, and trainer.evaluate evaluates": "--do-train",
    "not there: AdamW is the only optimizer": "--optim",
}
FOREIGN_FLAGS: Mapping[str, str] = {
    flag: here for here, flags in _HERE.items() for flag in flags.split()
}
