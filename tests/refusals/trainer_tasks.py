"""Invalid task files, examples, exports and weights."""

import json
import shutil
from pathlib import Path
from typing import Any

from tests.golden.corpus_tasks import tasks
from tests.golden.corpus_training import tokenizer
from tests.refusals.refusal import Accepted, Refusal, refused
from tests.refusals.setups import MODEL, Setup, all_of, with_file
from tests.refusals.setups_shards import (
    changed,
    cut,
    edited,
    json_changed,
    missing,
    overwritten,
    with_json,
)
from tests.refusals.setups_trainer import (
    ITEMS,
    TUNING,
    causal,
    glm,
    gpt2,
    lines,
    ready,
    reference,
    trained,
    tuned,
)

_OWN = "trainer.finetune --task own.json --data items --init-from run --save out"
_TASK: dict[str, Any] = {"pattern": "{text} [MASK]", "verbalizer": {"0": "bad", "1": "good"}}


def _own(name: str, **changes: Any) -> Refusal:
    task = {key: value for key, value in {**_TASK, **changes}.items() if value is not None}
    return Refusal(name=f"task: {name}", command=_OWN, setup=with_json("own.json", task))


_DESCRIPTIONS = (
    _own("a key too many", colour=1),
    _own("neither words nor choices", verbalizer=None),
    _own("a pattern with two blanks", pattern="[MASK] {text} [MASK]"),
    _own("an answer with a blank", verbalizer=None, answer="{a} [MASK]"),
    _own("one word", verbalizer={"0": "bad"}),
    _own("a word twice", verbalizer={"0": "bad", "1": "bad"}),
    _own("another metric", metric="bleu"),
    _own("a field that is not closed", pattern="{text [MASK]"),
    _own("a field with a form", pattern="{text:5} [MASK]"),
    _own("two kinds of answers", answer="x"),
    _own("another form", form="long"),
    _own("a word that is no text", verbalizer={"a": 1, "b": " x"}),
    Refusal(name="task: no JSON", command=_OWN, setup=with_file("own.json", "{")),
)


def _items(name: str, content: Any, *, flags: str = "", task: str = "prompted") -> Refusal:
    setup = content if callable(content) else lines("items/train.jsonl", content)
    return Refusal(
        name=f"items: {name}",
        command=f"trainer.finetune --task {task} --data items --init-from run --save out --epochs"
        f" 1 {flags}",
        setup=all_of(trained, setup),
    )


_ALPACA = [
    {"instruction": f"say {word}", "input": "", "output": f" the {word}"}
    for word in ("sea", "road")
]
"""Examples in the format of most published instruction datasets."""
_GOOD = {"prompt": "the sea", "answer": " is cold"}
_ITEMS = (
    _items("no folder", lambda _: None),
    _items("no file", with_file("items/x")),
    _items("a file", with_file("items", "")),
    _items("an array that ends early", with_file("items/train.json", '[{"prompt": "a"},')),
    _items("an array with a text", with_file("items/train.json", '[{"prompt": "a"},\n "b"]')),
    _items("instructions", with_json("items/train.json", _ALPACA)),
    _items("contents", [{"content": "a", "summary": "b"}]),
    _items("contents for seq2seq", [{"content": "a", "summary": "b"}], task="seq2seq"),
    _items("no item", with_file("items/train.jsonl", "\n")),
    _items("not UTF-8", with_file("items/train.jsonl", b"\xff")),
    _items("no JSON", with_file("items/train.jsonl", "\n{\n")),
    _items("a list", [_GOOD, [1]]),
    _items("no answer", [_GOOD, {"prompt": "x"}]),
    _items("an empty answer", [_GOOD, {**_GOOD, "answer": ""}]),
    _items("an answer longer than the model", [{**_GOOD, "answer": "the sea and " * 40}]),
    _items("a pattern after the last", [_GOOD], flags="--pattern 1"),
    _items("a flag of other tasks", [_GOOD], flags="--form spelled"),
    _items(
        "padding longer than the model",
        [{"source": "the sea", "target": "is cold"}],
        task="seq2seq",
        flags="--by-loss",
    ),
    *(
        _items(f"no use for {flags}", [_GOOD], flags=flags)
        for flags in ("--loss hinge", "--length-penalty 1", "--by-loss")
    ),
)


def _words(name: str, items: Any, *, flags: str = "", **changes: Any) -> Refusal:
    setup = all_of(with_json("own.json", {**_TASK, **changes}), lines("items/train.jsonl", items))
    return _items(name, setup, task="own.json", flags=flags)


