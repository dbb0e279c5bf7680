"""Rows on training, fine-tuning, evaluating and exporting models, and on generating text."""

from tests.golden import corpus_tasks as items
from tests.golden import corpus_training as made
from tests.golden.corpora import copy_scripts
from tests.golden.row import Command, Row

_BUILD = (
    "pipelines.text --input news=news --output data --tokenizer tiktoken:merges.txt"
    " --languages all --language-threshold 0.1 --shards 2 --validation 0.05 --seed 9"
)
_TRAIN = "trainer.train --length 64 --batch-size 8 --log-every 1 --data data"
_STEADY = f"{_TRAIN} --model model.json --seed 3 --eval-every 3 --eval-samples 3"
_WHOLE = f"{_STEADY} --lr 0.004 --lr-floor 0.3 --warmup 2 --decay-steps 6 --save-every 2 --keep 2"
_DATA = "training-data"
_BLANKS = f"{_TRAIN} --model plain.json --max-steps 3 --batch-size 32 --eval-samples 0"
_MERGES = "--tokenizer tiktoken:merges.txt"
_EXAMS = (
    "--task hellaswag=exams/hellaswag.jsonl --task arc=exams/arc.jsonl"
    " --task copa=exams/exam-copa.jsonl --task choices=exams/choices.jsonl"
    " --task lambada=exams/lambada.jsonl --task wikitext=exams/wiki.jsonl"
    " --task language_model=exams/documents.jsonl"
)

_DATA_ROWS = (
    Row(
        name=_DATA,
        about="the data that other rows train on, and the documents that a step reads",
        setup=(made.texts, made.shapes),
        commands=(
            f"{_BUILD} --input asks=zhidao:asks",
            "shards trace --data data --batch-size 4 --length 64 --step 2",
            "shards trace --data data --batch-size 4 --length 64 --scatters 2 --seed 5 --step 16",
            "shards trace --data data:news=0.7 data:asks=0.3 --batch-size 4 3:6 --length 32"
            " --objective causal --step 5",
        ),
        fast=True,
    ),
    Row(
        name="blanks",
        about="every tensor of rows with blanks, by objective, options, length and ranks",
        starts_from=_DATA,
        setup=(copy_scripts("blanks.py"),),
        commands=("blanks.py",),
    ),
)

