"""The command `python -m trainer.evaluate`: held-out loss and benchmarks of a trained model.

python -m trainer.evaluate MODEL [--data DIR] [--task NAME=FILE]
"""

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass
from functools import cached_property
from pathlib import Path

from shards.commands.flags import WORD, count, flag_of, local_path, non_defaults, option, positive
from shards.errors import UserError
from trainer.command import RankCommand
from trainer.load_options import OPENED, LoadOptions

MASK, GMASK = "mask", "gmask"
"""The blanks that a glm may fill in a benchmark."""
BATCH_TOKENS = 8192
"""The maximum number of tokens of a benchmark's batch, padding included, unless a single row is
longer."""
_ASKED = "data and benchmarks"
_OF_TASKS = ("length", "blank", "tokenizer")


def parse_tasks(flag: str, texts: Sequence[str]) -> dict[str, Path]:
    """Return the files of benchmarks by name.

    Args:
        flag: the flag with which the user gave the files.
        texts: NAME=FILE.

    Raises:
        UserError: a text has a different form, there is no such file, or a name is given twice.
    """
    files: dict[str, Path] = {}
    for text in texts:
        name, _, file = text.partition("=")
        if not name or not file:
            raise UserError(f"{flag} {text}: give NAME=FILE, a task and the file of its items.")
        if name in files:
            raise UserError(f"{flag} {text}: {name} is already given, with {files[name]}.")
        if not Path(file).is_file():
            raise UserError(f"{flag} {text}: there is no file {file}.")
        files[name] = Path(file)
    return files


@dataclass(frozen=True, kw_only=True)
class Evaluate(LoadOptions, RankCommand):
    """Evaluate a trained model."""

    WORK = "trainer.evaluate.evaluate:evaluate_model"
    USAGE = "%(prog)s MODEL [--data DIR] [--task NAME=FILE] [FLAG ...]"
    GROUPS = (_ASKED, OPENED)

    path: Path = option(MISSING, flag=WORD, metavar="MODEL", type=local_path, group=_ASKED)
    """Run, one of its checkpoints, or a published checkpoint."""
    task: tuple[str, ...] = option((), metavar="NAME=FILE", action="append")
    """Benchmark and the JSON lines of its items. NAME is a task of lm-evaluation-harness
    (hellaswag, arc_easy, copa, lambada, wikitext, …), choices or language_model; may be
    repeated."""
    data: tuple[str, ...] = option((), metavar="DIR", action="append")
    """Data whose validation documents give the held-out loss (a folder, or
    hf:OWNER/NAME[@REVISION]); may be repeated. Default without --task: the data of the model's
    run."""
    eval_samples: int = option(1024, type=count)
    """Number of windows for the held-out loss, the same ones as in training; 0: all."""
    length: int | None = option(None, type=positive)
    """Maximum number of tokens per row. Default: the model's positions."""
    blank: str | None = option(None, choices=(GMASK, MASK))
    """Blank that a GLM fills: [gMASK] or [MASK]. Default: gmask, or mask for a run without task
    masks."""
    batch_tokens: int = option(BATCH_TOKENS, type=positive, metavar="N")
    """Number of tokens that the device computes at once."""

    @cached_property
    def files(self) -> Mapping[str, Path]:
        """The files of tasks, by name."""
        return parse_tasks("--task", self.task)

    def __post_init__(self) -> None:
        files = self.files
        for name in non_defaults(self):
            if name in _OF_TASKS and not files:
                raise UserError(f"{flag_of(name)} is for tasks: give --task NAME=FILE as well.")
            if name == "eval_samples" and files and not self.data:
                raise UserError("--eval-samples is for the held-out loss: give --data DIR as well.")
