"""ReCoRD: which of a passage's entities fills the gap of a query."""

import random
import re
import string
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from trainer.tasks.cloze import MASK, Pattern, cut
from trainer.tasks.draft import Draft, questions_of
from trainer.tasks.items import Item, read_items
from trainer.tasks.question import Question
from trainer.tasks.superglue.wording import plain
from trainer.tasks.task import TEST, Asked, Defaults, Prediction, Task

_GAP = "@placeholder"
_MOST = 9
"""Wrong entities of a question in training."""


def _ask(path: Path, asked: Asked) -> list[Question]:
    return questions_of(_drafts(path, asked), asked)


def _drafts(path: Path, asked: Asked) -> Iterator[Draft]:
    draw = random.Random(42)  # the reference's seed; which entities it draws differs by run
    for item in read_items(path):
        text = plain(item.text("passage", "text"))
        names = sorted({_entity(part, text) for part in item.parts("passage", "entities")})
        passage = text.replace("@highlight\n", "- ")
        for query in item.parts("qas"):
            for name, choices, label in _choices(query, names, asked, draw):
                yield _draft(query, passage, choices, label, name=f"p{item.value('idx')}-{name}")


def _choices(
    query: Item, names: Sequence[str], asked: Asked, draw: random.Random
) -> Iterator[tuple[str, list[str], int | None]]:
    """Yield the name of a question, its choices and the right one.

    In training a question for each right answer, against at most nine wrong ones; else one, with
    all entities, in which any of several may be right.
    """
    answers, number = _answers(query, is_needed=asked.split != TEST), query.value("idx")
    if not asked.is_train:
        first = next((at for at, name in enumerate(names) if name in answers), None)
        yield f"q{number}", list(names), first
        return
    wrong = [name for name in names if name not in answers]
    for at, answer in enumerate(answers):
        drawn = draw.sample(wrong, _MOST) if len(wrong) > _MOST else wrong
        yield f"q{number}-a{at}", [answer, *drawn], 0


def _answers(query: Item, *, is_needed: bool) -> list[str]:
    if not is_needed and not query.has("answers"):
        return []
    answers = list(dict.fromkeys(plain(part.text("text")) for part in query.parts("answers")))
    if is_needed and not answers:
        raise query.wrong("a query has no answers, and they are needed.")
    return answers


def _draft(
    query: Item, passage: str, choices: Sequence[str], label: int | None, *, name: str
) -> Draft:
    text = plain(query.text("query"))
    if text.count(_GAP) != 1:
        raise query.wrong(f"the query {text[:60]!r} should have {_GAP} once.")
    if not choices:
        raise query.wrong("the passage has no entities to choose from.")
    before, after = text.split(_GAP)
    return Draft(
        item=query,
        name=name,
        idx=query.value("idx"),
        label=label,
        patterns=(Pattern((cut(passage), f" {before.rstrip()}", MASK, after)),),
        answers=tuple(f" {choice}" for choice in choices),
        pairs=tuple((passage, f"{text} {choice}") for choice in choices),
        facts={"choices": tuple(choices), "answers": _answers(query, is_needed=False)},
    )


def _entity(part: Item, text: str) -> str:
    first, last = part.number("start"), part.number("end")
    if not 0 <= first <= last < len(text):
        raise part.wrong(
            f"an entity reaches from character {first} to {last}, and the passage has {len(text)}."
        )
    return text[first : last + 1]


def _measure(questions: Sequence[Question], predictions: Sequence[Prediction]) -> dict[str, float]:
    """Return exact match and F1 in per cent, each against the best of a question's answers."""
    matches, overlaps = [], []
    for question, given in zip(questions, predictions, strict=True):
        facts = question.facts or {}
        said = _words(_chosen(question, given))
        answers = [_words(answer) for answer in facts["answers"]]
        matches.append(said in answers)
        overlaps.append(max((_overlap(said, answer) for answer in answers), default=0.0))
    return {
        "em": 100 * sum(matches) / len(questions),
        "f1": 100 * sum(overlaps) / len(questions),
    }


def _chosen(question: Question, given: Prediction) -> str:
    """Return the entity that a prediction stands for."""
    choices: tuple[str, ...] = (question.facts or {})["choices"]
    # Of a row alone it says whether the entity is the most probable text, not which one it is.
    return choices[int(given) if len(choices) > 1 else 0]


def _words(answer: str) -> list[str]:
    """Return an answer's words without case, punctuation and articles, as the task does."""
    kept = "".join(sign for sign in answer.lower() if sign not in string.punctuation)
    return re.sub(r"\b(a|an|the)\b", " ", kept).split()


def _overlap(one: list[str], two: list[str]) -> float:
    both = sum((Counter(one) & Counter(two)).values())
    return 2 * both / (len(one) + len(two)) if both else 0.0


def _hand_in(
    questions: Sequence[Question], predictions: Sequence[Prediction]
) -> list[dict[str, Any]]:
    return [
        {"idx": question.idx, "label": _chosen(question, given)}
        for question, given in zip(questions, predictions, strict=True)
    ]


RECORD = Task(
    name="record",
    ask=_ask,
    measure=_measure,
    hand_in=_hand_in,
    defaults=Defaults(length=512),
)
