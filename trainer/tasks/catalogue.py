"""The tasks that are known by name, and those that a file describes.

Sequence to sequence is one of them: a source is given, and its target is written into a blank
behind it.

    [CLS] source [sMASK] eos …padding  |  sop target eop

Files are JSON lines {"source": …, "target": …}, or two files of lines, NAME.source and NAME.target.
As in THUDM/GLM (commit 4f61ed7, tasks/seq2seq/dataset), a source that is too long loses its
beginning, and a source is padded, which the model sees, unless --hide-padding.
"""

from functools import partial
from pathlib import Path

import numpy as np

from shards.errors import UserError
from shards.spelling import expected
from trainer.json_file import is_file
from trainer.tasks.description import read_description
from trainer.tasks.items import Item
from trainer.tasks.rows import blank_row
from trainer.tasks.superglue import READERS
from trainer.tasks.task import TARGET_LENGTH, EncodeContext, MadeRow, Task, TaskReader

_SOURCE_LENGTH = 512
_FRAME = 3
"""Tokens of Part A beside the source."""


def _row(item: Item, target: str, context: EncodeContext) -> MadeRow:
    """Return the row of a source, with its target where that is learnt."""
    special, asking = context.tokenizer.special, context.options
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


SEQUENCES = TaskReader(
    row=_row, takes=("source_length", "target_length", "cut_targets", "hide_padding")
)


_DESCRIPTIONS = {path.stem: path for path in (Path(__file__).parent / "descriptions").iterdir()}
_READERS = {**READERS, "seq2seq": SEQUENCES, "customization": SEQUENCES}
TASKS = tuple(sorted(_DESCRIPTIONS))
"""The names that are known. The reference calls seq2seq customization."""


def find_task(name: str) -> Task:
    """Return a task.

    Args:
        name: one of TASKS, or the path of a JSON file that describes one.

    Raises:
        UserError: there is none, or the file does not describe one.
    """
    path = _DESCRIPTIONS.get(name, Path(name))
    if not is_file(path):
        raise UserError(
            f"--task {name}: there is no such task, and no such file: {expected(name, TASKS)}, or "
            "FILE.json of one's own."
        )
    reader = _READERS.get(name, TaskReader())
    return Task(name=path.stem, said=read_description(path), reader=reader)