_LABELS = (
    _words("a label that is not known", [{"text": "a", "label": 2}]),
    _words("no field of the pattern", [{"label": 0}], flags="--form spelled"),
    _words(
        "words of several tokens", [{"text": "a", "label": 0}], verbalizer={"0": "sea", "1": "ship"}
    ),
)


def _shown(task: str, name: str, setup: Setup) -> Refusal:
    return Refusal(
        name=f"items of {task}: {name}",
        command=f"trainer.tasks {task} --tokenizer tiktoken:merges.txt",
        setup=all_of(tokenizer, tasks, setup),
    )


def _changed(task: str, path: str, new: Any) -> Refusal:
    """Return the row of a task file whose first example has a changed value."""

    def change(content: bytes) -> bytes:
        item = json.loads(content.split(b"\n")[0])
        return json.dumps(changed(item, path, new)).encode()

    file = f"{task.split()[1]}/val.jsonl"
    return _shown(task, f"{path} {new!r:.20}", edited(file, change))


_CHANGED = (
    ("copa copa", "label", 2),
    ("copa copa", "label", True),
    ("copa copa", "question", "reason"),
    ("copa copa", "choice2", "?!"),
    ("copa copa", "choice2", "the toilet filled with water!"),
    ("copa copa", "premise", 3),
    ("wsc wsc", "target.span2_index", 12),
    ("wsc wsc", "target.span2_text", "she"),
    ("wsc wsc --candidates", "candidates", []),
    ("wsc wsc --candidates", "candidates", [{"text": "Pete"}]),
    ("record record", "qas.0.query", "x"),
    ("record record", "passage.entities.0.end", 900),
    ("multirc multirc", "idx", [2]),
    ("multirc multirc", "passage.questions", 3),
    ("mood.json moods", "text", "x"),
    ("mood.json moods", "label", "Positiv"),
    ("ends.json moods", "right", 3),
    ("ends.json moods", "ends", [" bad"]),
    ("ends.json moods", "ends", [" bad", " good", " good"]),
    ("pick.json moods", "other", None),
    ("cuts.json letters", "label", "Us"),
)
"""A task with its folder and flags, a path in the first example of the file, and the new value."""
_TEXTS = {
    "half a character": '{"a": 1}\n{"a": ["\\uD800"]}',
    "half a character in a key": '{"\\udC00\\uD800": 1}',
    "a key twice": '{"a": 1, "a": 2}',
    "a name twice": '{"prompt": "a", "idx": 7}\n{"prompt": "b"}\n{"prompt": "c", "idx": 7}',
    "a name twice, as id": '{"prompt": "a", "idx": "a"}\n{"prompt": "b", "id": "a"}',
    "a name that is a number": '{"prompt": "a", "idx": 1}\n{"prompt": "b"}',
}


_TAUGHT = (
    Accepted(
        name="items: instructions with a task that reads them",
        command=f"{_OWN} --epochs 1 --batch-size 2",
        setup=all_of(
            trained,
            with_json("items/train.json", _ALPACA),
            with_json("own.json", {"pattern": "{instruction}\n{input:cut}", "answer": "{output}"}),
        ),
        message=r"own: 2 train",
    ),
)

_ASKED = (
    *(_changed(*row) for row in _CHANGED),
    *(
        _shown("prompted x.jsonl --split test", name, with_file("x.jsonl", text))
        for name, text in _TEXTS.items()
    ),
    _shown("seq2seq lines --split train", "fewer targets", with_file("lines/train.target", "a\n")),
    _shown("seq2seq lines --split train", "no targets", missing("lines/train.target")),
)

_RESUMED = (
    "--seed 5",
    "--label-smoothing 0.1",
    "--beams 2",
    "--resume none",
    "--save run",
)
_TUNED = tuple(
    refused(
        f"finetune: resumed with {flags}",
        f"trainer.finetune {TUNING} --save tuned --epochs 2 {flags}",
        setup=all_of(tuned, lines("items/train.jsonl", ITEMS)),
        output_before=""
        if flags in ("--resume none", "--save run")
        else "is not read: the run resumes",
    )
    for flags in _RESUMED
)

_EXPORTED = {
    "a GLM to transformers": ("run --to hf --output out", trained),
    "onto a file": (
        "run --to safetensors --output out",
        all_of(trained, with_file("out")),
    ),
    "into .": ("run --to safetensors --output .", trained),
    "more rows than there are": ("causal --to hf --vocabulary 385 --output out", causal),
    "without the end of a text": ("causal --to hf --vocabulary 300 --output out", causal),
}
"""Arguments of trainer.export, and the setup, by row name."""
_EXPORTS = tuple(
    refused(f"export: {name}", f"trainer.export {flags}", setup=setup)
    for name, (flags, setup) in _EXPORTED.items()
)


