"""Runs tasks of lm-evaluation-harness (EleutherAI, 0.4.13), with items in local files, on a model.

    causal   text, then continuation                        the two encoded together
    glm      [CLS] text [gMASK] eos | sop continuation      encoded separately, without an end token

The harness's tasks define the texts and the metrics. Every rank has all tasks and answers its share
of the batches. Batches, and so all figures to the last bit, are the same on any number of ranks.
"""

import io
import json
import logging
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import redirect_stderr
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch

from shards.commands.progress import track
from shards.errors import UserError
from trainer.distributed import Ranks
from trainer.evaluate.command import BATCH_TOKENS
from trainer.model.loss import LossSums
from trainer.tasks.collate import collate
from trainer.tasks.rows import Row
from trainer.tokenizer import TextTokenizer
from trainer.torch_file import one_line

os.environ.setdefault("HF_DATASETS_OFFLINE", "1")  # read on import; items are local files
import lm_eval.tasks
from lm_eval.api.model import TemplateLM
from lm_eval.evaluator import evaluate
from lm_eval.utils import get_rolling_token_windows, make_disjoint_window

logging.getLogger("lm_eval").setLevel(logging.ERROR)

_SPLITS = ("train", "validation", "test")
_OTHER_NAMES = {"arc": "arc_easy", "lambada": "lambada_openai"}
_OWN = Path(__file__).parents[1] / "configs" / "benchmarks"
"""Tasks for the user's items, in the harness's format."""

Tokens = Sequence[int]
ForwardEval = Callable[[dict[str, torch.Tensor]], LossSums]
"""Computes the losses of a batch without gradients."""
Figures = dict[str, dict[str, float]]
"""The figures of each task, by name."""


def load_tasks(files: Mapping[str, Path]) -> dict[str, Any]:
    """Return the harness's tasks by name, with the items of local files.

    Args:
        files: files of JSON lines in the format of the task's dataset, by name of the task.

    Raises:
        UserError: there is no such task, or items have a different form.
    """
    with TemporaryDirectory() as folder, redirect_stderr(io.StringIO()):  # it shows progress
        manager = lm_eval.tasks.TaskManager(include_defaults=False)
        tasks = {}
        for name, file in files.items():
            path = Path(folder) / f"{name}.yaml"
            path.write_text(json.dumps(_description(name, file)), "utf-8")
            try:
                (task,) = manager.load([str(path)])["tasks"].values()
                task.build_all_requests(limit=None, rank=0, world_size=1)
            except Exception as error:  # any error of the task's code on an item
                raise UserError(
                    f"{file} does not contain items of {name} ({one_line(error)}): expected JSON "
                    "lines with the fields that lm-evaluation-harness reads."
                ) from error
            tasks[name] = task
    return tasks


def _description(name: str, file: Path) -> dict[str, Any]:
    """Return a task's YAML as JSON, with a local file instead of its dataset."""
    return {
        "include": str(_file_of(_OTHER_NAMES.get(name, name))),
        "task": name,
        "dataset_path": "json",
        "dataset_name": None,
        "dataset_kwargs": {"data_files": dict.fromkeys(_SPLITS, str(file.absolute()))},
    }


def _file_of(name: str) -> Path:
    """Return the file of a task; this avoids the harness's index, which takes half a minute."""
    root = Path(lm_eval.tasks.__file__).parent
    is_it = re.compile(rf"^task: *[\"']?{re.escape(name)}[\"']?\s*$", re.MULTILINE)
    # Folders whose names are the beginning of the task's name come first.
    likely = sorted(root.rglob("*.yaml"), key=lambda path: not name.startswith(path.parent.name))
    for path in (*_OWN.iterdir(), *likely):
        if is_it.search(path.read_text("utf-8")):
            return path
    raise UserError(
        f"lm-evaluation-harness has no task {name}: give the name of one of its tasks (not of a "
        f"group), or {' or '.join(sorted(path.stem for path in _OWN.iterdir()))}."
    )


class _StoppedError(Exception):
    """The run has to stop."""


