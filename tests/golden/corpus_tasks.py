"""Files of every task in the published layouts, and the commands that show their examples."""

import json
from pathlib import Path

from tests.golden.corpora import write_jsonl
from tests.golden.corpus_training import sentence

_LONG = " ".join(f"The {word} of the old mill was seen by all." for word in ("wheel", "door") * 4)
_NAMES = ("Ann", "Bob", "Cleo", "Dan", "Eve", "Finn", "Gus", "Hal", "Ida", "Jo", "Kim", "Lee")

_COPA = (
    {"premise": "The man turned on the faucet.", "choice1": "The toilet filled with water.",
     "choice2": "Water flowed from the spout.", "question": "effect", "label": 1, "idx": 0},
    {"premise": "The girl “found” a bug in her cereal!", "choice1": "She lost her spoon...",
     "choice2": "A bird left it", "question": "cause", "label": 0, "idx": 1},
    {"premise": "It rained.", "choice1": "We stayed.", "choice2": "We left the house.",
     "question": "effect", "label": 0, "idx": 2},
)  # fmt: skip
_BOOLQ = (
    {"question": "is the mill old", "passage": f"Mill – {_LONG}", "label": True, "idx": 0},
    {"question": "is there “no” river", "passage": "The river is deep.", "label": "false",
     "idx": 1},
)  # fmt: skip
_ENTAILED = {
    "cb": ("entailment", "contradiction", "neutral"),
    "rte": ("entailment", "not_entailment"),
}
_WIC = (
    {"word": "bank", "sentence1": "We sat on the bank.", "sentence2": "The bank ‘lent’ us money.",
     "label": False, "idx": 0},
    {"word": "road", "sentence1": "A road leads north.", "sentence2": "Take this road – it is dry.",
     "label": True, "idx": 1},
)  # fmt: skip
_WSC = (
    {"text": "Mark told Pete many lies about himself , which he believed .", "label": True,
     "target": {"span1_text": "Pete", "span1_index": 2, "span2_text": "he", "span2_index": 9},
     "idx": 0, "candidates": [{"text": name} for name in ("Pete", *_NAMES)]},
    {"text": "The bird saw the cat, so it  flew.", "label": False,
     "target": {"span1_text": "The cat", "span1_index": 3, "span2_text": "it", "span2_index": 5},
     "idx": 1, "candidates": [{"text": "The bird"}, {"text": "Mark"}]},
    {"text": "Ann met Eve because she, too, was lost.", "label": True,
     "target": {"span1_text": "Ann", "span1_index": 0, "span2_text": "she", "span2_index": 4},
     "idx": 2, "candidates": [{"text": "Eve"}, {"text": "Ann"}, {"text": "Eve"}]},
)  # fmt: skip
_MULTIRC = (
    {"idx": 0, "passage": {"text": f"{_LONG} Ann owns it.", "questions": [
        {"idx": 0, "question": "Who “owns” the mill?", "answers": [
            {"text": "Ann", "label": 1, "idx": 0}, {"text": "Bob – or Eve", "label": 0, "idx": 1}]},
        {"idx": 1, "question": "What was seen?", "answers": [
            {"text": "The wheel.", "label": 1, "idx": 2}]}]}},
    {"idx": 1, "passage": {"text": "It rained.", "questions": [
        {"idx": 2, "question": "Was it dry?", "answers": [
            {"text": "yes", "label": 0, "idx": 3}]}]}},
)  # fmt: skip


def _entities(text: str, names: tuple[str, ...]) -> list[dict]:
    return [{"start": text.index(name), "end": text.index(name) + len(name) - 1} for name in names]


