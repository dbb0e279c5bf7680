"""What becomes of an error in the code of a corpus, filter or profile of a user's own."""

import traceback

from shards.errors import UserError

_MOST_CHARACTERS = 300


def code_failure(
    module: str, error: BaseException, *, doing: str, what: str = "corpus"
) -> UserError:
    """Return an error that says what failed in the code of a corpus, and at which line.

    Args:
        module: The module of the corpus, or what else names its code.
        error: What its code raised, or what came of what it returned.
        doing: What was done, such as "its documents() fails on a record".
        what: What the module holds.
    """
    text = " ".join(str(error).split())
    if len(text) > _MOST_CHARACTERS:
        text = f"{text[:_MOST_CHARACTERS]}…"
    said = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return UserError(f"the {what} {module}: {doing}: {said}{_place(error)}. Correct its code")


def _place(error: BaseException) -> str:
    if isinstance(error, SyntaxError):
        return f" ({error.filename}:{error.lineno})"
    frames = traceback.extract_tb(error.__traceback__)
    return f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else ""
