import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from fsspec.implementations.memory import MemoryFileSystem

from pipelines import compiled
from pipelines.inputs.files import InputFile, match_inputs
from pipelines.run.build import build
from tests.pipelines.mapped import CONTENT
from tests.pipelines.runs import many_splits


@pytest.fixture(scope="session")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The dataset that every disturbed run must come to, made in one process in peace."""
    output = tmp_path_factory.mktemp("reference") / "dataset"
    build("pipelines.wudao", many_splits(output, keep_segments=True))
    return output


@pytest.fixture(autouse=True)
def unwarned() -> Iterator[None]:
    """What a process finds out and says once, it finds out and says in each test."""
    remembering = (compiled.available, compiled.usable, compiled._warn)
    for function in remembering:
        function.cache_clear()
    yield
    compiled.use_native(False)
    for function in remembering:
        function.cache_clear()


@pytest.fixture
def broken_numba(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A numba that is installed and cannot be imported; the one line that says so."""
    folder = tmp_path / "broken"
    folder.mkdir()
    (folder / "numba.py").write_text("raise ImportError('Numba needs NumPy 2.3 or less.')")
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, "numba", raising=False)
    monkeypatch.delenv("NUMBA_DISABLE_JIT", raising=False)
    importlib.invalidate_caches()
    return (
        "numba cannot be imported: ImportError: Numba needs NumPy 2.3 or less. "
        "Nothing is compiled, which is slower."
    )


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The input file of tests.pipelines.mapped."""
    path = tmp_path / "in" / "a.json"
    path.parent.mkdir()
    path.write_bytes(CONTENT)
    return path


@pytest.fixture
def remote() -> Iterator[InputFile]:
    """The same file behind a URL: it has an etag, and no time."""
    system = MemoryFileSystem()
    system.pipe("/a.json", CONTENT)
    (found,) = match_inputs(["memory://a.json"], pattern="*", default_name="s")
    assert found.etag
    yield found
    system.store.clear()
