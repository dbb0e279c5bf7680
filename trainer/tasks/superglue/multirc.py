"""MultiRC: which of some answers to a question about a passage are right; several may be."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from trainer.tasks.cloze import MASK, Pattern, cut
from trainer.tasks.counting import f1, labels_of, per_cent
from trainer.tasks.draft import Draft, questions_of
from trainer.tasks.items import Item, read_items
from trainer.tasks.question import Question
from trainer.tasks.superglue.wording import open_ended, plain
from trainer.tasks.task import TEST, Asked, Defaults, Prediction, Task

_LABELS = (0, 1)
_LISTED = 3
"""The pattern of a list with check boxes."""


def _ask(path: Path, asked: Asked) -> list[Question]:
    return questions_of(_drafts(path, asked), asked)


def _drafts(path: Path, asked: Asked) -> Iterator[Draft]:
    for item in read_items(path):
        passage = plain(item.text("passage", "text"))
        for asking in item.parts("passage", "questions"):
            question = plain(asking.text("question"))
            for answer in asking.parts("answers"):
                numbers = (item.name("idx"), asking.name("idx"), answer.name("idx"))
                yield _draft(answer, asked, (passage, question), numbers)


def _draft(
    item: Item, asked: Asked, texts: tuple[str, str], numbers: tuple[int | str, ...]
) -> Draft:
    passage, question = texts
    answer = plain(item.text("text"))
    names = dict(zip(("passage", "question", "answer"), numbers, strict=True))
    return Draft(
        item=item,
        name="p{}-q{}-a{}".format(*numbers),
        idx=list(numbers),
        label=item.label(_LABELS, is_needed=asked.split != TEST),
        patterns=(
            _pattern(
                open_ended(passage.rstrip()), open_ended(question.rstrip()), answer, asked.pattern
            ),
        ),
        answers=(" False", " True") if asked.pattern == _LISTED else (" No", " Yes"),
        are_words=True,
        pairs=((passage, f"{question} answer: {answer}"),),
        facts=names,
    )


def _pattern(passage: str, question: str, answer: str, pattern: int) -> Pattern:
    text, asking = cut(passage), f" {question}"
    match pattern:
        case 0:
            ending = ("?", MASK, ".")
            return Pattern((text, ".", " Question:", f"{asking}?", " Is it", f" {answer}", *ending))
        case 1:
            checked = (' Is the correct answer "', answer, '"?')
            return Pattern((text, ".", " Question:", asking, "?", *checked, MASK, "."))
        case 2:
            based = ". Based on the previous passage,"
            checked = (' Is "', answer, '" a correct answer?')
            return Pattern((text, based, asking, "?", *checked, MASK, "."))
        case 3:
            return Pattern((text, asking, "- [", MASK, "]", answer))
        case _:
            ending = ("?", MASK, ".")
            return Pattern((text, ".", " Question:", asking, "?", f" {answer}", *ending))


def _measure(questions: Sequence[Question], predictions: Sequence[Prediction]) -> dict[str, float]:
    labels = labels_of(questions)
    hits = [label == given for label, given in zip(labels, predictions, strict=True)]
    by_question: dict[Any, list[bool]] = defaultdict(list)
    for question, hit in zip(questions, hits, strict=True):
        # The reference groups by the question's number alone, which is unique over the passages.
        by_question[(question.facts or {})["question"]].append(hit)
    whole = [all(group) for group in by_question.values()]
    return {
        "f1a": f1(labels, predictions, of=1),
        "em": sum(whole) / len(whole),
        "acc": per_cent(hits),
    }


def _hand_in(
    questions: Sequence[Question], predictions: Sequence[Prediction]
) -> list[dict[str, Any]]:
    """Return a line for each passage, its questions and answers nested."""
    passages: dict[Any, dict[Any, list[dict[str, Any]]]] = defaultdict(lambda: defaultdict(list))
    for question, given in zip(questions, predictions, strict=True):
        passage, number, answer = question.idx
        passages[passage][number].append({"idx": answer, "label": _LABELS[int(given)]})
    return [
        {
            "idx": passage,
            "passage": {
                "questions": [
                    {"idx": number, "answers": answers} for number, answers in asked.items()
                ]
            },
        }
        for passage, asked in passages.items()
    ]


MULTIRC = Task(
    name="multirc",
    ask=_ask,
    measure=_measure,
    hand_in=_hand_in,
    defaults=Defaults(pattern=0, num_patterns=5, length=512),
)