_TRAINING_ROWS = (
    Row(
        name="training",
        about="losses with dropout, a warm-up and a floor; validation; checkpoints",
        starts_from=_DATA,
        commands=(
            f"{_WHOLE} --max-steps 7 --micro-batch 2 --save whole",
            "shards trace whole/run.json --step 4",
        ),
        pinned_files=("whole/run.json",),
        fast=True,
    ),
    Row(
        name="training-resumed",
        about="a run that resumes with the losses of an uninterrupted one; one that continues it"
        " in another folder",
        starts_from="training",
        commands=(
            f"{_WHOLE} --max-steps 3 --micro-batch 8 --save halves",
            f"{_WHOLE} --max-steps 7 --micro-batch 8 --save halves",
            f"{_WHOLE} --max-steps 8 --lr-floor 0 --resume whole/step-6 --save again",
        ),
    ),
    Row(
        name="training-follows",
        about="a run that follows its data over three days and a removal: the data that it reads,"
        " its unchanged validation",
        setup=(made.texts, made.shapes),
        commands=(
            _BUILD,
            f"{_STEADY} --follow --save-every 2 --max-steps 4 --save run",
            Command(words=f"{_BUILD} --append", prepare=made.second_day),
            f"{_STEADY} --max-steps 5 --resume run/step-4 --save stays",
            f"{_STEADY} --follow --save-every 2 --max-steps 9 --save run",
            "shards remove data --id a101 --id a3 --reason asked",
            Command(words=f"{_BUILD} --append", prepare=made.third_day),
            f"{_STEADY} --follow --save-every 2 --max-steps 12 --save run",
            "trainer.evaluate run --dtype fp32 --eval-samples 0",
            "shards trace run/run.json --step 10",
        ),
        pinned_files=("run/run.json",),
    ),
    Row(
        name="training-mixes",
        about="weights of sources, a mix and a batch that change, scatters, caps on epochs",
        starts_from=_DATA,
        commands=(
            "trainer.train --data data:news=0.6 data:asks=0.4 --data-from 12 data:news=0.2"
            " data:asks=0.8 --max-epochs data:asks=6 --batch-size 4 3:8 --scatters 2 --seed 11"
            " --length 48 --slack 5 --model longer.json --log-every 1 --eval-every 0 --max-steps 6"
            " --save mixed",
            "trainer.train --data data:news --batch-size 16 --seed 4 --length 64 --model plain.json"
            " --log-every 2 --epochs 1.5 --save-every epoch --eval-every epoch --keep 1"
            " --save epochs",
            f"{_TRAIN} --model plain.json --max-tokens 1600 --isolate-documents --save isolated",
            "shards trace mixed/run.json --step 4",
        ),
    ),
    Row(
        name="training-blanks",
        about="blanks: spans, sentences, the end; shown, shortened, moved",
        starts_from=_DATA,
        commands=(
            f"{_BLANKS} --save spans --blanks"
            " bert_prob=1 sentence_prob=0 span_ratio=0.3 single_span_prob=0.4 block_mask_prob=0.5"
            " context_mask_ratio=0.1 short_seq_prob=0",
            f"{_BLANKS} --save sentences --blanks"
            " bert_prob=0 sentence_prob=1 short_seq_prob=0.9 --blanks random_position=true",
            f"{_BLANKS} --save ends --blanks"
            " bert_prob=0 sentence_prob=0 infill_prob=0.8 gpt_min_ratio=0.5 task_mask=false",
        ),
    ),
    Row(
        name="training-settings",
        about="schedules, AdamW's settings by flag and by DeepSpeed's JSON, clipping, bf16,"
        " recomputed layers",
        starts_from=_DATA,
        setup=(made.optimizer,),
        commands=(
            f"{_TRAIN} --model wide.json --max-steps 6 --lr 0.01 --schedule linear --warmup 0.34"
            " --lr-floor 0.2 --betas 0.7 0.8 --eps 0.001 --weight-decay 3 --decay-steps 5"
            " --eval-every 0 --save linear",
            f"{_TRAIN} --model hidden.json --max-steps 4 --schedule constant --warmup 2"
            " --checkpoint-activations --deepspeed adam.json --eval-every 0 --save constant",
            # Only one step, because later losses in bf16 depend on the processor.
            f"{_TRAIN} --model model.json --max-steps 1 --precision bf16 --lr 0.01 --dropout 0.5"
            " --weight-decay 0 --eval-every 0 --save half",
            Command(
                words="trainer.train --recipe glm-base --data data --model hidden.json --length 64"
                " --batch-size 8 --micro-batch 4 --max-steps 3 --log-every 1 --save recipe",
                pins_output=False,  # DeepSpeed prints the memory in use
            ),
        ),
    ),
    Row(
        name="training-diverges",
        about="losses that are not finite: counted, marked in checkpoints, skipped on resume",
        starts_from=_DATA,
        commands=(
            f"{_TRAIN} --model plain.json --max-steps 2 --lr 1e-3 --save-every 1 --eval-every 0"
            " --save run",
            Command(
                words=f"{_TRAIN} --model plain.json --max-steps 9 --lr 1e30 --warmup 0"
                " --save-every 1 --keep 2 --max-bad-losses 3 --eval-every 0 --save run",
                code=2,
            ),
            "trainer.evaluate run --dtype fp32 --eval-samples 2",
            f"{_TRAIN} --model plain.json --max-steps 5 --lr 1e-3 --save-every 1 --keep 2"
            " --eval-every 0 --save run",
        ),
    ),
)

_MODELS = "models"
_SMALL = "trainer.train --data data --length 64 --batch-size 16 --lr 0.01 --seed 6 --max-steps 60"
_LEARNT = (
    "trainer.finetune --init-from glm --log-every 1 --lr 0.005 --length 150 --epochs 2"
    " --batch-size 3"
)
_WRITTEN = _LEARNT.replace(" --length 150", " --source-length 100 --target-length 30")

