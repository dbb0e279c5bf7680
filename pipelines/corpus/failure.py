"""Turns errors in a user's corpus, filter or profile into messages that name the line."""

import traceback
from collections.abc import Iterator
from contextlib import contextmanager

from shards.errors import UserError
from shards.memory import is_out_of_memory

_MAX_CHARACTERS = 300


def user_code_error(
    module: str, error: BaseException, *, doing: str, what: str = "corpus"
) -> UserError:
    """Return an error that says what failed in the code of a corpus, and at which line.

    Args:
        module: The module of the corpus, or what else names its code.
        error: The exception that its code raised, or that its result caused.
        doing: The step that failed, such as "its documents() fails on a record".
        what: The kind of code in the module.
    """
    text = " ".join(str(error).split())
    if len(text) > _MAX_CHARACTERS:
        text = f"{text[:_MAX_CHARACTERS]}…"
    said = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return UserError(f"the {what} {module}: {doing}: {said}{_place(error)}. Correct its code")


@contextmanager
def reraise_user_code_errors(module: str, *, doing: str, what: str = "corpus") -> Iterator[None]:
    """Make what goes wrong within, in such code, the error that `code_failure` returns.

    A UserError and a lack of memory are raised unchanged. SystemExit is an error too: it
    would end one worker after the other, and nobody would know why.

    Args:
        module: As for `code_failure`.
        doing: The step.
        what: The kind of code in the module.

    Raises:
        UserError: Something went wrong.
    """
    try:
        yield
    except (Exception, SystemExit) as error:
        if isinstance(error, UserError) or is_out_of_memory(error):
            raise
        raise user_code_error(module, error, doing=doing, what=what) from error


def _place(error: BaseException) -> str:
    if isinstance(error, SyntaxError):
        return f" ({error.filename}:{error.lineno})"
    frames = traceback.extract_tb(error.__traceback__)
    return f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else ""
