"""The faces of the three packages: names that are imported when they are first asked for.

`from trainer import Loader` imports torch, `import trainer` does not. What a package's `__init__`
does not name is private: it may change without a word.
"""

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any

from shards.extras import extras_named


def lazily(
    package: str, homes: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the `__getattr__` and the `__dir__` of a package.

    Args:
        package: Its name.
        homes: The modules that define the names it shows, by name.
    """
    module = sys.modules[package]

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        with extras_named():
            value = getattr(importlib.import_module(homes[name]), name)
        setattr(module, name, value)
        return value

    def names() -> list[str]:
        return sorted({*vars(module), *homes})

    return get, names
