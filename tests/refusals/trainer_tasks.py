"""Files of tasks and items, exports and weights that are refused."""

from typing import Any

from tests.refusals.refusal import Refusal, refused
from tests.refusals.scenes import MODEL, Scene, holding, together
from tests.refusals.scenes_shards import (
    cut,
    edited,
    holding_json,
    json_changed,
    missing,
    overwritten,
)
from tests.refusals.scenes_trainer import (
    ITEMS,
    TUNING,
    causal,
    glm,
    gpt2,
    lines,
    reference,
    trained,
    tuned,
)

_OWN = "trainer.finetune --task own.json --data items --init-from run --save out"
_TASK: dict[str, Any] = {"pattern": "{text} [MASK]", "verbalizer": {"0": "bad", "1": "good"}}
_WRONG = (
    r"\. Expected a pattern, and one of verbalizer, choices, choices_field and answer"
    r" \(docs/finetuning\.md\)\.$"
)


def _own(name: str, says: str, **changes: Any) -> Refusal:
    task = {key: value for key, value in {**_TASK, **changes}.items() if value is not None}
    return Refusal(
        name=f"task: {name}",
        command=_OWN,
        says=r"own\.json does not describe a task: " + says + _WRONG,
        scene=holding_json("own.json", task),
    )


_DESCRIPTIONS = (
    _own("a key too many", r"the task\.colour is not known", colour=1),
    _own(
        "neither words nor choices",
        r"it has not one of verbalizer, choices, choices_field and answer",
        verbalizer=None,
    ),
    _own(
        "a pattern with two blanks",
        r"the pattern '\[MASK\] \{text\} \[MASK\]' has 2 blanks, not one \[MASK\]",
        pattern="[MASK] {text} [MASK]",
    ),
    _own("an answer with a blank", r"an answer has a blank", verbalizer=None, answer="{a} [MASK]"),
    _own("one word", r"there is only one answer to choose from", verbalizer={"0": "bad"}),
    _own(
        "a word twice",
        r"'bad' is there for more than one answer",
        verbalizer={"0": "bad", "1": "bad"},
    ),
    _own("another metric", r"metric is 'bleu', not one of accuracy, f1-macro", metric="bleu"),
    _own(
        "a field that is not closed",
        r"expected '\}' before end of string",
        pattern="{text [MASK]",
    ),
    _own(
        "a field with a form",
        r"a field is \{name\} or \{name:\w+\}, not as in '\{text:5\} \[MASK\]'",
        pattern="{text:5} [MASK]",
    ),
    Refusal(
        name="task: no JSON",
        command=_OWN,
        scene=holding("own.json", "{"),
        says=r"own\.json is not valid JSON \(",
    ),
)


def _items(
    name: str, content: Any, says: str, *, flags: str = "", task: str = "prompted"
) -> Refusal:
    scene = content if callable(content) else lines("items/train.jsonl", content)
    return Refusal(
        name=f"items: {name}",
        command=f"trainer.finetune --task {task} --data items --init-from run --save out --epochs"
        f" 1 {flags}",
        says=says,
        scene=together(trained, scene),
    )


