"""Turns errors in a user's code into messages that name the line."""

import traceback
from collections.abc import Iterator
from contextlib import contextmanager

from shards.errors import UserError
from shards.memory import is_out_of_memory

_MAX_CHARACTERS = 300


def user_code_error(
    module: str, error: BaseException, *, doing: str, what: str = "corpus"
) -> UserError:
    """Return the error to report for a failure in a user's code, with the line that failed.

    Args:
        module: The name of the module, or MODULE:NAME.
        error: The exception that the code raised, or that its result caused.
        doing: The failure, such as "its documents() fails on a record".
        what: The kind of code, such as "corpus" or "filter".
    """
    text = " ".join(str(error).split())
    if len(text) > _MAX_CHARACTERS:
        text = f"{text[:_MAX_CHARACTERS]}…"
    described = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return UserError(f"the {what} {module}: {doing}: {described}{_place(error)}. Fix the code")


@contextmanager
def reraise_user_code_errors(module: str, *, doing: str, what: str = "corpus") -> Iterator[None]:
    """Turn an exception that a user's code raises into the error of `user_code_error`.

    UserErrors and a lack of memory are raised unchanged. SystemExit counts as a failure, because it
    would end one worker after another without a message.

    Args:
        module: The name of the module, or MODULE:NAME.
        doing: The failure to report.
        what: The kind of code, such as "corpus" or "filter".

    Raises:
        UserError: The code raised an exception.
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
