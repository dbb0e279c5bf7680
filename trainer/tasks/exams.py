"""The exams that a model can sit by name: `NAME=FILE`, as flags have them."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from shards.errors import UserError
from shards.spelling import did_you_mean
from trainer.tasks.choices import READERS, ChoicesExam
from trainer.tasks.exam import Exam
from trainer.tasks.lambada import LambadaExam
from trainer.tasks.perplexity import PerplexityExam, read_documents, read_wikitext
from trainer.tasks.phrasing import Phrasing

TEXTS = {"wikitext": read_wikitext, "language_model": read_documents}
NAMES = (*READERS, "lambada", *TEXTS)
"""What can be sat."""


def parse_exams(flag: str, texts: Sequence[str]) -> dict[str, Path]:
    """Return the files of exams by name.

    Args:
        flag: what the user gave them with.
        texts: NAME=FILE.

    Raises:
        UserError: a text is none, there is no such task or file, or one is given twice.
    """
    files: dict[str, Path] = {}
    for text in texts:
        name, equals, file = text.partition("=")
        if name not in NAMES or not file:
            what = "there is no such task" if equals and file else "it names a task and its file"
            meant = "" if name in NAMES else did_you_mean(name, NAMES)
            raise UserError(
                f"{flag} {text}: {what}{f'; {meant}' if meant else '.'} Give NAME=FILE, NAME one "
                f"of {', '.join(NAMES)}."
            )
        if name in files:
            raise UserError(f"{flag} {text}: {name} is there already, with {files[name]}.")
        if not Path(file).is_file():
            raise UserError(f"{flag} {text}: there is no file {file}.")
        files[name] = Path(file)
    return files


def open_exams(
    files: Mapping[str, Path], phrasing: Phrasing, *, stride: int | None = None
) -> dict[str, Exam]:
    """Return exams by name.

    Args:
        files: as `parse_exams` returns them.
        phrasing: of the model that sits them.
        stride: of perplexity's windows.

    Raises:
        UserError: an item is not as its task has it, or does not fit; says where it stands.
    """
    return {name: _open(name, path, phrasing, stride) for name, path in files.items()}


def _open(name: str, path: Path, phrasing: Phrasing, stride: int | None) -> Exam:
    if name in READERS:
        return ChoicesExam.of(path, READERS[name], phrasing)
    if name in TEXTS:
        return PerplexityExam.of(TEXTS[name](path), phrasing, stride=stride)
    return LambadaExam.of(path, phrasing)