def _record() -> list[dict]:
    crowd = f"{', '.join(_NAMES)} met.\n@highlight\nThe river – the Old Mill stood there."
    few = "Ann saw the Thames."
    return [
        {"idx": 0, "passage": {"text": crowd, "entities": _entities(crowd, _NAMES)}, "qas": [
            {"idx": 0, "query": "Then @placeholder went home.",
             "answers": [{"text": "Eve"}, {"text": "Jo"}, {"text": "Eve"}]}]},
        {"idx": 1, "passage": {"text": few, "entities": _entities(few, ("Ann", "Thames"))},
         "qas": [{"idx": 1, "query": "What @placeholder saw was wide",
                  "answers": [{"text": "the Ann"}, {"text": "Ann"}]}]},
        {"idx": 2, "passage": {"text": crowd, "entities": _entities(crowd, _NAMES[:10])}, "qas": [
            {"idx": 2, "query": "@placeholder sang.", "answers": [{"text": "Bob"}]}]},
    ]  # fmt: skip


_TNEWS = (
    {"label": "102", "sentence": "新歌今天发布", "keywords": "新歌,歌手", "id": 7},
    {"label": "116", "sentence": "游戏更新了，" * 4, "keywords": "", "id": 9},
)
_AFQMC = (
    {"sentence1": "怎么还钱", "sentence2": "如何还款", "label": "1", "id": 0},
    {"sentence1": "花园在哪", "sentence2": "小河很宽", "label": "0", "id": 1},
)
_PAIRS = (
    {"source": "The  -lrb- old -rrb- mill &amp; UNK , ``it '' is n't <unk> -LRB- here -RRB- 's . ",
     "target": "old mill UNK <S_SEP> it is n't “here”"},
    {"source": f"{_LONG} At the end there was – a bird.", "target": "A bird ."},
)  # fmt: skip
_SAID = (
    {"prompt": "The word is dog. ", "answer": "A dog it is."},
    {"prompt": "The word is river.", "answer": " A river it is.", "idx": "r"},
    {"prompt": f"{_LONG} The word is road.", "answer": "A road."},
)
_MOODS = (
    {"review": "Two hours of {rain}.", "text": {"of": "it"}, "label": "Negative", "one": "rain",
     "other": "sun", "ends": [" bad", " good", " dull"], "right": 1},
    {"review": f"{_LONG} We laughed.", "text": {"of": "us"}, "label": "positive", "one": "a",
     "other": "b", "ends": [" new", " old"], "right": 0},
)  # fmt: skip
_LETTERS = {"a": "abcd", "b": "ab", "c": "cd", "d": "“x”?!", "e": " x ", "label": "us"}
_CUT = {
    "{a:cut}ef[MASK]": (10, 9),
    "{b:cut}{c:cut}ef[MASK]": (9, 7),
    "{a:even}[MASK]{c:even}": (9,),
    "{b:even}[MASK]{c:even}": (7, 6),
    "{b}-{c}{|:cut}ef[MASK]": (9,),
    "{d:plain} {d:open}{|}[MASK]": (30,),
    "{e:strip}{e}![MASK]": (30,),
}
"""Patterns, and the lengths to which a row of `_LETTERS` is cut."""
_ODD = b"""\xef\xbb\xbf{"prompt": "1", "idx": null}\r

  \r
{"prompt": "\xe2\x80\xa8 \\ud83d\\ude00 \\\\ud800", "id": "y"}
{"prompt": "3", "idx": ["z"], "id": 4}
"""
_OWN = {
    "cuts": {"pattern": [*_CUT], "verbalizer": {"US": " bad", "us": " good"}},
    "mood": {"pattern": ["{review:cut} It was [MASK] {{of}} {text.of}.", "[MASK]: {review:cut}"],
             "verbalizer": {"negative": " bad", "positive": " good"}, "metric": "f1-macro"},
    "pick": {"pattern": "{review:cut} [sMASK] Done.", "choices": [" {one}.", " {other}!"],
             "label": "right", "length": 60},
    "ends": {"pattern": "{review:cut} [gMASK]", "choices_field": "ends", "label": "right"},
    "reply": {"pattern": "Say {one}: [MASK] now.", "answer": "{other} {text.of}"},
}  # fmt: skip


