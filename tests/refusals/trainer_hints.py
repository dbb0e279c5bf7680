"""Flags of other trainers: each is refused with what it is here."""

import re
from collections.abc import Iterator, Mapping

from tests.refusals.refusal import Refusal

_AT_ONCE = 12
"""Flags of a row, or a few more."""

_TRAIN: Mapping[str, str] = {
    "here --deepspeed FILE": "--deepspeed-config",
    (
        'here {"zero_optimization": {"stage": N}} in the JSON of --deepspeed; 1 if the '
        "file says nothing"
    ): "--zero-stage --stage -z",
    "here --micro-batch N, and --batch-size N for all ranks together": (
        "--train-micro-batch-size-per-gpu --micro-batch-size "
        "--per-device-train-batch-size --gradient-accumulation-steps -b"
    ),
    "here --batch-size N, of all ranks together": "--train-batch-size --global-batch-size",
    "here --precision fp16, bf16, fp32 or auto": "--fp16 --bf16 --half",
    'here the section "fp16" of the JSON of --deepspeed': (
        "--loss-scale --loss-scale-window --min-scale --hysteresis --dynamic-loss-scale"
    ),
    'here "gradient_clipping" in the JSON of --deepspeed; 1.0 by itself': (
        "--gradient-clipping --clip-grad --max-grad-norm"
    ),
    "here --lr LR": "--learning-rate -l",
    "here --schedule cosine, linear or constant": "--lr-decay-style --lr-scheduler-type -k",
    "here --lr-floor F, a share of --lr": "--min-lr --lr-decay-ratio -q",
    "here --warmup N, in steps; below 1 a share": "--warmup-steps --lr-warmup-iters -u",
    "here --warmup F, a share below 1": "--warmup-ratio --lr-warmup-fraction",
    "here --betas B B": "--adam-beta1 --adam-beta2",
    "here --eps EPS": "--adam-eps --adam-epsilon",
    "not needed: it is AdamW": "--optimizer --optim",
    "here --weight-decay F": "-c",
    "here --checkpoint-activations": (
        "--deepspeed-activation-checkpointing --activation-checkpointing "
        "--gradient-checkpointing --recompute-activations"
    ),
    "here --checkpoint-activations, whole layers": "--recompute-granularity -r",
    "not needed: --checkpoint-activations recomputes every layer": "--checkpoint-num-layers",
    "not there: ZeRO divides the model, --deepspeed FILE says how": (
        "--model-parallel-size --tensor-model-parallel-size --pipeline-model-parallel-size"
    ),
    "here --model NAME, or --model FILE.json with the shape": (
        "--num-layers --hidden-size --num-attention-heads --max-position-embeddings --vocab-size"
    ),
    "not needed: it is 128": "--make-vocab-size-divisible-by",
    "here --dropout P for both; in a shape's JSON each its own": (
        "--hidden-dropout --attention-dropout"
    ),
    "here --model NAME": "--model-name --config-name",
    "here --init-from PATH, and --model NAME for the shape": "--model-name-or-path",
    "here --init-from PATH": "--load-pretrained --pretrained-checkpoint",
    (
        "the dataset has its tokenizer: give --tokenizer to the pipeline that makes it "
        "(python -m pipelines.CORPUS)"
    ): (
        "--tokenizer-type --tokenizer-model-type --tokenizer-model --tokenizer-path "
        "--tokenizer-name --vocab-file --merge-file --fix-command-token"
    ),
    "--save DIR goes on from its newest checkpoint by itself; --resume DIR takes another": (
        "--load --resume-from-checkpoint"
    ),
    "here --init-from PATH, which takes the weights alone": "--no-load-optim",
    "here --save-every N, in steps": "--save-interval --save-steps -n",
    "here --keep N": "--save-total-limit -nk",
    "here --save DIR": "--output --output-dir -o",
    "not there: give another --save, or delete the folder": "--overwrite-output-dir",
    "here --log-every N; TensorBoard's files lie in --save": (
        "--log-interval --logging-steps --logging-dir --tensorboard-dir --summary-dir --report-to"
    ),
    "here the folder of --save is the name": "--experiment-name",
    "not needed: a thread of each rank reads ahead": (
        "--workers --num-workers --dataloader-num-workers"
    ),
    "not needed: DeepSpeed chooses it by the device": "--distributed-backend",
    "not needed: the launcher sets it (docs/multi-node.md)": (
        "--num-gpus --num-nodes --nnodes --nproc-per-node --master-addr --master-port "
        "--hostfile --node-rank"
    ),
    "a dataset holds its tokens: --data DIR, made by python -m pipelines.CORPUS": (
        "--train-data --train-data-path --data-path --data-dir --dataset --dataset-name --input -i"
    ),
    "the dataset has its own: --validation F of the pipelines": (
        "--valid-data --test-data --split -j"
    ),
    "here --max-steps N, --max-tokens N or --epochs N": (
        "--train-iters --train-samples --iterations --num-steps -x"
    ),
    "here --max-tokens N": "--train-tokens",
    "here --epochs N": "--num-train-epochs",
    "here --length L": "--seq-length --seq-len --block-size --max-seq-length --sequence-length -t",
    "here --batch-size N, in windows: the tokens of a step divided by --length": "-d",
    "here --model gpt2-d12; weights to start from: --init-from PATH": "-e",
    "not needed: --resume auto goes on with what --save holds": "-y",
    "here --eval-every N, in steps": "-v --eval-interval --eval-steps",
    "here --eval-samples N, in windows": "-m",
    "here --sample-every N with --sample-prompts FILE": "-s",
    "here --sample-tokens N": "-g",
    "here --decay-steps N": "--lr-decay-iters --lr-decay-steps",
    "here --eval-samples N, in windows: the same each time": "--eval-iters",
    "here --scatters S; without it every node reads all shards": "--loader-scatter --scatter",
    "not needed: shards are mapped, one copy in memory for all ranks": (
        "--no-lazy-loader --half-lazy-loader --lazy-loader --mmap-warmup"
    ),
    "not needed: datasets are tokens": "--no-pre-tokenize --pre-tokenize",
    "here --languages en of the pipelines, when the dataset is made": "--filter-english",
    "not needed: the order is always random, by --seed": "--shuffle",
    "not needed: a run always goes on where it stopped": "--resume-dataloader",
    "here --objective glm, the default": "--block-lm",
    "here --blanks NAME=VALUE (docs/from-glm.md)": (
        "--bert-prob --gap-sentence-prob --gap-sentence-ratio --gpt-min-ratio "
        "--gpt-infill-prob --avg-block-length --short-seq-prob --single-span-prob "
        "--block-mask-prob --context-mask-ratio --task-mask"
    ),
    "here --isolate-documents": "--reset-attention-mask --reset-position-ids",
    "here --compile": "--torch-compile",
    "not there: the end of a text is learnt as every token": "--eod-mask-loss",
}
_FINETUNE: Mapping[str, str] = {
    "here --data FOLDER": "--data-dir --data-path",
    "here --data FOLDER, which holds train.jsonl": "--train-data",
    "here --task NAME": "--task-name",
    "here --epochs N": "--train-iters --max-steps",
    "not needed: a cloze is the default of a task; --form has others": "--cloze-eval",
    "here --form spelled": "--multi-token",
    "here --pattern N": "--pattern-id",
    "here --loss": "--loss-func",
    "here --length N": "--seq-length --max-seq-length",
    "here --source-length N": "--src-seq-length --max-source-length",
    "here --target-length N": "--tgt-seq-length --max-target-length",
    "here --beams N": "--num-beams",
    "here --no-repeat-ngram N": "--no-repeat-ngram-size",
    "here --min-answer N": "--min-tgt-length",
    "not needed: rows are packed by their tokens": (
        "--eval-batch-size --per-device-eval-batch-size"
    ),
    "not needed: the task's first metric decides": "--validation-metric",
    "not needed: the best candidates are always taken": "--select-topk",
    "not needed: every epoch is evaluated": "--eval-epoch",
    "not needed: an epoch is saved as it ends; --save-every N, in steps": "--save-epoch",
    "not there": "--continuous-prompt --adapet --freeze-transformer",
}
_EVALUATE: Mapping[str, str] = {
    "here the first word: a run's folder, or a checkpoint": (
        "--load --load-pretrained --model-name-or-path --checkpoint"
    ),
    "here --model NAME, or --model FILE.json with the shape": (
        "--num-layers --hidden-size --num-attention-heads --max-position-embeddings"
    ),
    "here --tokenizer SPEC; without it that of the model's data": (
        "--tokenizer-type --tokenizer-name --tokenizer-path"
    ),
    "here --dtype fp16": "--fp16",
    "here --dtype bf16": "--bf16",
    "here --dtype fp32, bf16 or fp16": "--precision",
    "here --task NAME=FILE, once for each": "--tasks --eval-task --task-name",
    "here --task NAME=FILE for a task, --data DIR for a dataset's own text": "--valid-data",
    "here --stride N": "--overlapping-eval",
    "here --length N": "--seq-length",
    "here --eval-samples N, in windows": "--eval-iters",
    "here --eval-samples N, in windows of held-out text; tasks are asked in full": "--limit",
    "here --batch-tokens N, of all rows together": "--batch-size --eval-batch-size",
}
_GENERATE: Mapping[str, str] = {
    "here the first word: a run's folder, or a checkpoint": (
        "--load --load-pretrained --model-name-or-path --checkpoint"
    ),
    "here --model NAME, or --model FILE.json with the shape": (
        "--num-layers --hidden-size --num-attention-heads --max-position-embeddings"
    ),
    "here --tokenizer SPEC; without it that of the model's data": (
        "--tokenizer-type --tokenizer-name --tokenizer-path"
    ),
    "here --dtype fp16": "--fp16",
    "here --dtype bf16": "--bf16",
    "here --dtype fp32, bf16 or fp16": "--precision",
    "here --max-new-tokens N": "--out-seq-length --max-length --num-tokens",
    "here --min-new-tokens N": "--min-tgt-length --min-length",
    "here --beams N": "--num-beams",
    "here --no-repeat-ngram N": "--no-repeat-ngram-size",
    "here --samples N": "--num-samples --num-return-sequences",
    "here --temperature T, --top-k K or --top-p P": "--do-sample",
    "here the words after the model, or --prompts FILE": "--prompt",
    "here --prompts FILE": "--input-source --sample-input-file",
}
_EXPORT: Mapping[str, str] = {
    "here the first word: a run's folder, or a checkpoint": (
        "--load --load-pretrained --model-name-or-path --checkpoint"
    ),
    "here --model NAME, or --model FILE.json with the shape": (
        "--num-layers --hidden-size --num-attention-heads --max-position-embeddings"
    ),
    "here --tokenizer SPEC; without it that of the model's data": (
        "--tokenizer-type --tokenizer-name --tokenizer-path"
    ),
    "here --dtype fp16": "--fp16",
    "here --dtype bf16": "--bf16",
    "here --dtype fp32, bf16 or fp16": "--precision",
    "here --to": "--format",
    "here --output DIR": "--output-dir --save",
    "here --shard-bytes N": "--max-shard-size",
    "here --model-parallel N, with --to reference": "--model-parallel-size",
    "here --vocabulary N": "--vocab-size",
}


