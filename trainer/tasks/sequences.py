"""Sequence to sequence: a source is given, and its target is written into a blank.

    [CLS] [sMASK] Content: source …padding  |  sop target eop      gigaword, cnn_dm, xsum
    [CLS] source [sMASK] eos …padding       |  sop target eop      customization, seq2seq

Files are JSON lines {"source": …, "target": …}, or two files of lines, NAME.source and NAME.target.
As in THUDM/GLM (commit 4f61ed7,
tasks/seq2seq/dataset), a source is padded, and the padding is seen, unless --hide-padding.
"""

import re
import reprlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from shards.errors import UserError
from trainer.tasks.items import Item, names_of, read_document, read_items, read_text
from trainer.tasks.question import Question
from trainer.tasks.rouge import rouge
from trainer.tasks.rows import Blank, BlankRows
from trainer.tasks.superglue.wording import plain
from trainer.tasks.task import SPLITS, TEST, Asked, Defaults, Prediction, Task

_SOURCES = ".source"
_MARKS = re.compile(r"\[(UNK|SEP)\]")
_GIGAWORD = {"UNK": "[UNK]", "<unk>": "[UNK]"} | {
    f"-{name}-": sign
    for name, sign in zip(("lrb", "rrb", "lsb", "rsb", "lcb", "rcb"), "()[]{}", strict=True)
}
_GIGAWORD |= {"&amp;": "&", "&lt;": "<", "&gt;": ">"}
_CNN_DM = {
    f"-{name}-": sign
    for name, sign in zip(("LRB", "RRB", "LSB", "RSB", "LCB", "RCB"), "()[]{}", strict=True)
}
_CNN_DM |= {"''": '"', "``": '"', "`": "'", " n't": "n't", " 's": "'s", " 'd": "'d", " 'll": "'ll"}


@dataclass(frozen=True, kw_only=True, eq=False)
class _Pair:
    """A source as it stands in a row, and its target."""

    item: Item
    idx: Any
    context: list[int]
    mask: int
    """The token of the blank in the context."""
    target: str | None
    was_cut: bool


Pairs = Callable[[Path, Asked], Iterator[_Pair]]


def _asking(pairs: Pairs, *, knows_marks: bool = False) -> Callable[[Path, Asked], list[Question]]:
    def ask(path: Path, asked: Asked) -> list[Question]:
        if asked.is_causal:
            raise UserError(
                "this task fills blanks, and the model reads from left to right: take the task "
                "prompted, whose files are JSON lines of prompt and answer."
            )
        cut: list[_Pair] = []
        questions = [
            _question(pair, asked, number, cut, knows_marks=knows_marks)
            for number, pair in enumerate(pairs(path, asked))
        ]
        if cut and not asked.cut_targets:
            raise cut[0].item.wrong(
                f"this target is longer than --target-length {asked.target_length} tokens, its "
                f"end among them, and so are {len(cut) - 1:,} more of {len(questions):,}. Make "
                "that longer, or let them be cut with --cut-targets."
            )
        return questions

    return ask


def _question(
    pair: _Pair, asked: Asked, number: int, cut: list[_Pair], *, knows_marks: bool
) -> Question:
    """Return a pair as a question; those whose target is too long are added to `cut`."""
    special, size = asked.tokenizer.special, asked.source_length
    padding = 0 if asked.hide_padding else size - len(pair.context)
    answer: list[int] = []
    if asked.is_train:
        target = f" {pair.target}"
        ids = _with_marks(target, asked) if knows_marks else asked.ids(target)
        if not ids:
            raise pair.item.wrong("the target is empty: there is nothing to learn.")
        answer = [*ids, special["eop"]]
        if len(answer) > asked.target_length:
            cut.append(pair)
            answer = answer[: asked.target_length]
    blank = Blank(
        context=np.array(pair.context, np.int32),
        mask_at=pair.context.index(pair.mask),
        sop=special["sop"],
        answer=np.array(answer, np.int32),
        padding=padding,
        pad=special["pad"],
    )
    return Question(
        guid=asked.guid(number),
        idx=pair.idx,
        rows=BlankRows([blank]),
        num_shortened=int(pair.was_cut),
        facts={"reference": pair.target},
    )


def _with_marks(text: str, asked: Asked) -> list[int]:
    """Return the ids of a text in which [UNK] and [SEP], put there by this task, are tokens."""
    special = asked.tokenizer.special
    ids: list[int] = []
    for at, part in enumerate(_MARKS.split(text)):
        if at % 2:
            ids.append(special[part.lower()])
        elif part:
            ids += asked.tokenizer.encode(part)
    return ids


