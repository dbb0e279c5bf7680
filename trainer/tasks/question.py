"""A question to a model, whichever task it is of, as the evaluation and fine-tuning see it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trainer.tasks.rows import Row

Prediction = int | str
"""The number of a choice or word, 1 or 0 for an answer that is the most probable or not, or the
text that was written."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Question:
    """A question and how it is answered.

    `rows` and `words` say of which kind it is:

        a row per choice                     the most probable row is the answer
        one row, the ids of words in `words` the most probable word after the row is the answer
        one row, no words                    all targets must be the most probable ones; or, where
                                             the task's answers are written, a decoder writes on
    """

    guid: str
    """Unique in its file, such as dev-3."""
    idx: Any
    """What the file calls it, for predictions."""
    rows: Sequence[Row] = ()
    """They may be made when they are asked for (`rows.LazyRows`)."""
    words: tuple[int, ...] = ()
    """The ids of the verbalizers, by label."""
    label: int | None = None
    """The number of the right choice or word; None: not known, or there are none."""
    num_shortened: int = 0
    """Of its rows, those that were too long, with text cut away that its pattern lets go."""
    facts: Mapping[str, Any] | None = None
    """What its task needs for metrics and predictions: a question's number, answers."""


def rows_of(questions: Sequence[Question]) -> list[Row]:
    """Return the rows of all questions in their order."""
    return [row for question in questions for row in question.rows]
