"""Flags of other trainers, and what each is here: hints for those who carry a command line over.

They are of THUDM/GLM (commit 4f61ed7), Megatron-LM, llm.c, DeepSpeed, and the Trainer of
transformers. docs/from-glm.md and docs/from-llm.c.md say more of two of them. Dashes stand for
underscores too.
"""

from collections.abc import Mapping

_DATA = "a dataset holds its tokens: --data DIR, made by python -m pipelines.CORPUS"
_TOKENIZER = (
    "the dataset has its tokenizer: give --tokenizer to the pipeline that makes it "
    "(python -m pipelines.CORPUS)"
)
_SHAPE = "here --model NAME, or --model FILE.json with the shape"
_MICRO = "here --micro-batch N, and --batch-size N for all ranks together"
_PRECISION = "here --precision fp16, bf16, fp32 or auto"
_SCALE = 'here the section "fp16" of the JSON of --deepspeed'
_ZERO = (
    'here {"zero_optimization": {"stage": N}} in the JSON of --deepspeed; 1 if the file says '
    "nothing"
)
_STEPS = "here --max-steps N, --max-tokens N or --epochs N"
_DECAY = "here --schedule cosine, linear or constant"
_BETAS = "here --betas B B"
_SAVES = "here --save-every N, in steps"
_RESUME = "--save DIR goes on from its newest checkpoint by itself; --resume DIR takes another"
_EVALS = "here --eval-every N, in steps"
_LOGS = "here --log-every N; TensorBoard's files lie in --save"
_BLANKS = "here --blanks NAME=VALUE (docs/from-glm.md)"
_SCATTERS = "here --scatters S; without it every node reads all shards"
_MAPPED = "not needed: shards are mapped, one copy in memory for all ranks"
_LAUNCHER = "not needed: the launcher sets it (docs/multi-node.md)"
_NO_MODEL_PARALLEL = "not there: ZeRO divides the model, --deepspeed FILE says how"
_FIRST_WORD = "here the first word: a run's folder, or a checkpoint"
_OWN_TOKENIZER = "here --tokenizer SPEC; without it that of the model's data"
_ASKED = "here --task NAME=FILE, once for each"

