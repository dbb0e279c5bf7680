"""Loads users' code, which the command line names as MODULE:NAME."""

import re
from importlib import import_module
from typing import Any

from pipelines.corpus.code import code_hash
from pipelines.corpus.failure import reraise_user_code_errors
from pipelines.corpus.spec import is_module
from shards.errors import UserError

_SPEC = re.compile(r"([^\W\d]\w*(?:\.[^\W\d]\w*)*):([^\W\d]\w*)")
_WHERE = (
    "A module has to be in the working directory or installed, on this machine and on every worker"
)


def module_of(spec: str) -> str:
    """Return the module in MODULE:NAME."""
    return spec.partition(":")[0]


def load_user_code(spec: str, *, what: str) -> Any:
    """Return the object that MODULE:NAME names.

    Args:
        spec: The text MODULE:NAME.
        what: The kind of object, for errors, such as "quality profile".

    Raises:
        UserError: The text is not of this form, or the module cannot be imported or lacks the name.
    """
    matched = _SPEC.fullmatch(spec)
    if matched is None:
        raise UserError(
            f'the {what} "{spec}" is not written as MODULE:NAME, such as my.rules:{_like(what)}'
        )
    module, name = matched.groups()
    if not is_module(module, what=what):
        raise UserError(f'the {what} "{spec}": there is no module {module}. {_WHERE}')
    with reraise_user_code_errors(spec, doing="its module cannot be imported", what=what):
        loaded = import_module(module)
    if not hasattr(loaded, name):
        raise UserError(f'the {what} "{spec}": {loaded.__file__} defines no {name}')
    return getattr(loaded, name)


def check_user_code(codes: dict[str, str], *, made: str) -> None:
    """Check that a user's modules have not changed since a dataset or file was made with them.

    Args:
        codes: The hash of each module's code at that time.
        made: The dataset or file that was made.

    Raises:
        UserError: A module is missing or was edited.
    """
    for module, code in sorted(codes.items()):
        if not is_module(module, what="module"):
            raise UserError(f"{made} was made with the module {module}, which is missing. {_WHERE}")
        if code_hash(module) != code:
            raise UserError(
                f"the code of {module} (or of a module that it imports) was edited after {made} "
                "was made, so the measured values may have another meaning now: restore the file, "
                "or run the corpus again"
            )


def _like(what: str) -> str:
    return what.rpartition(" ")[2]