def _weights(name: str, path: str, *setups: Setup, more: str = "") -> Refusal:
    model = "gpt2.json --objective causal" if path == "gpt2" else "model.json"
    return Refusal(
        name=f"weights: {name}",
        command=f"trainer.train --data data --model {model} --max-steps 2 --batch-size 4"
        f" --init-from {path} {more}",
        setup=all_of(*setups),
    )


def _bigger(**changes: Any) -> Setup:
    return json_changed("model.json", next(iter(changes)), next(iter(changes.values())))


_SAFE, _GPT2 = "glm/model.safetensors", "gpt2/config.json"
_WEIGHTS = (
    _weights("no file", "gone", trained),
    _weights("of another shape", "run", trained, _bigger(vocab_size=512)),
    _weights("of fewer layers", "run", trained, _bigger(num_layers=3)),
    _weights("of fewer positions", "run", trained, _bigger(max_positions=128)),
    _weights("cut short", _SAFE.split("/", maxsplit=1)[0], glm, cut(_SAFE, 4)),
    _weights("without their file", "glm", glm, missing(_SAFE)),
    *(
        _weights(f"of a GPT-2 with {key} {value}", "gpt2", gpt2, json_changed(_GPT2, key, value))
        for key, value in (
            ("n_inner", 5),
            ("model_type", "llama"),
            ("activation_function", "relu"),
            ("tie_word_embeddings", False),
            ("scale_attn_by_inverse_layer_idx", True),
            ("n_head", 5),
            ("n_layer", "2"),
            ("n_embd", None),
        )
    ),
    _weights(
        "of quantized numbers",
        "glm",
        glm,
        edited(_SAFE, lambda content: content.replace(b'"F32"', b'"I32"')),
    ),
    _weights(
        "of the reference, cut short",
        "reference",
        reference,
        edited("reference/*/mp_rank_00_model_states.pt", lambda content: content[:-200]),
    ),
    _weights(
        "of the reference, with a rank missing",
        "reference",
        reference,
        lambda folder: next(folder.glob("reference/*/mp_*")).rename(
            next(folder.glob("reference/*/mp_*")).with_name("mp_rank_01_model_states.pt")
        ),
    ),
)

_GLM_CONFIG = {
    "model_type": "glm",
    "num_layers": 2,
    "hidden_size": 32,
    "num_attention_heads": 4,
    "vocab_size": 384,
    "max_sequence_length": 64,
}
"""The config.json of a GLM, as THUDM/GLM publishes it."""
_SHARD = "pytorch_model-00001-of-00002.bin"
_FOLDERS: dict[str, Setup] = {
    "chatglm": with_json("other/config.json", {"model_type": "chatglm", "num_layers": 28}),
    "llama": with_json("other/config.json", {"model_type": "llama"}),
    "a type without a name": with_json("other/config.json", {"model_type": "qwen2"}),
    "GLM-4": with_json("other/config.json", {"model_type": "glm", "num_hidden_layers": 40}),
    "LoRA": with_json("other/adapter_config.json", {"base_model_name_or_path": "gpt2"}),
    "nanoGPT": with_file("other/ckpt.pt"),
    "attention_scale": with_json("other/config.json", {**_GLM_CONFIG, "attention_scale": 8.0}),
    "relative_encoding": with_json("other/config.json", {**_GLM_CONFIG, "relative_encoding": True}),
    "no number of layers": with_json("other/config.json", {**_GLM_CONFIG, "num_layers": None}),
    "a config alone": with_json("other/config.json", _GLM_CONFIG),
    "nothing": with_file("other/README.md"),
    "a shard is missing": all_of(
        with_json("other/config.json", _GLM_CONFIG),
        with_json(
            "other/pytorch_model.bin.index.json",
            {"weight_map": {str(i): f"pytorch_model-0000{i}-of-00009.bin" for i in range(1, 10)}},
        ),
        with_file("other/pytorch_model-00002-of-00009.bin"),
    ),
    "the index is missing": all_of(
        with_json("other/config.json", _GLM_CONFIG), with_file(f"other/{_SHARD}")
    ),
    "a pointer of Git LFS": all_of(
        with_json("other/config.json", _GLM_CONFIG),
        with_file("other/pytorch_model.bin", "version https://git-lfs.github.com/spec/v1\noid x\n"),
    ),
}
"""Folders of other models that users may have, which cannot be read."""
_OF_OTHERS = tuple(
    refused(
        f"weights of others: {name}",
        "trainer.train --data data --max-steps 2 --batch-size 4 --init-from other",
        setup=all_of(ready, setup),
    )
    for name, setup in _FOLDERS.items()
)