_OF_ALL: Mapping[str, str] = {
    "--deepspeed-config": "here --deepspeed FILE",
    "--zero-stage": _ZERO,
    "--stage": _ZERO,
    "-z": _ZERO,
    "--train-micro-batch-size-per-gpu": _MICRO,
    "--micro-batch-size": _MICRO,
    "--per-device-train-batch-size": _MICRO,
    "--gradient-accumulation-steps": _MICRO,
    "--train-batch-size": "here --batch-size N, of all ranks together",
    "--global-batch-size": "here --batch-size N, of all ranks together",
    "--fp16": _PRECISION,
    "--bf16": _PRECISION,
    "--half": _PRECISION,
    "--loss-scale": _SCALE,
    "--loss-scale-window": _SCALE,
    "--min-scale": _SCALE,
    "--hysteresis": _SCALE,
    "--dynamic-loss-scale": _SCALE,
    "--gradient-clipping": 'here "gradient_clipping" in the JSON of --deepspeed; 1.0 by itself',
    "--clip-grad": 'here "gradient_clipping" in the JSON of --deepspeed; 1.0 by itself',
    "--max-grad-norm": 'here "gradient_clipping" in the JSON of --deepspeed; 1.0 by itself',
    "--learning-rate": "here --lr LR",
    "--lr-decay-style": _DECAY,
    "--lr-scheduler-type": _DECAY,
    "-k": _DECAY,
    "--min-lr": "here --lr-floor F, a share of --lr",
    "--lr-decay-ratio": "here --lr-floor F, a share of --lr",
    "-q": "here --lr-floor F, a share of --lr",
    "--warmup-steps": "here --warmup N, in steps; below 1 a share",
    "--warmup-ratio": "here --warmup F, a share below 1",
    "--lr-warmup-iters": "here --warmup N, in steps; below 1 a share",
    "--lr-warmup-fraction": "here --warmup F, a share below 1",
    "-u": "here --warmup N, in steps; below 1 a share",
    "--adam-beta1": _BETAS,
    "--adam-beta2": _BETAS,
    "--adam-eps": "here --eps EPS",
    "--adam-epsilon": "here --eps EPS",
    "--optimizer": "not needed: it is AdamW",
    "--optim": "not needed: it is AdamW",
    "-l": "here --lr LR",
    "-c": "here --weight-decay F",
    "--deepspeed-activation-checkpointing": "here --checkpoint-activations",
    "--activation-checkpointing": "here --checkpoint-activations",
    "--gradient-checkpointing": "here --checkpoint-activations",
    "--recompute-activations": "here --checkpoint-activations",
    "--recompute-granularity": "here --checkpoint-activations, whole layers",
    "--checkpoint-num-layers": "not needed: --checkpoint-activations recomputes every layer",
    "-r": "here --checkpoint-activations, whole layers",
    "--model-parallel-size": _NO_MODEL_PARALLEL,
    "--tensor-model-parallel-size": _NO_MODEL_PARALLEL,
    "--pipeline-model-parallel-size": _NO_MODEL_PARALLEL,
    "--num-layers": _SHAPE,
    "--hidden-size": _SHAPE,
    "--num-attention-heads": _SHAPE,
    "--max-position-embeddings": _SHAPE,
    "--vocab-size": _SHAPE,
    "--make-vocab-size-divisible-by": "not needed: it is 128",
    "--hidden-dropout": "here --dropout P for both; in a shape's JSON each its own",
    "--attention-dropout": "here --dropout P for both; in a shape's JSON each its own",
    "--model-name": "here --model NAME",
    "--model-name-or-path": "here --init-from PATH, and --model NAME for the shape",
    "--config-name": "here --model NAME",
    "--load-pretrained": "here --init-from PATH",
    "--pretrained-checkpoint": "here --init-from PATH",
    "--tokenizer-type": _TOKENIZER,
    "--tokenizer-model-type": _TOKENIZER,
    "--tokenizer-model": _TOKENIZER,
    "--tokenizer-path": _TOKENIZER,
    "--tokenizer-name": _TOKENIZER,
    "--vocab-file": _TOKENIZER,
    "--merge-file": _TOKENIZER,
    "--fix-command-token": _TOKENIZER,
    "--load": _RESUME,
    "--resume-from-checkpoint": _RESUME,
    "--no-load-optim": "here --init-from PATH, which takes the weights alone",
    "--save-interval": _SAVES,
    "--save-steps": _SAVES,
    "--save-total-limit": "here --keep N",
    "-nk": "here --keep N",
    "--output": "here --save DIR",
    "--output-dir": "here --save DIR",
    "-o": "here --save DIR",
    "--overwrite-output-dir": "not there: give another --save, or delete the folder",
    "--log-interval": _LOGS,
    "--logging-steps": _LOGS,
    "--logging-dir": _LOGS,
    "--tensorboard-dir": _LOGS,
    "--summary-dir": _LOGS,
    "--report-to": _LOGS,
    "--experiment-name": "here the folder of --save is the name",
    "--workers": "not needed: a thread of each rank reads ahead",
    "--num-workers": "not needed: a thread of each rank reads ahead",
    "--dataloader-num-workers": "not needed: a thread of each rank reads ahead",
    "--distributed-backend": "not needed: DeepSpeed chooses it by the device",
    "--num-gpus": _LAUNCHER,
    "--num-nodes": _LAUNCHER,
    "--nnodes": _LAUNCHER,
    "--nproc-per-node": _LAUNCHER,
    "--master-addr": _LAUNCHER,
    "--master-port": _LAUNCHER,
    "--hostfile": _LAUNCHER,
    "--node-rank": _LAUNCHER,
}