def _summaries(
    source_text: Callable[[str], str] = plain,
    target_text: Callable[[str], str] = plain,
    *,
    knows_marks: bool = False,
) -> Pairs:
    """Return what reads sources that stand after "Content:", cut at their end.

    With marks, [UNK] and [SEP] in a text are tokens; else texts are only texts.
    """

    def pairs(path: Path, asked: Asked) -> Iterator[_Pair]:
        special = asked.tokenizer.special
        prompt = [special["cls"], _blank(asked), *asked.ids(" Content:")]
        room = _room(asked, len(prompt))
        items = _items(path)
        for item, name in zip(items, names_of(items, keys=("idx",)), strict=True):
            text = f" {source_text(item.text('source').strip())}"
            ids = _with_marks(text, asked) if knows_marks else asked.ids(text)
            yield _Pair(
                item=item,
                idx=name,
                context=[*prompt, *ids[:room]],
                mask=_blank(asked),
                target=_target(item, asked, target_text),
                was_cut=len(ids) > room,
            )

    return pairs


def _plain_pairs(path: Path, asked: Asked) -> Iterator[_Pair]:
    """Yield sources with the blank at their end, which is kept where they are too long."""
    special = asked.tokenizer.special
    room = _room(asked, 3)
    items = _items(path)
    for item, name in zip(items, names_of(items, keys=("idx",)), strict=True):
        ids = asked.ids(item.text("source").strip())
        yield _Pair(
            item=item,
            idx=name,
            context=[special["cls"], *ids[-room:], _blank(asked), special["eos"]],
            mask=_blank(asked),
            target=_target(item, asked, str),
            was_cut=len(ids) > room,
        )


def _items(path: Path) -> list[Item]:
    """Return the items of JSON lines, or of a file of sources with its targets beside it."""
    if path.suffix != _SOURCES:
        return read_items(path)
    sources, beside = _lines(path), path.with_suffix(".target")
    targets = _lines(beside) if beside.exists() else None
    if targets is not None and len(targets) != len(sources):
        raise UserError(
            f"{path} has {len(sources):,} lines and {beside} {len(targets):,}: each source needs "
            "its target in the line of the same number."
        )
    return [
        Item(
            fields={"source": source} | ({} if targets is None else {"target": targets[at]}),
            path=path,
            line=at + 1,
        )
        for at, source in enumerate(sources)
    ]


def _lines(path: Path) -> list[str]:
    return read_text(path).removesuffix("\n").split("\n")


def _target(item: Item, asked: Asked, clean: Callable[[str], str]) -> str | None:
    if asked.split == TEST and not item.has("target"):
        return None
    return clean(item.text("target").strip())


def _asked_for(path: Path, asked: Asked) -> Iterator[_Pair]:
    """Yield questions to be written about an answer in a context, as SQuAD has them."""
    for number, (context, question, answers) in enumerate(_questions(path)):
        if not answers:
            raise _unanswered(question, "a question is written about an answer")
        for answer in answers:
            yield _about(context, question, answer, asked, number)