def _published(folder: Path) -> None:
    """Write the run's weights and tokenizer in the format in which THUDM/GLM publishes them."""
    trained(folder)
    with_json("other/config.json", _GLM_CONFIG)(folder)
    other = folder / "other"
    shutil.copy(folder / "run/step-4/mp_rank_00_model_states.pt", other / "pytorch_model.bin")
    shutil.copy(folder / "tok.model", other / "cog-pretrain.model")


_STEP = "trainer.train --data data --batch-size 4 --max-steps 1"
_WITHOUT_MODEL = {
    "a run": (f"{_STEP} --init-from run", trained),
    "a checkpoint": (f"{_STEP} --init-from run/step-2", trained),
    "an export": (f"{_STEP} --init-from glm", glm),
    "a GPT-2": (f"{_STEP} --objective causal --init-from gpt2", gpt2),
    "a published GLM": (f"{_STEP} --init-from other", _published),
    "a published GLM, finetune": (
        f"trainer.finetune {TUNING.replace('run', 'other')} --epochs 1 --save out",
        all_of(_published, lines("items/train.jsonl", ITEMS)),
    ),
    "a published GLM, evaluate": (
        "trainer.evaluate other --task lambada=x",
        all_of(_published, with_file("x", '{"text": "a b"}\n')),
    ),
    "a published GLM, generate": ("trainer.generate other the", _published),
    "a published GLM, export": ("trainer.export other --to safetensors --output out", _published),
}
"""Commands that need no --model, because the weights' folder describes the model."""
_STARTED = tuple(
    Accepted(name=f"without --model: {name}", command=command, setup=setup, message="")
    for name, (command, setup) in _WITHOUT_MODEL.items()
)


_WHOLE = "run/step-4/whole-00000.json"
_DAMAGED = all_of(
    trained,
    cut("run/step-4/mp_rank_00_model_states.pt"),
    overwritten("run/step-2/mp_rank_00_model_states.pt", 200_000, b"\xaa\x55"),
)
_WORDS = with_file("x", '{"text": "a b"}\n')
_USED = {
    "a prompt that is too long": (f"generate run '{'the sea and ' * 40}'", trained),
    "another tokenizer": (
        "generate run x --tokenizer tiktoken:merges.txt",
        all_of(trained, tokenizer),
    ),
    "no such device": ("generate run x --device abacus", trained),
    "data that are gone": (
        "generate run x",
        all_of(trained, json_changed(_WHOLE, "state.run.mixes.0.data", ["/gone"])),
    ),
    "a shape that is gone": (
        "generate run x",
        all_of(trained, json_changed(_WHOLE, "state.identity.model.num_layers", 0)),
    ),
    "only damaged checkpoints, generate": ("generate run x", _DAMAGED),
    "only damaged checkpoints, train": (
        "train --data data --model model.json --max-steps 4 --batch-size 4 --init-from run"
        " --save on",
        _DAMAGED,
    ),
    "losses that were not finite": (
        "generate run x",
        all_of(
            trained,
            *(
                json_changed(f"run/step-{i}/whole-00000.json", "state.bad_streak", 1)
                for i in (2, 4)
            ),
        ),
    ),
    "held-out text of weights": ("evaluate glm", glm),
    "held-out text of an exported GPT-2": ("evaluate gpt2", gpt2),
    "held-out text of a tuned model": ("evaluate tuned", tuned),
    "a task longer than the model": (
        "evaluate run --task lambada=x --length 65",
        all_of(trained, _WORDS),
    ),
    "blanks of a causal model": (
        "evaluate causal --task lambada=x --blank mask",
        all_of(causal, _WORDS),
    ),
    "an empty file of a task": (
        "evaluate run --task lambada=x",
        all_of(trained, with_file("x", "\n")),
    ),
}
"""Commands of the trainer, and the setup, by row name."""
_USES = tuple(
    refused(f"use: {name}", f"trainer.{command}", setup=setup)
    for name, (command, setup) in _USED.items()
)

_PATTERNS = (
    refused(
        "the pattern after the last of wsc",
        "trainer.tasks wsc x.jsonl --tokenizer sentencepiece:tok.model --pattern 3",
        setup=all_of(with_file("tok.model", MODEL.read_bytes()), with_file("x.jsonl", "{}\n")),
    ),
)

ROWS = (
    *_DESCRIPTIONS,
    *_ITEMS,
    *_TAUGHT,
    *_LABELS,
    *_ASKED,
    *_TUNED,
    *_EXPORTS,
    *_WEIGHTS,
    *_OF_OTHERS,
    *_STARTED,
    *_USES,
    *_PATTERNS,
)
