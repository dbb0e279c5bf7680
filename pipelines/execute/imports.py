"""Modules that the processes of a run do not import."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.abc import MetaPathFinder

import pyarrow as pa


def keep_pandas_out() -> None:
    """Keep pyarrow from importing pandas: a quarter of a second of CPU and 40 MB in each process.

    `pa.array(list)` does that where pandas is installed, to see whether the list is a Series. It
    asks once. Whoever imports pandas itself still can, and `to_pandas` works.
    """
    with without_pandas():
        pa.array([None])


@contextmanager
def without_pandas() -> Iterator[None]:
    """Keep what is imported in the block from importing pandas, which it does without as well."""
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