def tasks(folder: Path) -> None:
    """Write a folder for each task, with the files train, val and test, and custom task files."""
    for name, items in {
        "copa": _COPA,
        "boolq": _BOOLQ,
        "wic": _WIC,
        "wsc": _WSC,
        "multirc": _MULTIRC,
        "record": _record(),
        "prompted": _SAID,
        "pairs": _PAIRS,
        "moods": _MOODS,
        "letters": [_LETTERS],
        **{name: _entailed(name) for name in _ENTAILED},
    }.items():
        for split in ("train", "val", "test"):
            write_jsonl(folder / name / f"{split}.jsonl", items)
    for name, items in {"tnews": _TNEWS, "afqmc": _AFQMC}.items():
        for split in ("train", "dev", "test"):
            write_jsonl(folder / name / f"{split}.json", items)
    for name, description in _OWN.items():
        (folder / f"{name}.json").write_text(json.dumps(description), "utf-8")
    (folder / "odd.jsonl").write_bytes(_ODD)
    (folder / "lines").mkdir()
    (folder / "lines" / "train.source").write_text("one two\nthree \n", "utf-8")
    (folder / "lines" / "train.target").write_text(" a\nb\n", "utf-8")


def _entailed(name: str) -> list[dict]:
    return [
        {"premise": f"{_LONG} “{label}”.", "hypothesis": f"The door was seen {label}..",
         "label": label, "idx": at}
        for at, label in enumerate(_ENTAILED[name])
    ]  # fmt: skip


_PATTERNS = {"copa": 3, "boolq": 6, "cb": 5, "rte": 5, "wic": 3, "wsc": 3, "multirc": 5,
             "afqmc": 2}  # fmt: skip
_SEQUENCES = ("seq2seq", "customization")


SHOWN = (
    *(f"{task} {task} --pattern {at}" for task, count in _PATTERNS.items()
      for at in range(count)),
    *(f"{task} {task}" for task in ("copa", "boolq", "cb", "rte", "wic", "wsc", "multirc",
                                    "record", "tnews", "afqmc", "prompted")),
    *(f"{task} {task} --split train --show 9" for task in ("copa", "wsc", "record", "rte",
                                                           "tnews", "prompted")),
    *(f"{task} {task} --form spelled --length 64" for task in ("boolq", "rte", "multirc")),
    *(f"{task} pairs --split train --cut-targets --target-length 6 --source-length 40"
      for task in _SEQUENCES),
    *(f"{task} pairs --split train --hide-padding" for task in _SEQUENCES),
    "wsc wsc --candidates", "wsc wsc --candidates --split train --show 9",
    "seq2seq pairs",
    "seq2seq lines --split train --hide-padding",
    "prompted prompted --split train --causal",
    "mood.json moods", "mood.json moods --pattern 1 --length 20 --split train",
    "mood.json moods --form spelled",
    "pick.json moods", "ends.json moods --split train", "ends.json moods --length 24",
    "reply.json moods --split train", "reply.json moods",
    "prompted odd.jsonl --split test", "seq2seq pairs --target-length 5",
    *(f"cuts.json letters --pattern {at} --length {length}"
      for at, lengths in enumerate(_CUT.values()) for length in lengths),
)  # fmt: skip
"""The commands that show every task in every pattern and form, at full length and shortened."""
NOT_SHOWN = (
    "copa copa --length 30", "copa copa --causal", "seq2seq pairs --causal",
    "prompted prompted --length 30", "seq2seq pairs --split train --target-length 5",
    "reply.json moods --causal", "seq2seq pairs --source-length 3",
)  # fmt: skip
"""Commands of the same program that are refused."""


