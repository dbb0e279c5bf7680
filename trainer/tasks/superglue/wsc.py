"""WSC: whether a pronoun stands for a name.

Without other candidates, the model is taught to write the right name, and an item is called true
where the name is what it would write. With them (`--candidates`), where the name is the best.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from trainer.tasks.cloze import MASK, Pattern, cut
from trainer.tasks.counting import per_cent
from trainer.tasks.draft import Draft, questions_of
from trainer.tasks.items import Item, read_items
from trainer.tasks.question import Question
from trainer.tasks.superglue.wording import plain
from trainer.tasks.task import CLASSIFIER, TEST, Asked, Defaults, Prediction, Task

_LABELS = ("False", "True")
_MOST = 9
"""Candidates of an item in training; more are asked about in turn."""


def _ask(path: Path, asked: Asked) -> list[Question]:
    return questions_of(_drafts(path, asked), asked)


def _drafts(path: Path, asked: Asked) -> Iterator[Draft]:
    for item in read_items(path):
        label = item.label(_LABELS, is_needed=asked.split != TEST)
        is_cloze = asked.form != CLASSIFIER
        if is_cloze and asked.is_train and not label:
            continue  # a wrong name teaches nothing: the right one is not told
        for number, others in enumerate(_candidates(item, asked) if is_cloze else [[]]):
            yield _draft(item, asked, label, others, number)


def _draft(
    item: Item, asked: Asked, label: int | None, others: Sequence[str], number: int
) -> Draft:
    name = item.text("target", "span1_text")
    text = _marked(item)
    right = (0 if label else None) if others else label
    return Draft(
        item=item,
        name=f"{item.value('idx')}-{number}" if number else item.value("idx"),
        idx=item.value("idx"),
        label=right,
        patterns=(_pattern(text, item.text("target", "span2_text"), asked.pattern),),
        answers=tuple(f" {answer}" for answer in (name, *others))
        if asked.form != CLASSIFIER
        else _LABELS,
        pairs=((text, name),),
        facts={"is_true": label, "has_candidates": bool(others)},
    )


def _pattern(text: str, pronoun: str, pattern: int) -> Pattern:
    quoted = f"'*{pronoun}*'"
    match pattern:
        case 0:
            return Pattern((cut(text), f" The pronoun {quoted} refers to", MASK, "."))
        case 1:
            said = f" In the previous sentence, the pronoun {quoted} refers to"
            return Pattern((cut(text), said, MASK, "."))
        case _:
            asking = f" Question: In the passage above, what does the pronoun {quoted} refer to?"
            return Pattern((cut(text), asking, " Answer:", MASK, "."))


def _candidates(item: Item, asked: Asked) -> list[list[str]]:
    """Return the groups of other names that an item is asked about with, each name once."""
    if not asked.candidates:
        return [[]]
    given = dict.fromkeys(part.text("text") for part in item.parts("candidates"))
    # The name itself would compete with itself.
    names = [name for name in given if name != item.text("target", "span1_text")]
    if not names:
        raise item.wrong("there are no other candidates, and --candidates was given.")
    if not asked.is_train or len(names) <= _MOST:
        return [names]
    # The last group is filled up from the first names.
    groups = [names[first : first + _MOST] for first in range(0, len(names), _MOST)]
    return [group + names[: _MOST - len(group)] for group in groups]


def _marked(item: Item) -> str:
    """Return the text with its pronoun between asterisks, words joined by single spaces.

    Indexes that are off by one are mended, and punctuation stuck to the pronoun is split off, as
    some items of the data need it.
    """
    words, pronoun = plain(item.text("text")).split(), item.text("target", "span2_text")
    place = item.number("target", "span2_index")
    near = [at for at in (place, place - 1, place + 1) if 0 <= at < len(words)]
    found = [at for at in near if words[at] == pronoun]
    if not found and place in near and pronoun and words[place].startswith(pronoun):
        words[place : place + 1] = [pronoun, words[place][len(pronoun) :]]
        found = [place]
    if not found:
        there = repr(words[place]) if place in near else f"nothing of its {len(words)} words"
        raise item.wrong(
            f"the pronoun {pronoun!r} should be word {place} of the text (from 0 on), and there "
            f"is {there}. Correct target.span2_index or target.span2_text."
        )
    words[found[0]] = f"*{pronoun}*"
    return " ".join(words)


def _says(question: Question, given: Prediction) -> int:
    """Return 1 where a prediction calls an item true."""
    has_candidates = question.facts is not None and question.facts["has_candidates"]
    return int(given == 0) if has_candidates else int(given)


def _measure(questions: Sequence[Question], predictions: Sequence[Prediction]) -> dict[str, float]:
    facts = [question.facts or {} for question in questions]
    said = [_says(*pair) for pair in zip(questions, predictions, strict=True)]
    if unknown := [
        q.guid for q, one in zip(questions, facts, strict=True) if one["is_true"] is None
    ]:
        raise ValueError(f"the answer to {unknown[0]} is not known")
    hits = [one["is_true"] == given for one, given in zip(facts, said, strict=True)]
    return {"accuracy": per_cent(hits)}


def _hand_in(
    questions: Sequence[Question], predictions: Sequence[Prediction]
) -> list[dict[str, Any]]:
    return [
        {"idx": question.idx, "label": _LABELS[_says(question, given)]}
        for question, given in zip(questions, predictions, strict=True)
    ]


WSC = Task(
    name="wsc",
    ask=_ask,
    measure=_measure,
    hand_in=_hand_in,
    defaults=Defaults(
        pattern=2, num_patterns=3, length=128, takes=("form", "length", "pattern", "candidates")
    ),
)
