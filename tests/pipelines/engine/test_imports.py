import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
def test_pandas_is_left_alone_by_pyarrow_and_stays_usable() -> None:
    pytest.importorskip("pandas")
    script = """
import sys
import pyarrow as pa
from pipelines.engine.imports import keep_pandas_out
keep_pandas_out()
keep_pandas_out()
assert not any(type(finder).__module__ == "pipelines.engine.imports" for finder in sys.meta_path)
pa.array(["text"])
assert "pandas" not in sys.modules
import pandas
assert pa.array(pandas.Series([1, 2])).type == pa.int64()
assert pa.table({"a": [1]}).to_pandas().shape == (1, 1)
"""
    subprocess.run([sys.executable, "-c", script], cwd=Path(__file__).parents[3], check=True)