_MODEL_ROWS = (
    Row(
        name=_MODELS,
        about="two models: one fills blanks; the other is causal, is evaluated and generates text"
        " while it trains",
        starts_from=_DATA,
        setup=(items.exams,),
        commands=(
            f"{_SMALL} --model wide.json --log-every 20 --eval-every 0 --save glm",
            f"{_SMALL} --model left.json --log-every 20 --objective causal --eval-every 30"
            " --eval-task lambada=exams/lambada.jsonl --eval-task copa=exams/exam-copa.jsonl"
            " --sample-every 40 --sample-prompts prompts.txt --sample-tokens 6 --save left",
        ),
    ),
    Row(
        name="tasks",
        about="the examples that every task makes of its file, by every pattern and form",
        setup=(made.tokenizer, items.tasks),
        commands=(
            *(f"trainer.tasks {one} {_MERGES}" for one in items.SHOWN),
            *(
                Command(words=f"trainer.tasks {one} {_MERGES}", code=2)
                for one in items.NOT_SHOWN
            ),
        ),
        fast=True,
    ),
    Row(
        name="finetuning-choices",
        about="questions with choices: losses, forms, metrics, the best epoch, predictions",
        starts_from=_MODELS,
        setup=(items.tasks, items.tuned),
        commands=(
            f"{_LEARNT} --task copa --data more-copa --length-penalty 0.5 --batch-size 6"
            " --micro-batch 2 --save copa",
            f"{_LEARNT} --task copa --data more-copa --length-penalty 0.5 --batch-size 6"
            " --micro-batch 2 --epochs 3 --keep 2 --save copa",
            f"{_LEARNT} --task cb --data more-cb --loss hinge --batch-size 5 --across-epochs"
            " --schedule cosine --warmup 1 --epochs 3 --save cb",
            Command(
                words=f"{_LEARNT} --task wic --data wic --batch-size 4 --save wic",
                ranks=2,
            ),
            f"{_LEARNT} --task wsc --data wsc --candidates --loss mix --save wsc",
            f"{_LEARNT} --task multirc --data multirc --loss generative --dropout 0"
            " --pattern 3 --form spelled --save multirc",
            f"{_LEARNT} --task record --data record --seed 5 --save record",
        ),
        pinned_files=("*/predictions.jsonl",),
    ),
    Row(
        name="finetuning-texts",
        about="tasks with texts as answers: smoothing, beams, the best epoch by loss or ROUGE",
        starts_from=_MODELS,
        setup=(items.tasks, items.tuned),
        commands=(
            f"{_WRITTEN} --task seq2seq --data more-pairs --label-smoothing 0.1 --beams 2"
            " --no-repeat-ngram 2 --min-answer 2 --max-answer 8 --save pairs",
            f"{_LEARNT} --task prompted --data more-said --length 40 --seed 1 --by-loss"
            " --max-answer 8 --save said",
            f"{_LEARNT} --task prompted --data more-said --length 40 --init-from left --dropout 0"
            " --max-answer 8 --epochs 6 --batch-size 8 --save left-said",
            f"{_WRITTEN} --task seq2seq --data pairs --hide-padding --cut-targets --max-answer 5"
            " --epochs 1 --source-length 40 --save hidden",
        ),
        pinned_files=("*/predictions.jsonl",),
    ),
    Row(
        name="writing",
        about="texts of two models: greedy, by beams, sampled; blanks and their scores",
        starts_from=_MODELS,
        setup=(items.more_prompts,),
        commands=items.WRITTEN,
    ),
    Row(
        name="evaluating",
        about="held-out loss and benchmarks of a model that fills blanks and of a causal one",
        starts_from=_MODELS,
        commands=(
            f"trainer.evaluate glm --data data --dtype fp32 {_EXAMS}",
            f"trainer.evaluate glm --dtype fp32 --blank mask --length 140 {_EXAMS}",
            f"trainer.evaluate left --dtype fp32 {_EXAMS}",
            Command(
                words="trainer.evaluate left --dtype fp32 --batch-tokens 100"
                " --data data --eval-samples 2 --task language_model=exams/lines.jsonl"
                " --task arc_easy=exams/arc.jsonl",
                ranks=2,
            ),
        ),
    ),
    Row(
        name="from-python",
        about="generated texts and answers, from Python",
        starts_from=_MODELS,
        setup=(items.tuned, copy_scripts("api.py")),
        commands=("api.py",),
    ),
    Row(
        name="models-exported",
        about="models exported in both formats, texts that they generate, runs that they start",
        starts_from=_MODELS,
        setup=(copy_scripts("parts.py"),),
        commands=(
            *items.EXPORTED,
            "trainer.evaluate hf --data data --dtype fp32",
            "trainer.evaluate cut --data data --dtype fp32",
            "parts.py",
            "trainer.evaluate joined --data data --dtype fp32 --model wide.json",
            "trainer.generate joined 'The [MASK] finds' --max-new-tokens 6 --dtype fp32 --json"
            f" --beams 2 --model wide.json {_MERGES}",
            "trainer.train --data data --length 190 --batch-size 8 --max-steps 2 --log-every 1"
            " --model widest.json --dropout 0.3 --eval-samples 0 --init-from joined"
            " --extend-positions --save again",
            "trainer.train --data data --batch-size 8 --max-steps 2 --log-every 1"
            " --objective causal --eval-samples 0 --init-from cut --save on",
        ),
        pinned_files=("*/config.json", "*/*.index.json", "*/tokenizer_config.json", "*/latest",
               "*/generation_config.json"),
    ),
)  # fmt: skip

ROWS = (*_DATA_ROWS, *_TRAINING_ROWS, *_MODEL_ROWS)