def tuned(folder: Path) -> None:
    """Write more, and shorter, examples of some tasks, for train, val and test."""
    for split, numbers in (("train", range(8)), ("val", range(20, 25)), ("test", range(40, 43))):
        write_jsonl(folder / "more-copa" / f"{split}.jsonl", map(_copa_of, numbers))
        write_jsonl(folder / "more-cb" / f"{split}.jsonl", map(_cb_of, numbers))
        write_jsonl(folder / "more-said" / f"{split}.jsonl", map(_said_of, numbers))
        write_jsonl(folder / "more-pairs" / f"{split}.jsonl", map(_pair_of, numbers))


def _copa_of(number: int) -> dict:
    return {
        "premise": sentence(number, 1),
        "choice1": sentence(number, 2),
        "choice2": sentence(number, 3),
        "question": ("cause", "effect")[number % 3 == 0],
        "label": number % 2,
        "idx": number,
    }


def _cb_of(number: int) -> dict:
    return {
        "premise": sentence(number, 4),
        "hypothesis": sentence(number, 5),
        "label": _ENTAILED["cb"][number % 3],
        "idx": number,
    }


def _said_of(number: int) -> dict:
    word = sentence(number, 6).split()[1]
    return {"prompt": f"The word is {word}.", "answer": f" The {word} it is."}


def _pair_of(number: int) -> dict:
    source = sentence(number, 7)
    return {"source": f"{source} {sentence(number, 8)}", "target": source, "idx": f"p{number}"}


_HELLASWAG = (
    {"activity_label": "Road", "ctx_a": "The river carries the", "ctx_b": "bread [step] and",
     "endings": ["song  at night.", "train [title] by the sea.", "winter!", "house."], "label": 1},
    {"activity_label": "Bread", "ctx_a": "The bird [x] finds", "ctx_b": "",
     "endings": ["the garden.", "the garden.", "a very long letter that nobody keeps."],
     "label": 0},
)  # fmt: skip
_ARC = (
    {"question": "What carries bread?", "answerKey": "B",
     "choices": {"text": ["river", "the train", "a song by the sea"], "label": ["A", "B", "C"]}},
    {"question": "What is read?", "answerKey": "1",
     "choices": {"text": ["letter", "road"], "label": ["1", "2"]}},
)  # fmt: skip
_CHOICES = (
    {"query": "The bird", "choices": ["finds the road", " follows", "keeps the old mill at night"],
     "label": 1},
    {"query": " ".join(sentence(9, at) for at in range(12)), "choices": ["a", "river"], "label": 0},
)  # fmt: skip
_WIKI = """ = Mill =

 The old mill 's wheel ( " Ann " ) was 1 @,@ 200 @-@ 3 @.@ 5 feet , it is said ; see [ 1 ] .
 = = Road = =
 The N roads ' end : ' here ' !
"""


def _endings_of(number: int) -> list[str]:
    """Return four endings for an example, from one word to two sentences."""
    kinds = (
        sentence(number, 12).split()[1],
        " ".join(sentence(number, at) for at in range(13, 15)),
        "花园。",
        sentence(number, 17),
    )
    return [kinds[(at + number) % 4] for at in range(4)]


def _scene_of(number: int) -> dict:
    return {
        "activity_label": sentence(number, 9).split()[1].title(),
        "ctx_a": sentence(number, 10),
        "ctx_b": "the bird" if number % 2 else "",
        "endings": _endings_of(number),
        "label": number % 4,
    }


def _arc_of(number: int) -> dict:
    texts = _endings_of(number)[: 3 + number % 2]
    labels = list("ABCD"[: len(texts)])
    return {
        "question": f"{sentence(number, 11)[:-1]}?",
        "choices": {"text": texts, "label": labels},
        "answerKey": labels[number % 3],
    }


def _choice_of(number: int) -> dict:
    choices = _endings_of(number)[: 2 + number % 3]
    return {"query": sentence(number, 11), "choices": choices, "label": number % len(choices)}


