"""The identity of a user's own code: a corpus, or a profile, may change between two runs.

The corpora of this package change with STAGES_VERSION (versions.py). For any other one the source
of its module, and of the modules it imports from its own package, is a fact that decides bytes.
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
"""The name of the hash among the options of a dataset; no option can be called so."""

USER_CODE = "code"
"""Under an option that names code of a user's: the hashes of its modules."""

_PACKAGE = "pipelines"
_INSTALLED = {"site-packages", "dist-packages"}


@lru_cache(maxsize=64)
def code_hash(corpus: str) -> str:
    """Return a hash of the source of a module, 16 hexadecimal digits; "" for our own corpora.

    Modules are found by their path below the folder of the corpus's package; none is imported.

    Args:
        corpus: The module, such as one that holds a corpus as CORPUS. One outside any package
            shares its code with modules of the same folder that it imports, unless it is
            installed: then the others are other people's.

    Raises:
        UserError: One of the sources is no Python, or the module has no file.
    """
    package, _, name = corpus.rpartition(".")
    if package == _PACKAGE and name in CORPORA:
        return ""
    file = getattr(import_module(corpus), "__file__", None)
    if file is None:
        raise UserError(f"{corpus} has no file, so that nothing tells when its code changes")
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
            except (SyntaxError, ValueError) as error:  # of a module that may never be imported
                doing = f"{path} cannot be parsed"
                raise user_code_error(corpus, error, doing=doing) from error
    if not sources:  # compiled: its own file stands for its source
        sources[corpus] = home.read_bytes()
    digest = hashlib.sha256()
    for module in sorted(sources):
        digest.update(f"{module}\0{len(sources[module])}\0".encode() + sources[module])
    return digest.hexdigest()[:16]


def check_unchanged(corpus: str) -> None:
    """Check that the code of a corpus is still what this process took it for at its first use.

    A process keeps the modules it has imported, while its workers import the present files.

    Raises:
        UserError: It was edited meanwhile.
    """
    if code_hash(corpus) != code_hash.__wrapped__(corpus):
        raise UserError(
            f"the code of {corpus} was edited after this process had used it: restart Python (in a "
            "notebook the kernel), so that all processes work with the same code"
        )


def _file_of(module: str, corpus: str, root: Path) -> Path | None:
    """Return the file of a module that belongs to the code of a corpus; None for any other."""
    if module != corpus and not _belongs(module, corpus, root):
        return None
    path = root.joinpath(*module.split("."))
    files = (path.with_name(f"{path.name}.py"), path / "__init__.py")
    return next((file for file in files if file.is_file()), None)


def _belongs(module: str, corpus: str, root: Path) -> bool:
    package = corpus.rpartition(".")[0]
    if package == _PACKAGE:  # next to our own corpora and rooms
        parent, _, name = module.rpartition(".")
        is_room = (root / _PACKAGE / name).is_dir()
        return parent == _PACKAGE and not is_room and name not in CORPORA
    if package:
        top = package if package.startswith(f"{_PACKAGE}.") else package.partition(".")[0]
        return module == top or module.startswith(f"{top}.")
    ours = {_PACKAGE, "shards", "trainer"}
    return root.name not in _INSTALLED and module.partition(".")[0] not in ours


def _imports(module: str, path: Path, source: bytes) -> Iterator[str]:
    """Yield the names of modules that a module may import, and of the packages around it."""
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
