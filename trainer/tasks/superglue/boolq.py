"""BoolQ: a yes or no question about a passage."""

from collections.abc import Iterator
from pathlib import Path

from trainer.tasks.cloze import MASK, Pattern, cut
from trainer.tasks.counting import accuracy, labelled
from trainer.tasks.draft import Draft, questions_of
from trainer.tasks.items import read_items
from trainer.tasks.question import Question
from trainer.tasks.superglue.wording import plain
from trainer.tasks.task import TEST, Asked, Defaults, Task

_LABELS = ("false", "true")
_WORDS = ((" No", " Yes"), (" false", " true"))
"""Of patterns with an even and an odd number."""


def _ask(path: Path, asked: Asked) -> list[Question]:
    return questions_of(_drafts(path, asked), asked)


def _drafts(path: Path, asked: Asked) -> Iterator[Draft]:
    for item in read_items(path):
        passage, question = plain(item.text("passage")), plain(item.text("question"))
        yield Draft(
            item=item,
            name=item.value("idx"),
            idx=item.value("idx"),
            label=item.label(_LABELS, is_needed=asked.split != TEST),
            patterns=(_pattern(passage, question, asked.pattern),),
            answers=_WORDS[asked.pattern % 2],
            are_words=True,
            pairs=((passage, question),),
        )


def _pattern(passage: str, question: str, pattern: int) -> Pattern:
    asking = cut(f" {question}")
    match pattern // 2:
        case 0:
            return Pattern((cut(passage), " Question:", asking, "? Answer:", MASK, "."))
        case 1:
            based = " Based on the previous passage,"
            return Pattern((cut(passage), based, asking, "?", MASK, "."))
        case _:
            based = "Based on the following passage"
            return Pattern((based, asking, "?", MASK, ".", cut(f" {passage}")))


BOOLQ = Task(
    name="boolq",
    ask=_ask,
    measure=accuracy,
    hand_in=labelled(_LABELS),
    defaults=Defaults(pattern=4, num_patterns=6),
)
