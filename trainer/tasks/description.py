"""Reads the JSON file that describes a task, built in or custom (docs/finetuning.md).

{"pattern": "{text:cut} It was [MASK].", "verbalizer": {"bad": " awful", "good": " great"}}
{"pattern": "{start:cut} [MASK]", "choices": ["{end1}", "{end2}"]}
{"pattern": "{question}", "answer": "{reply}"}
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from shards.errors import UserError
from shards.records import from_json
from trainer.json_file import read_object
from trainer.tasks.metrics import CHOICE_METRICS, TEXT_METRICS
from trainer.tasks.template import masks_of

CLOZE, SPELLED = FORMS = ("cloze", "spelled")


@dataclass(frozen=True, kw_only=True)
class Pattern:
    """One of the patterns of a task."""

    text: str
    """A template with a blank."""
    verbalizer: Mapping[str, str] = field(default_factory=dict)
    """Words that replace the task's words."""
    filler: str | None = None
    """A template of the text that fills the blank, for patterns with {choice}."""


@dataclass(frozen=True, kw_only=True)
class Description:
    """The description of a task."""

    pattern: tuple[Pattern, ...]
    """The patterns, numbered from 0."""
    metric: tuple[str, ...]
    """Names in CHOICE_METRICS, or in TEXT_METRICS if there is an `answer`; the first metric picks
    the best epoch."""
    default: int = 0
    """The number of the pattern that is used if --pattern is not given."""
    verbalizer: Mapping[str, str] = field(default_factory=dict)
    """A word for each label, in the order of the classes."""
    choices: tuple[str, ...] = ()
    """A template for each choice."""
    choices_field: str | None = None
    """The field with the list of choices, if the number of choices differs by item."""
    answer: str | None = None
    """A template of the text to generate."""
    label: str = "label"
    """The field with the label, or with the number of the right choice, from 0."""
    name: str | None = None
    """The field with the name of an item, which is also the first field of the item's prediction;
    None for idx or id, if the item has one."""
    form: str = CLOZE
    length: int = 256

    def words(self, pattern: Pattern) -> tuple[str, ...]:
        """Return the word of a pattern for each label; none if choices fill its blank."""
        words = pattern.verbalizer or self.verbalizer
        return tuple(words[label] for label in self.verbalizer)


def read_description(path: Path) -> Description:
    """Return the description in a file.

    Raises:
        UserError: the file cannot be read, or does not describe a task.
    """
    content = read_object(path)
    patterns = content.get("pattern")
    if isinstance(patterns, str | list):
        several = [patterns] if isinstance(patterns, str) else patterns
        content["pattern"] = [{"text": one} if isinstance(one, str) else one for one in several]
    known = TEXT_METRICS if content.get("answer") else CHOICE_METRICS
    metric = content.get("metric", known[0])
    if isinstance(metric, str):
        content["metric"] = [metric, *(name for name in known if name != metric)]
    try:
        description = from_json(Description, content, where="the task")
        fault = next(_faults(description), None)
    except ValueError as error:
        fault = str(error)
    if fault:
        raise UserError(
            f"{path} does not describe a task: {fault}. Expected a pattern, and one of verbalizer, "
            "choices, choices_field and answer (docs/finetuning.md)."
        )
    return description


def _faults(description: Description) -> Iterator[str]:
    """Yield the faults of a description.

    Raises:
        ValueError: a template is not valid.
    """
    kinds = [
        description.verbalizer,
        description.choices,
        description.choices_field,
        description.answer,
    ]
    if sum(map(bool, kinds)) != 1:
        yield "it has not one of verbalizer, choices, choices_field and answer"
    if not description.pattern:
        yield "there is no pattern"
    fillers = (pattern.filler or "" for pattern in description.pattern)
    if any(map(masks_of, (*description.choices, description.answer or "", *fillers))):
        yield "an answer has a blank"
    for name, given, known in (
        *(
            ("metric", one, TEXT_METRICS if description.answer else CHOICE_METRICS)
            for one in description.metric
        ),
        ("form", description.form, FORMS),
        ("default", description.default, range(len(description.pattern))),
    ):
        if given not in known:
            yield f"{name} is {given!r}, not one of {', '.join(map(str, known))}"
    for pattern in description.pattern:
        yield from _pattern_faults(pattern, description)


def _pattern_faults(pattern: Pattern, description: Description) -> Iterator[str]:
    blanks = len(masks_of(pattern.text))
    if blanks > 1 or not (blanks or description.answer):
        yield f"the pattern {pattern.text!r} has {blanks} blanks, not one [MASK]"
    if pattern.verbalizer and pattern.verbalizer.keys() != description.verbalizer.keys():
        yield f"the words of {pattern.text!r} are not for the labels of verbalizer"
    answers = description.words(pattern) or description.choices
    if len(answers) == 1:
        yield "there is only one answer to choose from"
    for answer in answers:
        if answers.count(answer) > 1:
            yield f"{answer!r} is there for more than one answer"
