"""The identity of a corpus's code: a user's own corpus may change between two runs.

The corpora of this package change with STAGES_VERSION (map/mapper.py). For any other one the source
of its module, and of what that imports from its own package, is among the facts that decide bytes.
"""

import ast
import hashlib
import importlib.util
import sysconfig
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from pipelines.corpus.recipe import CORPORA

_PACKAGE = "pipelines"


@lru_cache(maxsize=64)
def code_hash(corpus: str) -> str:
    """Return a hash of the source of a corpus, 16 hexadecimal digits; "" for those of this package.

    Args:
        corpus: The module that holds it as RECIPE. A module outside any package shares its code
            with the modules of its folder that it imports.
    """
    package, _, name = corpus.rpartition(".")
    if package == _PACKAGE and name in CORPORA:
        return ""
    sources: dict[str, bytes] = {}
    waiting = [corpus]
    while waiting:
        module = waiting.pop()
        path = None if module in sources else _file_of(module, corpus)
        if path is not None:
            sources[module] = path.read_bytes()
            waiting += _imports(module, path)
    digest = hashlib.sha256()
    for module in sorted(sources):
        digest.update(f"{module}\0{len(sources[module])}\0".encode() + sources[module])
    return digest.hexdigest()[:16]


def _file_of(module: str, corpus: str) -> Path | None:
    """Return the file of a module that belongs to the code of a corpus; None for any other."""
    try:
        spec = importlib.util.find_spec(module)
    except (ImportError, ValueError):  # imported under a condition, or no module at all
        return None
    if spec is None or not spec.origin or not spec.origin.endswith(".py"):
        return None
    path = Path(spec.origin)
    return path if module == corpus or _belongs(module, path, corpus) else None


def _belongs(module: str, path: Path, corpus: str) -> bool:
    package = corpus.rpartition(".")[0]
    if package == _PACKAGE:  # beside our own corpora and rooms
        parent, _, name = module.rpartition(".")
        return parent == _PACKAGE and path.name != "__init__.py" and name not in CORPORA
    if package:
        top = package if package.startswith(f"{_PACKAGE}.") else package.partition(".")[0]
        return module == top or module.startswith(f"{top}.")
    home = importlib.util.find_spec(corpus)
    folder = Path(home.origin).parent if home and home.origin else path
    installed = {Path(place) for place in sysconfig.get_paths().values()}
    return folder in path.parents and folder not in installed


def _imports(module: str, path: Path) -> Iterator[str]:
    """Yield the names of what a module may import, and of the packages around it."""
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            name = node.module or ""
            if node.level:
                name = importlib.util.resolve_name("." * node.level + name, package)
            yield name
            yield from (f"{name}.{alias.name}" for alias in node.names)
    parts = module.split(".")
    yield from (".".join(parts[:end]) for end in range(1, len(parts)))