def _rows(command: str, hints: Mapping[str, str]) -> Iterator[Refusal]:
    flags: list[tuple[str, str]] = []
    for hint, names in hints.items():
        flags += [(name, hint) for name in names.split()]
        if len(flags) >= _AT_ONCE:
            yield _row(command, flags)
            flags = []
    if flags:
        yield _row(command, flags)


def _row(command: str, flags: list[tuple[str, str]]) -> Refusal:
    told = " ".join(re.escape(f"{name}: {hint}") for name, hint in flags)
    head = r"unknown flags: " if len(flags) > 1 else r"unknown flag "
    return Refusal(
        name=f"{command}: flags of other trainers: {flags[0][0]} to {flags[-1][0]}",
        command=f"trainer.{command} {' '.join(name for name, _ in flags)}",
        says=f"^trainer\\.{command}: {head}{told}\\.? python -m trainer\\.{command} --help lists "
        f"every flag$",
    )


_OTHERS = (
    Refusal(
        name="train: a flag of another trainer with underscores and a value",
        command="trainer.train --seq_length=512",
        says=r"unknown flag --seq_length: here --length L\. python -m trainer\.train --help lists",
    ),
    Refusal(
        name="finetune: a flag of another trainer with its value",
        command="trainer.finetune --learning_rate 1e-5",
        says=r"unknown flag --learning_rate: here --lr LR\. python -m trainer\.finetune --help",
    ),
)

ROWS = (
    *_OTHERS,
    *_rows("train", _TRAIN),
    *_rows("finetune", _FINETUNE),
    *_rows("evaluate", _EVALUATE),
    *_rows("generate", _GENERATE),
    *_rows("export", _EXPORT),
)
