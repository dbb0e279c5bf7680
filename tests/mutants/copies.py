"""Makes copies of the repository: some for faults, and one whose functions mark that they ran."""

import ast
import os
import shutil
from pathlib import Path

from tests.mutants.places import function_names

ROOT = Path(__file__).parents[2]
PACKAGES = ("pipelines", "shards", "trainer")
MARKS = "CORPUSMILL_MARKS"
"""The environment variable that contains the path of the file of marks."""

_LEFT = {".git", ".venv", "build", "dist", ".mypy_cache", ".ruff_cache", ".pytest_cache"}
_KERNEL = "kernel"
"""The start of the names of decorators that make numba compile a function; compiled functions
cannot mark that they ran."""

_MARKING = f'''
import mmap
import os


class Marks(mmap.mmap):
    """A byte for each function; all processes below a test write the same file."""

    def __reduce_ex__(self, protocol):
        return "marks"


def _open():
    path = os.environ.get("{MARKS}")
    if path is None:
        return bytearray(SIZE)
    with open(path, "r+b") as file:
        return Marks(file.fileno(), 0)


marks = _open()
'''


def copy_repository(folder: Path) -> Path:
    """Create or update a copy, keeping its compiled files, and return it."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in {path.name for path in folder.iterdir()} | {path.name for path in ROOT.iterdir()}:
        if name in _LEFT or name.endswith(".egg-info"):
            continue
        source, target = ROOT / name, folder / name
        if name == ".engines":
            _link(target, source)
        elif source.is_dir():
            _mirror(source, target)
        elif source.exists():
            shutil.copy2(source, target)
    # Tests look for real data next to the checkout.
    _link(folder.parent / "shared", ROOT.parent / "shared")
    return folder


def _mirror(source: Path, target: Path) -> None:
    """Copy a folder's files that differ in time or size, and delete modules that it lacks."""
    for path in sorted(target.rglob("*.py")) if target.exists() else ():
        if not (source / path.relative_to(target)).exists():
            path.unlink()
    for path in source.rglob("*"):
        other = target / path.relative_to(source)
        if path.is_dir():
            other.mkdir(parents=True, exist_ok=True)
        elif path.suffix != ".pyc" and not _is_same(path, other):
            other.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, other)


def _is_same(path: Path, other: Path) -> bool:
    if not other.exists():
        return False
    one, two = path.stat(), other.stat()
    return (one.st_size, one.st_mtime_ns) == (two.st_size, two.st_mtime_ns)


def _link(link: Path, target: Path) -> None:
    if target.exists() and not link.is_symlink():
        link.symlink_to(os.path.relpath(target, link.parent))


def product_files(root: Path) -> list[Path]:
    """Return the paths of the product's modules."""
    return [path for package in PACKAGES for path in sorted((root / package).rglob("*.py"))]


def add_marks(folder: Path) -> list[str]:
    """Rewrite a copy so that each function marks that it ran, and return the functions' names."""
    functions: list[str] = []
    for path in product_files(folder):
        tree = ast.parse((ROOT / path.relative_to(folder)).read_bytes())
        place = path.relative_to(folder).as_posix()
        for name, node in sorted(function_names(tree), key=lambda pair: pair[1].lineno):
            if not _is_kernel(node):
                _insert(node.body, f"__reach__[{len(functions)}] = 1")
            functions.append(f"{place}::{name}")
        _insert(tree.body, "from reach_marks import marks as __reach__")
        path.write_text(ast.unparse(ast.fix_missing_locations(tree)), encoding="utf-8")
    (folder / "reach_marks.py").write_text(_MARKING.replace("SIZE", str(len(functions))))
    return functions


def _is_kernel(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any(ast.unparse(each).startswith(_KERNEL) for each in node.decorator_list)


def _insert(body: list[ast.stmt], statement: str) -> None:
    """Insert a statement after the docstring and the imports from __future__."""
    place = 0
    while place < len(body) and _stands_first(body[place]):
        place += 1
    body.insert(place, ast.parse(statement).body[0])


def _stands_first(node: ast.stmt) -> bool:
    if isinstance(node, ast.ImportFrom):
        return node.module == "__future__"
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