TRAIN: Mapping[str, str] = {
    **_OF_ALL,
    "--train-data": _DATA,
    "--train-data-path": _DATA,
    "--data-path": _DATA,
    "--data-dir": _DATA,
    "--dataset": _DATA,
    "--dataset-name": _DATA,
    "--input": _DATA,
    "-i": _DATA,
    "--valid-data": "the dataset has its own: --validation F of the pipelines",
    "--test-data": "the dataset has its own: --validation F of the pipelines",
    "--split": "the dataset has its own: --validation F of the pipelines",
    "-j": "the dataset has its own: --validation F of the pipelines",
    "--train-iters": _STEPS,
    "--train-samples": _STEPS,
    "--train-tokens": "here --max-tokens N",
    "--iterations": _STEPS,
    "--num-steps": _STEPS,
    "-x": _STEPS,
    "--num-train-epochs": "here --epochs N",
    "--seq-length": "here --length L",
    "--seq-len": "here --length L",
    "--block-size": "here --length L",
    "--max-seq-length": "here --length L",
    "--sequence-length": "here --length L",
    "-t": "here --length L",
    "-b": _MICRO,
    "-d": "here --batch-size N, in windows: the tokens of a step divided by --length",
    "-e": "here --model gpt2-d12; weights to start from: --init-from PATH",
    "-n": _SAVES,
    "-y": "not needed: --resume auto goes on with what --save holds",
    "-v": _EVALS,
    "-m": "here --eval-samples N, in windows",
    "-s": "here --sample-every N with --sample-prompts FILE",
    "-g": "here --sample-tokens N",
    "--lr-decay-iters": "here --decay-steps N",
    "--lr-decay-steps": "here --decay-steps N",
    "--eval-interval": _EVALS,
    "--eval-steps": _EVALS,
    "--eval-iters": "here --eval-samples N, in windows: the same each time",
    "--loader-scatter": _SCATTERS,
    "--scatter": _SCATTERS,
    "--no-lazy-loader": _MAPPED,
    "--half-lazy-loader": _MAPPED,
    "--lazy-loader": _MAPPED,
    "--mmap-warmup": _MAPPED,
    "--no-pre-tokenize": "not needed: datasets are tokens",
    "--pre-tokenize": "not needed: datasets are tokens",
    "--filter-english": "here --languages en of the pipelines, when the dataset is made",
    "--shuffle": "not needed: the order is always random, by --seed",
    "--resume-dataloader": "not needed: a run always goes on where it stopped",
    "--block-lm": "here --objective glm, the default",
    "--bert-prob": _BLANKS,
    "--gap-sentence-prob": _BLANKS,
    "--gap-sentence-ratio": _BLANKS,
    "--gpt-min-ratio": _BLANKS,
    "--gpt-infill-prob": _BLANKS,
    "--avg-block-length": _BLANKS,
    "--short-seq-prob": _BLANKS,
    "--single-span-prob": _BLANKS,
    "--block-mask-prob": _BLANKS,
    "--context-mask-ratio": _BLANKS,
    "--task-mask": _BLANKS,
    "--reset-attention-mask": "here --isolate-documents",
    "--reset-position-ids": "here --isolate-documents",
    "--torch-compile": "here --compile",
    "--eod-mask-loss": "not there: the end of a text is learnt as every token",
}
"""Of trainer.train, and of trainer.evaluate with a run's flags."""