_GOOD = {"prompt": "the sea", "answer": " is cold"}
_AT = r"items/train\.jsonl, line {}: "
_ITEMS = (
    _items("no folder", lambda _: None, r"--data items: there is no such folder\.$"),
    _items(
        "no file",
        holding("items/x"),
        r"items/train\.jsonl cannot be read: No such file or directory\.$",
    ),
    _items(
        "no item",
        holding("items/train.jsonl", "\n"),
        r"items/train\.jsonl holds nothing to ask for the task prompted\.$",
    ),
    _items(
        "not UTF-8",
        holding("items/train.jsonl", b"\xff"),
        r"items/train\.jsonl is not UTF-8: its byte 0 is 0xff\. Save the file in UTF-8\.$",
    ),
    _items(
        "no JSON",
        holding("items/train.jsonl", "\n{\n"),
        r"items/train\.jsonl, line 2: this is not valid JSON \(",
    ),
    _items(
        "a list",
        [_GOOD, [1]],
        r"items/train\.jsonl, line 2: this is \[1\]\. Expected an object, \{…\}\.$",
    ),
    _items(
        "no answer",
        [_GOOD, {"prompt": "x"}],
        _AT.format(2) + r'there is no field "answer"\. Expected it among '
        r"prompt: correct the file, or see whether it is the task's\.$",
    ),
    _items(
        "an empty answer",
        [_GOOD, {**_GOOD, "answer": ""}],
        _AT.format(2) + r"the answer is empty: there is nothing to learn\.$",
    ),
    _items(
        "an answer longer than the model",
        [{**_GOOD, "answer": "the sea and " * 40}],
        (
            r"^trainer\.finetune: items/train\.jsonl: train-0 takes 410 tokens, and the model has"
            r" 64 positions, which fine-tuning cannot add to \(trainer\.train --extend-positions"
            r" can\): give --length 64: what its pattern lets go is then cut\. If that is not"
            r" enough, shorten the item, or leave it out\.$"
        ),
    ),
    _items(
        "a pattern after the last",
        [_GOOD],
        r"--pattern 1: the task prompted has 1, numbered from 0 on\.$",
        flags="--pattern 1",
    ),
    _items(
        "a flag of other tasks",
        [_GOOD],
        r"--form: the task prompted has no use for it\.$",
        flags="--form spelled",
    ),
    _items(
        "padding longer than the model",
        [{"source": "the sea", "target": "is cold"}],
        r"train-0 takes \d+ tokens, and the model has 64 positions, .*: give --source-length and"
        r" --target-length of at most 64 each\.$",
        task="seq2seq",
        flags="--by-loss",
    ),
    *(
        _items(
            f"no use for {flags}",
            [_GOOD],
            rf"{flags.split()[0]} {what}; prompted has no use for it\.$",
            flags=flags,
        )
        for flags, what in (
            ("--loss hinge", "is of questions with choices"),
            ("--length-penalty 1", "is of choices that may have several tokens"),
            ("--by-loss", r"picks the best epoch by val\.jsonl, which is not there"),
        )
    ),
    _items(
        "no use for --label-smoothing",
        together(
            holding_json("own.json", {"pattern": "{text} [MASK]", "choices": ["{a}", "{b}"]}),
            lines("items/train.jsonl", [{"text": "a", "a": "sea", "b": "ship", "label": 0}]),
        ),
        r"--label-smoothing is of texts; own\.json has no use for it\.$",
        flags="--label-smoothing 0.1",
        task="own.json",
    ),
)


def _words(name: str, items: Any, says: str, *, flags: str = "", **changes: Any) -> Refusal:
    scene = together(
        holding_json("own.json", {**_TASK, **changes}), lines("items/train.jsonl", items)
    )
    return _items(name, scene, says, task="own.json", flags=flags)


_LABELS = (
    _words(
        "a label that is not known",
        [{"text": "a", "label": 2}],
        _AT.format(1) + r'the field "label" is 2, which '
        r"the task does not know\. Expected one of 0, 1\.$",
    ),
    _words(
        "no field of the pattern",
        [{"label": 0}],
        _AT.format(1) + r'there is no field "text"\. Expected it among '
        r"label: ",
        flags="--form spelled",
    ),
    _words(
        "words of several tokens",
        [{"text": "a", "label": 0}],
        _AT.format(1)
        + r"the word 'sea' has 2 tokens with tok\.model of /.*, and one fills a blank\. Take"
        r" --form spelled, or another word\.$",
        verbalizer={"0": "sea", "1": "ship"},
    ),
)

_RESUME = f"trainer.finetune {TUNING} --save tuned"
_THREE = lines("items/train.jsonl", ITEMS)


def _resumed(name: str, flags: str, says: str, scene: Scene = _THREE) -> Refusal:
    return Refusal(
        name=f"finetune: resumed {name}",
        command=f"{_RESUME} {flags}",
        says=says,
        scene=together(tuned, scene),
    )


_TUNED = (
    _resumed(
        "with another seed",
        "--epochs 2 --seed 5",
        r"this run cannot resume from tuned/step-\d: seed was 1234, now it is 5\. Set it back, or"
        r" start a new run: give another --save\.$",
    ),
    *(
        _resumed(
            f"with {flags}",
            f"--epochs 2 {flags}",
            rf"this run cannot resume from tuned/step-\d: {name} was ",
        )
        for name, flags in (
            ("label_smoothing", "--label-smoothing 0.1"),
            ("beams", "--beams 2"),
            ("beam_penalty", "--beams 2 --beam-penalty 1"),
            ("no_repeat_ngram", "--no-repeat-ngram 3"),
            ("min_answer", "--min-answer 2"),
            ("max_answer", "--max-answer 9"),
        )
    ),
    _resumed(
        "with --save of training",
        "--epochs 2 --save run",
        r"run/step-\d is no checkpoint of trainer\.finetune: --save is where this run writes its"
        r" own; give another folder\. The model to start from is --init-from PATH\.$",
    ),
    _resumed(
        "never",
        "--epochs 2 --resume none",
        r"tuned holds step-\d and this run would not resume from it: give another --save, or"
        r" --resume auto\.$",
    ),
)


def _export(name: str, command: str, says: str, scene: Scene) -> Refusal:
    return Refusal(
        name=f"export: {name}", command=f"trainer.export {command}", says=says, scene=scene
    )


