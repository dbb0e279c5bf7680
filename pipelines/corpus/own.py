"""Custom code that the command line names as MODULE:NAME."""

import re
from importlib import import_module
from typing import Any

from pipelines.corpus.code import code_hash
from pipelines.corpus.failure import code_failure
from pipelines.corpus.recipe import is_module
from shards.errors import UserError
from shards.memory import is_out_of_memory

_SPEC = re.compile(r"([^\W\d]\w*(?:\.[^\W\d]\w*)*):([^\W\d]\w*)")
_WHERE = (
    "A module is in the working directory or is installed, here and on every machine that runs "
    "tasks"
)


def module_of(spec: str) -> str:
    """Return the module of MODULE:NAME."""
    return spec.partition(":")[0]


def load_own(spec: str, *, what: str) -> Any:
    """Return the object that MODULE:NAME names.

    Args:
        spec: As given.
        what: The kind of object, for errors, such as "quality profile".

    Raises:
        UserError: It is not written so, or the module cannot be imported or has no such name.
    """
    matched = _SPEC.fullmatch(spec)
    if matched is None:
        raise UserError(
            f'the {what} "{spec}" is not written as MODULE:NAME, such as my.rules:{_like(what)}'
        )
    module, name = matched.groups()
    if not is_module(module, what=what):
        raise UserError(f'the {what} "{spec}": there is no module {module}. {_WHERE}')
    try:
        loaded = import_module(module)
    except Exception as error:
        if is_out_of_memory(error):
            raise
        raise code_failure(spec, error, doing="its module cannot be imported", what=what) from error
    if not hasattr(loaded, name):
        raise UserError(f'the {what} "{spec}": {loaded.__file__} defines no {name}')
    return getattr(loaded, name)


def check_code(codes: dict[str, str], *, made: str) -> None:
    """Check that custom modules are what they were.

    Args:
        codes: Their hashes at that time.
        made: The dataset or file that was made with them.

    Raises:
        UserError: One is missing, or was edited since.
    """
    for module, code in sorted(codes.items()):
        if not is_module(module, what="module"):
            raise UserError(f"{made} was made with {module}, a module that is not here. {_WHERE}")
        if code_hash(module) != code:
            raise UserError(
                f"the code of {module} (or of its own imports) was edited since {made} "
                "was made, so what was measured may mean something else now: restore the file, or "
                "run the corpus again"
            )


def _like(what: str) -> str:
    return what.rpartition(" ")[2]
