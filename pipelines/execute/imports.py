"""What the processes of a run do not import."""

import sys
from importlib.abc import MetaPathFinder

import pyarrow as pa


def keep_pandas_out() -> None:
    """Keep pyarrow from importing pandas: a quarter of a second of CPU and 40 MB in each process.

    `pa.array(list)` does that where pandas is installed, to see whether the list is a Series. It
    asks once. Whoever imports pandas itself still can, and `to_pandas` works.
    """
    if "pandas" in sys.modules:
        return
    finder = _WithoutPandas()
    sys.meta_path.insert(0, finder)
    try:
        pa.array([None])
    finally:
        sys.meta_path.remove(finder)


class _WithoutPandas(MetaPathFinder):
    @staticmethod
    def find_spec(fullname: str, *_: object) -> None:
        if fullname == "pandas":
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)
