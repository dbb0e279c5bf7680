"""Sequence to sequence: a source is given, and its target is written into a blank behind it.

    [CLS] source [sMASK] eos …padding  |  sop target eop

Files are JSON lines {"source": …, "target": …}, or two files of lines, NAME.source and NAME.target.
As in THUDM/GLM (commit 4f61ed7, tasks/seq2seq/dataset), a source that is too long loses its
beginning, and a source is padded, which the model sees, unless --hide-padding.
"""

from functools import partial

import numpy as np

from shards.errors import UserError
from trainer.tasks.items import Item
from trainer.tasks.rows import blank_row
from trainer.tasks.task import TARGET_LENGTH, MadeRow, Reader, TaskContext

_SOURCE_LENGTH = 512
_FRAME = 3
"""Tokens of Part A beside the source."""


def _row(item: Item, target: str, context: TaskContext) -> MadeRow:
    """Return the row of a source, with its target where that is learnt."""
    special, asking = context.tokenizer.special, context.asking
    size = asking.source_length or _SOURCE_LENGTH
    most = asking.target_length or TARGET_LENGTH
    if size <= _FRAME:
        raise UserError(f"--source-length {size} leaves no token to the source: make it longer.")
    answer = [*context.ids(f" {target}"), special["eop"]] if target else []
    if len(answer) > most and not asking.cut_targets:
        raise item.wrong(
            f"the target has {len(answer):,} tokens, its end among them, and --target-length is "
            f"{most:,}. Make that longer, or let long targets be cut with --cut-targets."
        )
    ids = context.ids(item.text("source").strip())
    source = ids[_FRAME - size :]
    made = partial(
        blank_row,
        np.array(
            [special["cls"], *source, special[context.blank("smask")], special["eos"]], np.int32
        ),
        mask_at=1 + len(source),
        sop=special["sop"],
        answer=np.array(answer[:most], np.int32),
        padding=(special["pad"], 0 if asking.hide_padding else size - _FRAME - len(source)),
    )
    return made, len(source) < len(ids)


SEQUENCES = Reader(
    row=_row, takes=("source_length", "target_length", "cut_targets", "hide_padding")
)