FINETUNE: Mapping[str, str] = {
    **_OF_ALL,
    "--data-dir": "here --data FOLDER",
    "--data-path": "here --data FOLDER",
    "--train-data": "here --data FOLDER, which holds train.jsonl",
    "--task-name": "here --task NAME",
    "--train-iters": "here --epochs N",
    "--max-steps": "here --epochs N",
    "--num-train-epochs": "here --epochs N",
    "--cloze-eval": "not needed: a cloze is the default of a task; --form has others",
    "--multi-token": "here --form spelled",
    "--pattern-id": "here --pattern N",
    "--loss-func": "here --loss",
    "--seq-length": "here --length N",
    "--max-seq-length": "here --length N",
    "--src-seq-length": "here --source-length N",
    "--tgt-seq-length": "here --target-length N",
    "--max-source-length": "here --source-length N",
    "--max-target-length": "here --target-length N",
    "--num-beams": "here --beams N",
    "--no-repeat-ngram-size": "here --no-repeat-ngram N",
    "--min-tgt-length": "here --min-answer N",
    "--eval-batch-size": "not needed: rows are packed by their tokens",
    "--per-device-eval-batch-size": "not needed: rows are packed by their tokens",
    "--validation-metric": "not needed: the task's first metric decides",
    "--select-topk": "not needed: the best candidates are always taken",
    "--eval-epoch": "not needed: every epoch is evaluated",
    "--save-epoch": "not needed: an epoch is saved as it ends; --save-every N, in steps",
    "--continuous-prompt": "not there",
    "--adapet": "not there",
    "--freeze-transformer": "not there",
}
"""Of trainer.finetune."""

_OF_USE: Mapping[str, str] = {
    "--load": _FIRST_WORD,
    "--load-pretrained": _FIRST_WORD,
    "--model-name-or-path": _FIRST_WORD,
    "--checkpoint": _FIRST_WORD,
    "--num-layers": _SHAPE,
    "--hidden-size": _SHAPE,
    "--num-attention-heads": _SHAPE,
    "--max-position-embeddings": _SHAPE,
    "--tokenizer-type": _OWN_TOKENIZER,
    "--tokenizer-name": _OWN_TOKENIZER,
    "--tokenizer-path": _OWN_TOKENIZER,
    "--fp16": "here --dtype fp16",
    "--bf16": "here --dtype bf16",
    "--precision": "here --dtype fp32, bf16 or fp16",
}

EVALUATE: Mapping[str, str] = {
    **_OF_USE,
    "--tasks": _ASKED,
    "--eval-task": _ASKED,
    "--task-name": _ASKED,
    "--valid-data": "here --task NAME=FILE for a task, --data DIR for a dataset's own text",
    "--overlapping-eval": "here --stride N",
    "--seq-length": "here --length N",
    "--eval-iters": "here --eval-samples N, in windows",
    "--limit": "here --eval-samples N, in windows of held-out text; tasks are asked in full",
    "--batch-size": "here --batch-tokens N, of all rows together",
    "--eval-batch-size": "here --batch-tokens N, of all rows together",
}
"""Of trainer.evaluate with a model."""

GENERATE: Mapping[str, str] = {
    **_OF_USE,
    "--out-seq-length": "here --max-new-tokens N",
    "--max-length": "here --max-new-tokens N",
    "--num-tokens": "here --max-new-tokens N",
    "--min-tgt-length": "here --min-new-tokens N",
    "--min-length": "here --min-new-tokens N",
    "--num-beams": "here --beams N",
    "--no-repeat-ngram-size": "here --no-repeat-ngram N",
    "--num-samples": "here --samples N",
    "--num-return-sequences": "here --samples N",
    "--do-sample": "here --temperature T, --top-k K or --top-p P",
    "--prompt": "here the words after the model, or --prompts FILE",
    "--input-source": "here --prompts FILE",
    "--sample-input-file": "here --prompts FILE",
}
"""Of trainer.generate."""

EXPORT: Mapping[str, str] = {
    **_OF_USE,
    "--format": "here --to",
    "--output-dir": "here --output DIR",
    "--save": "here --output DIR",
    "--max-shard-size": "here --shard-bytes N",
    "--model-parallel-size": "here --model-parallel N, with --to reference",
    "--vocab-size": "here --vocabulary N",
}
"""Of trainer.export."""