_EXPORTS = (
    _export(
        "a GLM to transformers",
        "run --to hf --output out",
        r"the model in run/step-4 fills blanks \(objective glm\), and --to hf is for models that"
        r" predict the next token: give --to safetensors\.$",
        trained,
    ),
    _export(
        "onto a file",
        "run --to safetensors --output out",
        r"--output out exists: name a folder that does not, or remove it first\. An export never"
        r" changes what is there\.$",
        together(trained, holding("out")),
    ),
    _export(
        "more rows than there are",
        "causal --to hf --vocabulary 385 --output out",
        r"--vocabulary 385: the embedding has 384 rows\.$",
        causal,
    ),
    _export(
        "without the end of a text",
        "causal --to hf --vocabulary 300 --output out",
        r"--vocabulary 300 leaves out the end of a text, id 300: give at least one more than"
        r" that\.$",
        causal,
    ),
)


def _weights(name: str, path: str, says: str, *scenes: Scene, more: str = "") -> Refusal:
    model = "gpt2.json --objective causal" if path == "gpt2" else "model.json"
    return Refusal(
        name=f"weights: {name}",
        command=f"trainer.train --data data --model {model} --max-steps 2 --batch-size 4"
        f" --init-from {path} {more}",
        says=says,
        scene=together(*scenes),
    )


def _bigger(**changes: Any) -> Scene:
    return json_changed("model.json", next(iter(changes)), next(iter(changes.values())))


_SAFE = "glm/model.safetensors"
_WEIGHTS = (
    _weights("no file", "gone", r"there is no checkpoint gone: no such file or folder\.$", trained),
    _weights(
        "of another shape",
        "run",
        r"word_embeddings\.weight has the shape \(384, 32\), but the model expects \(512, 32\)\."
        r" If the file is one of several model-parallel ones, give their folder; if not, use a"
        r" model with vocab_size 384, and the tokenizer of the file\.$",
        trained,
        _bigger(vocab_size=512),
    ),
    _weights(
        "of fewer layers",
        "run",
        r"mp_rank_00_model_states\.pt lacks parameters that the model has, \d+ of them; the first"
        r" is .*\. It was made with another --model: compare layers and block positions\.$",
        trained,
        _bigger(num_layers=3),
    ),
    _weights(
        "of fewer positions",
        "run",
        r"position_embeddings\.weight has the shape \(65, 32\), but the model expects \(129,"
        r" 32\)\. Give --extend-positions, or use a model with max_positions 64\.$",
        trained,
        _bigger(max_positions=128),
    ),
    _weights(
        "cut short",
        _SAFE.split("/", maxsplit=1)[0],
        r"glm/model\.safetensors is no file of safetensors, or was damaged \(.*\): copy it ag",
        glm,
        cut(_SAFE, 4),
    ),
    _weights(
        "without their file",
        "glm",
        r"glm holds no checkpoint: neither mp_rank_00_model_states\.pt nor a file latest or"
        r" latest_checkpointed_iteration\.txt that names a folder with it\.$",
        glm,
        missing(_SAFE),
    ),
    _weights(
        "of a model that is none",
        "gpt2",
        r"gpt2/config\.json does not describe a model that can be read here \(n_inner is 5, and a"
        r" GPT-2 as OpenAI's has None\): neither a GPT-2 nor a GLM that trainer\.export wrote\.$",
        gpt2,
        json_changed("gpt2/config.json", "n_inner", 5),
    ),
    _weights(
        "of another kind of model",
        "gpt2",
        r"gpt2/config\.json does not describe a model that can be read here \(model_type is"
        r" 'llama', and a GPT-2 as OpenAI's has 'gpt2'\): neither",
        gpt2,
        json_changed("gpt2/config.json", "model_type", "llama"),
    ),
    _weights(
        "of the reference, cut short",
        "reference",
        r"reference/4/mp_rank_00_model_states\.pt cannot be read \(.*\): it is no file of torch"
        r" 1\.6 or later, or was damaged\. Copy it again\.$",
        reference,
        edited("reference/*/mp_rank_00_model_states.pt", lambda content: content[:-200]),
    ),
    _weights(
        "of the reference, with a rank missing",
        "reference",
        r"reference/\d+ holds 1 files of a checkpoint, but no mp_rank_00_model_states\.pt: copy"
        r" all of them\.$",
        reference,
        lambda folder: next(folder.glob("reference/*/mp_*")).rename(
            next(folder.glob("reference/*/mp_*")).with_name("mp_rank_01_model_states.pt")
        ),
    ),
)


def _written(name: str, command: str, says: str, scene: Scene) -> Refusal:
    return Refusal(name=f"use: {name}", command=command, says=says, scene=scene)


