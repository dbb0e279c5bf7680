"""Sequence to sequence: a source is given, and its target is written into a blank behind it.

    [CLS] source [sMASK] eos …padding  |  sop target eop

Files are JSON lines {"source": …, "target": …}, or two files of lines, NAME.source and NAME.target.
As in THUDM/GLM (commit 4f61ed7, tasks/seq2seq/dataset), a source that is too long loses its
beginning, and a source is padded, which the model sees, unless --hide-padding.
"""

from pathlib import Path

import numpy as np

from shards.errors import UserError
from trainer.tasks.figures import rouge_of, written
from trainer.tasks.items import Item, names_of, read_items
from trainer.tasks.question import Question
from trainer.tasks.rows import Blank, BlankRows
from trainer.tasks.task import Task, TaskContext

_FRAME = 3
"""Tokens of Part A beside the source."""


def _ask(path: Path, context: TaskContext) -> list[Question]:
    options = context.options
    if context.is_causal:
        raise UserError(
            "this task fills blanks, and the model reads from left to right: take the task "
            "prompted, whose files are JSON lines of prompt and answer."
        )
    if options.source_length <= _FRAME:
        raise UserError(
            f"--source-length {options.source_length} leaves no token to the source: make it "
            "longer."
        )
    items = read_items(path)
    answers = [_answer(item, context) for item in items]
    long = [at for at, answer in enumerate(answers) if len(answer) > options.target_length]
    if long and not options.cut_targets:
        raise items[long[0]].wrong(
            f"this target is longer than --target-length {options.target_length} tokens, its end "
            f"among them, and so are {len(long) - 1:,} more of {len(items):,}. Make that longer, "
            "or let them be cut with --cut-targets."
        )
    blanks = [_blank(*pair, context) for pair in zip(items, answers, strict=True)]
    return [
        Question(
            guid=context.guid(number),
            idx=name,
            rows=BlankRows([blank]),
            num_shortened=int(was_cut),
            facts={"reference": _target(item, context)},
        )
        for number, (item, name, (blank, was_cut)) in enumerate(
            zip(items, names_of(items), blanks, strict=True)
        )
    ]


def _blank(item: Item, answer: list[int], context: TaskContext) -> tuple[Blank, bool]:
    """Return what a row is made of, and whether its source was cut."""
    special, size = context.tokenizer.special, context.options.source_length
    ids = context.ids(item.text("source").strip())
    source = ids[_FRAME - size :]
    mask = special[context.blank("smask")]
    blank = Blank(
        context=np.array([special["cls"], *source, mask, special["eos"]], np.int32),
        mask_at=1 + len(source),
        sop=special["sop"],
        answer=np.array(answer[: context.options.target_length], np.int32),
        padding=0 if context.options.hide_padding else size - _FRAME - len(source),
        pad=special["pad"],
    )
    return blank, len(source) < len(ids)


def _target(item: Item, context: TaskContext) -> str | None:
    if context.is_test and not item.has("target"):
        return None
    return item.text("target").strip()


def _answer(item: Item, context: TaskContext) -> list[int]:
    """Return what is learnt, with the token that ends it; nothing where nothing is."""
    if not context.is_train:
        return []
    ids = context.ids(f" {_target(item, context)}")
    if not ids:
        raise item.wrong("the target is empty: there is nothing to learn.")
    return [*ids, context.tokenizer.special["eop"]]


SEQ2SEQ = Task(
    name="seq2seq",
    ask=_ask,
    measure=rouge_of,
    hand_in=written,
    takes=("source_length", "target_length", "cut_targets", "hide_padding"),
    is_written=True,
)
