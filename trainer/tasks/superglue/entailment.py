"""RTE and CB: whether a hypothesis follows from a premise."""

from collections.abc import Callable, Iterator
from pathlib import Path

from trainer.tasks.cloze import MASK, Pattern, cut
from trainer.tasks.counting import accuracy, accuracy_and_macro_f1, labelled
from trainer.tasks.draft import Draft, questions_of
from trainer.tasks.items import read_items
from trainer.tasks.question import Question
from trainer.tasks.superglue.wording import open_ended, plain
from trainer.tasks.task import TEST, Asked, Defaults, Task

_LAST = 4
"""The pattern that RTE and CB have each its own of."""
_RTE = ("entailment", "not_entailment")
_CB = ("entailment", "contradiction", "neutral")
_RTE_WORDS, _RTE_LAST = (" Yes", " No"), (" true", " false")
_CB_WORDS, _CB_LAST = (" Yes", " No", " Maybe"), (" true", " false", " neither")

Fill = Callable[[str, str, int], Pattern]


def _asking(
    labels: tuple[str, ...], words: tuple[str, ...], last: tuple[str, ...], fill: Fill
) -> Callable[[Path, Asked], list[Question]]:
    def drafts(path: Path, asked: Asked) -> Iterator[Draft]:
        for item in read_items(path):
            premise, hypothesis = plain(item.text("premise")), plain(item.text("hypothesis"))
            yield Draft(
                item=item,
                name=item.value("idx"),
                idx=item.value("idx"),
                label=item.label(labels, is_needed=asked.split != TEST),
                patterns=(fill(premise, hypothesis, asked.pattern),),
                answers=last if asked.pattern == _LAST else words,
                are_words=True,
                pairs=((premise, hypothesis),),
            )

    return lambda path, asked: questions_of(drafts(path, asked), asked)


def _rte(premise: str, hypothesis: str, pattern: int) -> Pattern:
    if pattern < _LAST:
        return _shared(premise, hypothesis, pattern)
    asking = cut(f" {open_ended(hypothesis)}")
    return Pattern((cut(premise), " question:", asking, " True or False?", " answer:", MASK))


def _cb(premise: str, hypothesis: str, pattern: int) -> Pattern:
    if pattern < _LAST:
        return _shared(premise, hypothesis, pattern)
    asking = cut(f" {hypothesis}")
    offered = " true, false or neither?"
    return Pattern((cut(premise), " question:", asking, offered, " answer:", MASK))


def _shared(premise: str, hypothesis: str, pattern: int) -> Pattern:
    asking = cut(open_ended(hypothesis))
    match pattern:
        case 0:
            return Pattern(('"', asking, '" ?'), (MASK, ",", ' "', cut(premise), '"'))
        case 1:
            return Pattern((asking, "?"), (MASK, ",", cut(f" {premise}")))
        case 2:
            return Pattern(('"', asking, '" ?'), (MASK, '. "', cut(premise), '"'))
        case _:
            return Pattern((asking, "?"), (MASK, ".", cut(f" {premise}")))


RTE = Task(
    name="rte",
    ask=_asking(_RTE, _RTE_WORDS, _RTE_LAST, _rte),
    measure=accuracy,
    hand_in=labelled(_RTE),
    defaults=Defaults(pattern=0, num_patterns=5),
)
CB = Task(
    name="cb",
    ask=_asking(_CB, _CB_WORDS, _CB_LAST, _cb),
    measure=accuracy_and_macro_f1,
    hand_in=labelled(_CB),
    defaults=Defaults(pattern=3, num_patterns=5),
)
