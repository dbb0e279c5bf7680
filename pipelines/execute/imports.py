"""Keeps modules that a run does not need from being imported."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.abc import MetaPathFinder

import pyarrow as pa


def block_pandas_import() -> None:
    """Keep pyarrow from importing pandas, which takes 0.25 s of CPU and 40 MB in each process.

    If pandas is installed, the first `pa.array(list)` imports it to check whether the list is a
    Series. Explicit imports of pandas still succeed, and `to_pandas` works.
    """
    with without_pandas():
        pa.array([None])


@contextmanager
def without_pandas() -> Iterator[None]:
    """Keep modules imported in the block from importing pandas, which they do not need."""
    if "pandas" in sys.modules:
        yield
        return
    finder = _WithoutPandas()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


class _WithoutPandas(MetaPathFinder):
    @staticmethod
    def find_spec(fullname: str, *_: object) -> None:
        if fullname == "pandas":
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)
