"""Tasks whose answers are generated: the model continues a prompt or fills its blank.

One such task is sequence to sequence: the model generates a target in a blank after a source.

    [CLS] source [sMASK] eos …padding  |  sop target eop

Files are JSON lines {"source": …, "target": …}, or two files of lines, NAME.source and NAME.target.
As in THUDM/GLM (commit 4f61ed7, tasks/seq2seq/dataset), a source that is too long loses its
beginning, and the model sees the padding after a source, unless --hide-padding is given.
"""

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from shards.errors import UserError
from trainer.tasks.items import Item
from trainer.tasks.metrics import Metrics, text_metrics
from trainer.tasks.rows import Answer, Example, Row
from trainer.tasks.task import EncodeContext, Lines, Task, with_rows
from trainer.tasks.template import TemplatePart, parse, strings_of, text_of

TARGET_LENGTH = 128
"""The maximum number of tokens of a generated text, if --target-length is not given."""
_SOURCE_LENGTH = 512
_FRAME = 3
"""The number of tokens of Part A other than the source."""
_PUBLISHED = (
    (("instruction", "input"), "output"),
    (("instruction",), "output"),
    (("instruction", "context"), "response"),
    (("instruction",), "response"),
    (("content",), "summary"),
    (("document",), "summary"),
    (("text",), "summary"),
    (("article",), "highlights"),
    (("source",), "target"),
    (("prompt",), "completion"),
    (("prompt",), "response"),
    (("prompt",), "answer"),
    (("query",), "response"),
    (("question",), "answer"),
    (("input",), "output"),
)
"""Fields of prompts and of answers in published files; the first entry whose fields all exist is
used."""


@dataclass(frozen=True, kw_only=True, eq=False)
class TextTask(Task):
    """A task whose answers are generated."""

    USED_OPTIONS: ClassVar[tuple[str, ...]] = ("length", "pattern")
    IS_GENERATED = True

    def encode(self, item: Item, example: Example, context: EncodeContext) -> Example:
        """Return an example with the row of its prompt and, in training, its answer."""
        template = self.description.answer or ""
        fields = [part.field.split(".") for part in parse(template) if part.field]
        is_known = not context.is_test or all(item.has(*keys) for keys in fields)
        reference = text_of(template, item) if is_known else None
        if context.is_train and not (reference or "").strip():
            raise item.wrong("the answer is empty: there is nothing to learn.")
        learnt = reference if context.is_train and reference else ""
        row = self.row(item, learnt, context)
        return with_rows(replace(example, facts={"reference": reference}), [row])

    def row(self, item: Item, answer: str, context: EncodeContext) -> Row:
        """Return the row of a prompt with its answer, if there is one."""
        special, ids = context.tokenizer.special, context.ids(answer)
        strings = list(strings_of(context.pattern.text, item))
        if context.prompt_format.causal:
            prompt, was_cut = context.fit(strings, item, taken=len(ids))
            if not prompt:
                raise item.wrong("the prompt is empty, and a model that reads on needs one.")
            return Row(prompt, [*ids, special["eos"]] if ids else [], was_cut=was_cut)
        if not any(one.mask for one in strings):  # continue at the end, without white space
            *first, last = strings or [TemplatePart()]
            end = TemplatePart(mask=context.blank("gmask"))
            strings = [*first, replace(last, text=last.text.rstrip()), end]
        return context.blank_row(strings, [*ids, special["eop"]] if ids else [], item)

    def metrics(self, examples: Sequence[Example], answers: Sequence[Answer]) -> Metrics:
        """Return the metrics that the description names; see `Task.metrics`."""
        figures = text_metrics(examples, answers)
        return {name: figures[name] for name in self.description.metric}

    def prediction_lines(self, examples: Sequence[Example], answers: Sequence[Answer]) -> Lines:
        """Return answers in the format for submission, one JSON object per line."""
        pairs = zip(examples, answers, strict=True)
        return [{"idx": one.idx, "prediction": text, **(one.facts or {})} for one, text in pairs]

    def check_fields(self, items: Sequence[Item], context: EncodeContext) -> None:
        """Check that items have the fields of prompt and answer; an error suggests a task file.

        Raises:
            UserError: a field is missing.
        """
        answer = "" if context.is_test else self.description.answer or ""
        names = [part.field for text in (context.pattern.text, answer) for part in parse(text)]
        for item in items:
            lacking = [name for name in names if name.strip("|") and not item.has(*name.split("."))]
            suggested = _suggested_task(item.fields) if lacking else None
            if suggested:
                raise item.wrong(
                    f'the task {self.name} reads the field "{lacking[0]}", and there are '
                    f"{', '.join(map(str, item.fields))}. Write a task that reads these, for "
                    f"example a file task.json with {suggested}, and give it instead of "
                    f"{self.name}: --task task.json."
                )


def _suggested_task(fields: Collection[str]) -> str | None:
    """Return the JSON of a task file for items with these fields; None if no fields match."""
    for prompts, answer in _PUBLISHED:
        if {*prompts, answer} <= {*fields}:
            *first, last = prompts
            pattern = "\n".join([*(f"{{{name}}}" for name in first), f"{{{last}:cut}}"])
            return json.dumps({"pattern": pattern, "answer": f"{{{answer}}}", "length": 512})
    return None


@dataclass(frozen=True, kw_only=True, eq=False)
class SequenceTask(TextTask):
    """Sequence to sequence: a target is generated after a source."""

    USED_OPTIONS: ClassVar[tuple[str, ...]] = (
        "source_length",
        "target_length",
        "cut_targets",
        "hide_padding",
    )
    NEEDS_OWN_BLANK = False

    def row(self, item: Item, answer: str, context: EncodeContext) -> Row:
        """Return the row of a source with its target, if there is one."""
        special, options = context.tokenizer.special, context.options
        size = options.source_length or _SOURCE_LENGTH
        max_target = options.target_length or TARGET_LENGTH
        if size <= _FRAME:
            raise UserError(
                f"--source-length {size} leaves no token to the source: make it longer."
            )
        target = [*context.ids(f" {answer}"), special["eop"]] if answer else []
        if len(target) > max_target and not options.cut_targets:
            raise item.wrong(
                f"the target has {len(target):,} tokens, its end among them, and --target-length "
                f"is {max_target:,}. Make that longer, or cut long targets with --cut-targets."
            )
        ids = context.ids(item.text("source").strip())
        source = ids[_FRAME - size :]
        return Row(
            [special["cls"], *source, special[context.blank("smask")], special["eos"]],
            target[:max_target],
            mask_at=1 + len(source),
            sop=special["sop"],
            padding=(special["pad"], 0 if options.hide_padding else size - _FRAME - len(source)),
            was_cut=len(source) < len(ids),
        )