def _about(context: Item, question: Item, answer: str, asked: Asked, number: int) -> _Pair:
    special = asked.tokenizer.special
    ids = asked.ids(f"{context.text('context').rstrip()} Question:")
    after = asked.ids(f" Answer: {answer}")
    room = _room(asked, len(after) + 2, item=question)
    first = _first(ids, asked.ids(f" {answer}")) if len(ids) > room else 0
    # A long context is seen around the answer.
    first = max(first - room // 2, 0)
    is_known = asked.split != TEST or question.has("question")
    target = question.text("question") if is_known else None
    return _Pair(
        item=question,
        idx=question.fields.get("id", number if target is None else target),
        context=[special["cls"], *ids[first : first + room], _blank(asked), *after],
        mask=_blank(asked),
        target=target,
        was_cut=len(ids) > room,
    )


def _answered(path: Path, asked: Asked) -> Iterator[_Pair]:
    """Yield Chinese questions to be answered from a context, as CMRC 2018 has them."""
    special = asked.tokenizer.special
    for context, question, answers in _questions(path):
        if not answers and asked.split != TEST:
            raise _unanswered(question, "an answer is what is learnt and compared")
        ids = asked.ids(context.text("context").rstrip())
        before = asked.ids(f"问题：{question.text('question').strip()}答案：")
        room = _room(asked, len(before) + 2, item=question)
        for answer in answers or (None,):
            yield _Pair(
                item=question,
                idx=question.fields.get("id", question.text("question")),
                context=[special["cls"], *before, special["mask"], *ids[:room]],
                mask=special["mask"],
                target=None if answer is None else answer.strip(),
                was_cut=len(ids) > room,
            )


def _questions(path: Path) -> Iterator[tuple[Item, Item, list[str]]]:
    """Yield paragraph, question and answers, each once, of a file as SQuAD's."""
    for article in read_document(path).parts("data"):
        for paragraph in article.parts("paragraphs"):
            for question in paragraph.parts("qas"):
                answers = question.parts("answers") if question.has("answers") else []
                yield paragraph, question, list(dict.fromkeys(a.text("text") for a in answers))


def _unanswered(question: Item, reason: str) -> UserError:
    """Return what is told of a question without an answer."""
    name = question.fields.get("id", question.fields.get("question"))
    return question.wrong(
        f"the question {reprlib.repr(name)} has no answers, and {reason}. Give it one, or leave it "
        "out, as the questions of SQuAD 2.0 that are marked is_impossible."
    )


def _blank(asked: Asked) -> int:
    return asked.tokenizer.special[asked.blank("smask")]


def _room(asked: Asked, taken: int, *, item: Item | None = None) -> int:
    """Return the tokens that a source has beside what is always there."""
    room = asked.source_length - taken
    if room < 1:
        what = f"--source-length {asked.source_length} leaves no token to the source"
        raise item.wrong(f"{what}.") if item else UserError(f"{what}: make it longer.")
    return room


def _first(ids: Sequence[int], part: Sequence[int]) -> int:
    """Return where a part first stands among ids; 0 where it does not."""
    size = len(part)
    places = (at for at in range(len(ids) - size + 1) if ids[at : at + size] == part)
    return next(places, 0)


def _replacing(pairs: dict[str, str]) -> Callable[[str], str]:
    """Return what cleans a text and replaces strings, one after another."""

    def clean(text: str) -> str:
        text = plain(text)
        for old, new in pairs.items():
            text = text.replace(old, new)
        return text

    return clean


def _measure(questions: Sequence[Question], predictions: Sequence[Prediction]) -> dict[str, float]:
    references = [str((question.facts or {})["reference"]) for question in questions]
    return rouge(references, [str(text) for text in predictions])


def _hand_in(
    questions: Sequence[Question], predictions: Sequence[Prediction]
) -> list[dict[str, Any]]:
    return [
        {"idx": question.idx, "prediction": text, **(question.facts or {})}
        for question, text in zip(questions, predictions, strict=True)
    ]


def _task(
    name: str, pairs: Pairs, lengths: tuple[int, int], *, suffix: str = "jsonl", marks: bool = False
) -> Task:
    names = SPLITS if suffix == "jsonl" else ("train", "dev", "test")
    return Task(
        name=name,
        ask=_asking(pairs, knows_marks=marks),
        measure=_measure,
        hand_in=_hand_in,
        defaults=Defaults(
            source_length=lengths[0],
            target_length=lengths[1],
            takes=("source_length", "target_length", "cut_targets", "hide_padding"),
        ),
        files=dict(zip(SPLITS, (f"{stem}.{suffix}" for stem in names), strict=True)),
        other_files={split: f"{split}{_SOURCES}" for split in SPLITS if suffix == "jsonl"},
        is_written=True,
    )


_gigaword = _replacing(_GIGAWORD)
_cnn_source = _replacing({"<S_SEP>": ""} | _CNN_DM)
_cnn_target = _replacing({"<S_SEP>": "[SEP]"} | _CNN_DM)

SEQUENCES = (
    _task("gigaword", _summaries(_gigaword, _gigaword, knows_marks=True), (192, 32), marks=True),
    _task("cnn_dm", _summaries(_cnn_source, _cnn_target, knows_marks=True), (608, 160), marks=True),
    _task("cnn_dm_original", _summaries(), (608, 160)),
    _task("xsum", _summaries(), (608, 60)),
    _task("squad_generation", _asked_for, (464, 48), suffix="json"),
    _task("cmrc", _answered, (464, 48), suffix="json"),
    _task("customization", _plain_pairs, (512, 128)),
    _task("seq2seq", _plain_pairs, (512, 128)),
)