@dataclass(kw_only=True, eq=False)
class Benchmarks(TemplateLM):  # type: ignore[misc]  # the harness has no types
    """Tasks, and the interface by which the harness runs them on a model."""

    tasks: Mapping[str, Any]
    """The result of `load_tasks`."""
    tokenizer: TextTokenizer
    length: int
    """The maximum number of tokens of a row."""
    mask: int | None
    """The id of the blank; None for a causal model."""
    ranks: Ranks
    batch_tokens: int = BATCH_TOKENS

    def __post_init__(self) -> None:
        super().__init__()
        # A causal row lacks the last token. A glm's row lacks it too, but adds [CLS], the blank,
        # eos and sop.
        self._room = self.length + (1 if self.mask is None else -3)
        # Whether the harness encodes a text and its continuation together or separately.
        self.backend = "causal" if self.mask is None else "seq2seq"

    def score(self, answer: ForwardEval, *, stop: Callable[[], int] = lambda: 0) -> Figures | None:
        """Return the figures of each task, the same on all ranks; None if the run stops.

        All ranks call this.

        Args:
            answer: a function that computes losses; all ranks call it equally often, because at
                ZeRO stage 3 they exchange weights.
            stop: a function called after each batch, with the same result on all ranks; if the
                result is not 0, None is returned.

        Raises:
            UserError: an answer does not fit in a row, or a task needs generated text.
        """
        self._answer, self._stop, self._is_finite = answer, stop, True
        self._stream = sys.stderr  # before the harness's progress is hidden
        try:
            with redirect_stderr(io.StringIO()):  # it shows progress
                found = evaluate(self, {"tasks": self.tasks}, bootstrap_iters=0, log_samples=False)
        except _StoppedError:
            return None
        assert found is not None  # to the harness, each rank is the first
        return {
            name: {
                figure.removesuffix(",none"): value if self._is_finite else float("nan")
                for figure, value in found["results"][name].items()
                if isinstance(value, float)  # standard errors are "N/A" without bootstrap samples
            }
            for name in self.tasks
        }

    @property
    def eot_token_id(self) -> int:  # noqa: D102
        return self.tokenizer.special["eos"]

    def tok_encode(self, string: str, **_: Any) -> list[int]:  # noqa: D102
        return self.tokenizer.encode(string)

    def _row(self, context: Tokens, answer: Tokens) -> Row:
        """Return the row of a context and an answer; a long context loses its beginning."""
        room = self._room - (1 if self.mask is None else 0)
        if len(answer) > room:
            raise UserError(
                f"an answer has {len(answer):,} tokens, and in a row of {self.length:,} there is "
                f"room for {room:,}: give a longer --length, as far as the model reaches, or leave "
                "the item out."
            )
        kept = context[max(0, len(context) + len(answer) - self._room) :]
        if self.mask is None:
            return Row(kept, answer)
        special, eos = self.tokenizer.special, self.eot_token_id
        part_a = [special.get("cls", eos), *kept, self.mask, eos]
        return Row(part_a, answer, mask_at=len(kept) + 1, sop=special["sop"])

    def _loglikelihood_tokens(
        self, requests: Sequence[tuple[Any, Tokens, Tokens]], **_: Any
    ) -> list[tuple[float, bool]]:
        """Return each answer's log-likelihood, and whether all its tokens are the most probable."""
        rows = [self._row(context, answer) for _, context, answer in requests]
        sums = torch.zeros(3, len(rows), dtype=torch.float64)
        batches = _batches([len(row) for row in rows], self.batch_tokens)
        world = self.ranks.world
        turns: Iterable[int] = range(-(-len(batches) // world))
        if self.ranks.is_first:
            turns = track(
                "tasks",
                turns,
                total=len(rows),
                weight=lambda turn: sum(map(len, batches[turn * world : (turn + 1) * world])),
                unit="answers",
                stream=self._stream,
            )
        for turn in turns:
            number = turn * world + self.ranks.rank
            numbers = batches[min(number, len(batches) - 1)]
            columns = self._answer(collate([[rows[i]] for i in numbers], pad=self.eot_token_id))
            if number < len(batches):
                sums[:, numbers] = torch.stack([column.double() for column in columns]).cpu()
            if self._stop():
                raise _StoppedError
        sums = self.ranks.sum(sums)
        self._is_finite &= bool(sums.isfinite().all())
        return [(-loss, right == count) for loss, right, count in sums.T.tolist()]

    def loglikelihood_rolling(self, requests: Sequence[Any], **_: Any) -> list[float]:
        """Return the log-likelihoods of texts, computed in windows that do not overlap."""
        windows = [
            [
                (None, *make_disjoint_window(window))
                for window in get_rolling_token_windows(
                    token_list=self.tok_encode(request.args[0]),
                    prefix_token=self.eot_token_id,
                    max_seq_len=self._room - 1,
                    context_len=1,
                )
            ]
            for request in requests
        ]
        found = self._loglikelihood_tokens([one for of_text in windows for one in of_text])
        ends = np.cumsum([0, *map(len, windows)]).tolist()
        return [sum(x for x, _ in found[a:b]) for a, b in pairwise(ends)]

    def generate_until(self, requests: Sequence[Any], **_: Any) -> list[str]:  # noqa: D102
        raise UserError(
            f"{requests[0].task_name} needs generated text, which is not supported here: give a "
            "task that compares given answers."
        )


def _batches(sizes: Sequence[int], batch_tokens: int) -> list[list[int]]:
    """Return the numbers of the rows of each batch; the longest rows come first."""
    batches: list[list[int]] = []
    room = 0
    for number in np.argsort(-np.asarray(sizes), kind="stable").tolist():
        if room == 0:
            batches.append([])
            room = max(1, batch_tokens // max(1, sizes[number]))
        batches[-1].append(number)
        room -= 1
    return batches