def exams(folder: Path) -> None:
    """Write the files of benchmarks, and prompts."""
    for name, items in {
        "hellaswag": [*_HELLASWAG, *map(_scene_of, range(9))],
        "arc": [*_ARC, *map(_arc_of, range(9))],
        "exam-copa": [*_COPA, *map(_copa_of, range(9))],
        "choices": [*_CHOICES, *map(_choice_of, range(9))],
        "lambada": [{"text": sentence(number, 3)} for number in range(6)]
        + [{"text": "The river\tcarries the bread "}],
        "documents": [{"text": sentence(1, 2)}, {"text": _LONG}],
        "lines": [{"text": "The road."}, {"text": "The bird finds"}],
        "wiki": [{"page": _WIKI}],
    }.items():
        write_jsonl(folder / "exams" / f"{name}.jsonl", items)
    (folder / "prompts.txt").write_text("The river [MASK] the bread.\n\nThe bird\n", "utf-8")
    write_jsonl(
        folder / "prompts.jsonl",
        [
            {"prompt": "The [MASK] finds the [MASK] at night. [sMASK] The road"},
            {"prompt": "小河\n"},
        ],
    )


WRITTEN = [
    f"trainer.generate {one} --max-new-tokens 8 --dtype fp32"
    for one in (
        "glm 'The river [MASK] the bread.'",
        "glm 'The river' --min-new-tokens 5",
        "glm 'The [MASK] finds [sMASK] The road leaves' --json",
        "glm --prompts prompts.txt --top-k 5 --seed 3 --samples 2 --json",
        "glm --prompts prompts.txt --top-k 5 --seed 3 --samples 2 --batch-size 1",
        "glm --prompts prompts.jsonl --top-p 0.8 --temperature 0.7 --json",
        "glm --prompts prompts.txt --temperature 1.5 --samples 3 --seed 7",
        "glm --prompts prompts.jsonl --beams 3 --json",
        "glm --prompts prompts.txt --beams 3 --no-repeat-ngram 2 --json",
        "glm --prompts prompts.txt --beams 2 --min-new-tokens 3 --json",
        "glm 'The road' --no-repeat-ngram 1 --json",
        "glm --prompts many.txt --beams 2 --json",
        "glm --prompts many.txt --beams 3 --json",
        "glm --prompts many.txt --beams 4 --no-repeat-ngram 2 --json",
        "left --prompts many.txt --beams 2 --json",
        "left 'The river'",
        "left '' --json --top-k 3",
        "left 'The [MASK] river' --samples 2 --top-p 0.5 --json",
        "left --prompts prompts.txt --beams 3 --json",
    )
] + [
    # These texts extend to the last position of the model.
    f"trainer.generate {one} --temperature 2 --min-new-tokens 400 --max-new-tokens 400 --dtype fp32"
    " --json"
    for one in ("left 'The river' --seed 4", "glm 'The [MASK] river'")
]
"""The commands that generate texts."""


def more_prompts(folder: Path) -> None:
    """Write prompts of several lengths, some of which contain blanks."""
    prompts = [" ".join(sentence(at, 31).split()[: 2 + at % 5]) for at in range(8)]
    prompts += [f"The [MASK] {one.split()[-1]} it. [sMASK]" for one in prompts[:4]]
    (folder / "many.txt").write_text("\n".join(prompts) + "\n", "utf-8")


_ASKED = "--max-new-tokens 6 --dtype fp32 --json --beams 2"
EXPORTED = [
    f"trainer.{one}"
    for one in (
        "export left --to hf --output hf",
        "export left --to hf --output cut --vocabulary 506 --dtype bf16 --shard-bytes 40k",
        "export left --to safetensors --output left-safe --dtype fp16",
        "export glm/step-60 --to safetensors --output safe --shard-bytes 60k",
        f"generate left 'The river' {_ASKED}",
        f"generate hf 'The river' {_ASKED}",
        f"generate cut 'The river' {_ASKED}",
        f"generate left-safe 'The river' {_ASKED}",
        f"generate glm 'The [MASK] finds' {_ASKED}",
        f"generate safe 'The [MASK] finds' {_ASKED}",
    )
]
"""The commands that export models, and those that generate text with the exports."""