_USES = (
    _written(
        "a prompt that is too long",
        "trainer.generate run " + "'" + "the sea and " * 40 + "'",
        r"the prompt .* has 402 tokens, and the model has 65 positions: shorten it by hand, so"
        r" that you know what is left out\.$",
        trained,
    ),
    _written(
        "no such device",
        "trainer.generate run x --device abacus",
        r"--device abacus: torch cannot compute on such a device here \(.*\)\. Give cpu, cuda or"
        r" cuda:N, or leave the flag out\.$",
        trained,
    ),
    _written(
        "data that are gone",
        "trainer.generate run x",
        r"the tokenizer of run/step-4, tok\.model, is not found \(.*/gone does not exist: give a"
        r" dataset's folder \(--output of a pipeline\)\): give it, --tokenizer sentencepiece:FILE,"
        r" tiktoken:NAME or hf:FILE\.$",
        together(
            trained,
            json_changed("run/step-4/whole-00000.json", "state.run.mixes.0.data", ["/gone"]),
        ),
    ),
    _written(
        "a shape that is gone",
        "trainer.generate run x",
        r"run/step-4 does not say the shape of its model \(model: num_layers is 0; expected 1 to"
        r" 16777216\): bring its whole-\*\.json back as they were\.$",
        together(
            trained,
            json_changed("run/step-4/whole-00000.json", "state.identity.model.num_layers", 0),
        ),
    ),
    *(
        _written(
            f"only damaged checkpoints, {command.split()[0]}",
            f"trainer.{command}",
            r"run holds checkpoints, but none that is complete on all ranks: run/step-4/mp_rank_00_"
            r"model_states\.pt is missing or cut short run/step-2/mp_rank_00_model_states\.pt is "
            r"damaged: its checksum differs from the list's Bring the missing files back",
            together(
                trained,
                cut("run/step-4/mp_rank_00_model_states.pt"),
                overwritten("run/step-2/mp_rank_00_model_states.pt", 200_000, b"\xaa\x55"),
            ),
        )
        for command in (
            "generate run x",
            "train --data data --model model.json --max-steps 4 --batch-size 4 --init-from run"
            " --save on",
        )
    ),
    _written(
        "losses that were not finite",
        "trainer.generate run x",
        r"run holds no checkpoint to use: run/step-4 is bad: 1 losses in a row were not finite"
        r" there \(to use it nevertheless, name that folder\); run/step-2 is bad: ",
        together(
            trained,
            *(
                json_changed(f"run/step-{i}/whole-00000.json", "state.bad_streak", 1)
                for i in (2, 4)
            ),
        ),
    ),
    _written(
        "held-out text of weights",
        "trainer.evaluate glm",
        r"glm does not say how its text was cut into windows and blanks\. Give the flags of a run:"
        r" --data DIR --model NAME --batch-size N --max-steps 1 --init-from glm\.$",
        glm,
    ),
    _written(
        "held-out text of a tuned model",
        "trainer.evaluate tuned",
        r"tuned/step-\d was fine-tuned by trainer\.finetune: it has no held-out text\. Give what"
        r" it is to be asked: --task NAME=FILE\.$",
        tuned,
    ),
    _written(
        "a task longer than the model",
        "trainer.evaluate run --task lambada=x --length 65",
        r"--length 65: the model has 64 positions; give as many or fewer\.$",
        together(trained, holding("x", '{"text": "a b"}\n')),
    ),
    _written(
        "blanks of a causal model",
        "trainer.evaluate causal --task lambada=x --blank mask",
        r"--blank is for a glm; this model is causal and fills none\.$",
        together(causal, holding("x", '{"text": "a b"}\n')),
    ),
    _written(
        "an empty file of a task",
        "trainer.evaluate run --task lambada=x",
        r"x does not hold items of lambada \(.*\): expected JSON lines with the fields that"
        r" lm-evaluation-harness reads\.$",
        together(trained, holding("x", "\n")),
    ),
)

_NUM_PATTERNS = {
    "wsc": 3, "boolq": 6, "multirc": 5, "rte": 5, "record": 1,
}  # fmt: skip
_PATTERNS = tuple(
    refused(
        f"the pattern after the last of {task}",
        f"trainer.tasks {task} x.jsonl --tokenizer sentencepiece:tok.model --pattern {number}",
        f"--pattern {number}: the task {task} has {number}, numbered from 0 on.",
        scene=together(holding("tok.model", MODEL.read_bytes()), holding("x.jsonl", "{}\n")),
    )
    for task, number in _NUM_PATTERNS.items()
)

ROWS = (*_DESCRIPTIONS, *_ITEMS, *_LABELS, *_TUNED, *_EXPORTS, *_WEIGHTS, *_USES, *_PATTERNS)
