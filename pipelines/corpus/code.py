"""Hashes users' code, which may change between two runs.

STAGES_VERSION (versions.py) covers the code of this package. The sources of a user's module, and of
the modules that it imports from its package, belong to the identity of a dataset.
"""

import ast
import hashlib
from collections.abc import Iterator
from functools import lru_cache
from importlib import import_module
from pathlib import Path

from pipelines.corpus.failure import user_code_error
from pipelines.corpus.spec import CORPORA
from shards.errors import UserError

CORPUS_CODE = "code of the corpus"
"""The key of the hash among the options of a dataset; an option cannot have this name."""

USER_CODE = "code"
"""The key of the modules' hashes in an option that names users' code."""

_PACKAGE = "pipelines"
_INSTALLED = {"site-packages", "dist-packages"}


@lru_cache(maxsize=64)
def code_hash(corpus: str) -> str:
    """Return a hash of a module's code, as 16 hexadecimal digits; "" for corpora of this package.

    The hash covers the modules that the module imports from its package. They are found by their
    paths and are not imported.

    Args:
        corpus: The module, for example one with a CORPUS. If the module is not in a package, the
            hash covers the modules in the same folder, unless that is a folder of installed
            packages, which contains other people's modules.

    Raises:
        UserError: A source is not valid Python, or the module has no file.
    """
    package, _, name = corpus.rpartition(".")
    if package == _PACKAGE and name in CORPORA:
        return ""
    file = getattr(import_module(corpus), "__file__", None)
    if file is None:
        raise UserError(f"the module {corpus} has no file, so changes of its code go unnoticed")
    home = Path(file)
    root = home.parents[corpus.count(".") + (home.name == "__init__.py")]
    sources: dict[str, bytes] = {}
    waiting = [corpus]
    while waiting:
        module = waiting.pop()
        path = None if module in sources else _file_of(module, corpus, root)
        if path is not None:
            sources[module] = path.read_bytes()
            try:
                waiting += _imports(module, path, sources[module])
            except (SyntaxError, ValueError) as error:  # such a module may never be imported
                doing = f"{path} cannot be parsed"
                raise user_code_error(corpus, error, doing=doing) from error
    if not sources:  # a compiled module: hash its file instead of its source
        sources[corpus] = home.read_bytes()
    digest = hashlib.sha256()
    for module in sorted(sources):
        digest.update(f"{module}\0{len(sources[module])}\0".encode() + sources[module])
    return digest.hexdigest()[:16]


def check_unchanged(corpus: str) -> None:
    """Check that the code of a corpus has not changed since this process first used it.

    This process keeps the modules that it has imported, while its workers import the new files.

    Raises:
        UserError: The code has changed.
    """
    if code_hash(corpus) != code_hash.__wrapped__(corpus):
        raise UserError(
            f"the code of {corpus} was edited after this process had imported it: restart Python "
            "(in a notebook, the kernel), so that all processes use the same code"
        )


def _file_of(module: str, corpus: str, root: Path) -> Path | None:
    """Return the file of a module if the module belongs to the code of a corpus; else None."""
    if module != corpus and not _belongs(module, corpus, root):
        return None
    path = root.joinpath(*module.split("."))
    files = (path.with_name(f"{path.name}.py"), path / "__init__.py")
    return next((file for file in files if file.is_file()), None)


def _belongs(module: str, corpus: str, root: Path) -> bool:
    package = corpus.rpartition(".")[0]
    if package == _PACKAGE:  # a user's module next to the corpora and packages of this package
        parent, _, name = module.rpartition(".")
        is_room = (root / _PACKAGE / name).is_dir()
        return parent == _PACKAGE and not is_room and name not in CORPORA
    if package:
        top = package if package.startswith(f"{_PACKAGE}.") else package.partition(".")[0]
        return module == top or module.startswith(f"{top}.")
    ours = {_PACKAGE, "shards", "trainer"}
    return root.name not in _INSTALLED and module.partition(".")[0] not in ours


def _imports(module: str, path: Path, source: bytes) -> Iterator[str]:
    """Yield the names of modules that a module may import, and of its parent packages."""
    parts = module.split(".")
    package = parts if path.name == "__init__.py" else parts[:-1]
    for node in ast.walk(ast.parse(source, str(path))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            name = ".".join([*base, *([node.module] if node.module else [])])
            yield name
            yield from (f"{name}.{alias.name}" for alias in node.names)
    yield from (".".join(parts[:end]) for end in range(1, len(parts)))
