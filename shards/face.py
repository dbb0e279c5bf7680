"""The faces of the three packages: names that are imported when they are first asked for.

`from trainer import Loader` imports torch, `import trainer` does not. What a package's `__init__`
does not name is private: it may change without a word.
"""

import ast
import importlib
import sys
from collections.abc import Callable
from typing import Any

from shards.extras import extras_named


def lazily(package: str) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__all__`, `__getattr__` and `__dir__` of a package.

    The names it shows are those that it imports `if TYPE_CHECKING`, as its source says.
    """
    module: Any = sys.modules[package]
    source = ast.parse(module.__loader__.get_source(package))
    (block,) = (each for each in source.body if isinstance(each, ast.If))
    homes = {
        each.name: str(line.module)
        for line in block.body
        if isinstance(line, ast.ImportFrom)
        for each in line.names
    }

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        with extras_named():
            value = getattr(importlib.import_module(homes[name]), name)
        setattr(module, name, value)
        return value

    def names() -> list[str]:
        return sorted({*vars(module), *homes})

    return sorted(homes), get, names
