"""The command that reads what was looked at."""

import os
import shlex
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

from pipelines.inputs.files import InputFile
from pipelines.look.guess import Guess
from pipelines.look.look import Look, ending_of
from shards.program import called
from shards.storage.address import is_url

_RARE = 0.02
"""Languages with a smaller share of the texts are not asked for."""


def command(look: Look, guess: Guess) -> str:
    """Return the command line that makes a dataset of an input, as its recipe was tried."""
    words = ["python", "-m", f"pipelines.{guess.corpus}", "--input", _input(look, guess)]
    words += _own_flags(look, guess)
    words += _languages(look, guess)
    words += ["--skip-unreadable"] if look.refused else []
    words += ["--tokenizer", _tokenizer(guess)]
    return called(shlex.join(words))


def _own_flags(look: Look, guess: Guess) -> Iterator[str]:
    field = getattr(guess.options, "text_field", "text")
    if look.form != "lines" and field != "text":
        yield from ("--text-field", field)


def _languages(look: Look, guess: Guess) -> Sequence[str]:
    """Return the flag for languages of the texts that the recipe would leave out."""
    frequent = [name for name, share in look.languages.items() if share >= _RARE]
    if not set(frequent) - {*guess.options.languages} or "all" in guess.options.languages:
        return ()
    return ("--languages", ",".join(sorted({*frequent} - {"und"}) or ["all"]))


def _input(look: Look, guess: Guess) -> str:
    """Return the path, or a glob where the recipe would take other files of a folder."""
    patterns = guess.recipe.pattern
    patterns = (patterns,) if isinstance(patterns, str) else patterns
    files = look.files
    named = [file for file in files if _matches(file, patterns)]
    alone = all(kind.form == look.form for kind in look.taken)
    if (alone and len(named) == len(files)) or not _below(look.path, files):
        return look.path
    endings = {ending_of(file.relative) for file in files}
    ending = endings.pop() if len(endings) == 1 else ""
    deep = any("/" in file.relative for file in files)
    return f"{look.path.rstrip('/')}/{'**/' if deep else ''}*{ending}"


def _matches(file: InputFile, patterns: Sequence[str]) -> bool:
    name = PurePosixPath(file.relative).name
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _below(path: str, files: Sequence[InputFile]) -> bool:
    """Return whether a path is the folder of files, not a file, a glob or a dataset of the hub."""
    start = path if is_url(path) else os.path.abspath(path)  # noqa: PTH100 - as files have it
    return all(file.path == f"{start.rstrip('/')}/{file.relative}" for file in files)


def _tokenizer(guess: Guess) -> str:
    kind, _, path = guess.recipe.sample_tokenizer.partition(":")
    here = Path.cwd()
    return f"{kind}:{Path(path).relative_to(here) if Path(path).is_relative_to(here) else path}"
