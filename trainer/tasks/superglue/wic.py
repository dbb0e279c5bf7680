"""WiC: whether a word means the same in two sentences."""

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
_LIST = 2
"""The pattern that lists senses, answered with their signs."""


def _ask(path: Path, asked: Asked) -> list[Question]:
    return questions_of(_drafts(path, asked), asked)


def _drafts(path: Path, asked: Asked) -> Iterator[Draft]:
    for item in read_items(path):
        word = item.text("word")
        one, two = plain(item.text("sentence1")), plain(item.text("sentence2"))
        yield Draft(
            item=item,
            name=item.value("idx"),
            idx=item.value("idx"),
            label=item.label(_LABELS, is_needed=asked.split != TEST),
            patterns=(_pattern(word, one, two, asked.pattern),),
            answers=("2", "b") if asked.pattern == _LIST else (" No", " Yes"),
            are_words=True,
            pairs=((f"{word}: {one}", two),),
        )


def _pattern(word: str, one: str, two: str, pattern: int) -> Pattern:
    match pattern:
        case 0:
            return Pattern((cut(f'"{one}" / "{two}"'), f' Similar sense of "{word}"?', MASK, "."))
        case 1:
            asking = f" Does {word} have the same meaning in both sentences?"
            return Pattern((cut(one), cut(f" {two}"), asking, MASK))
        case _:
            return Pattern(
                (word, " .", ' Sense (1) (a) "', cut(one), '"', " (", MASK, ') "', two, '"')
            )


WIC = Task(
    name="wic",
    ask=_ask,
    measure=accuracy,
    hand_in=labelled(_LABELS),
    defaults=Defaults(pattern=1, num_patterns=3),
)
