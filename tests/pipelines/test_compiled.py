"""The folder for compiled code, and several processes that need the same code at once."""

import os
import shutil
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

from pipelines import compiled
from pipelines.libraries import verified

KERNELS = """
import sys
import numpy as np
from pipelines.compiled import cache_folder, kernel

@kernel
def half(number):
    return number / 2

@kernel
def halves(numbers, found):
    for at in range(len(numbers)):
        found[at] = half(numbers[at])

found = np.empty(3)
halves(np.arange(3), found)
assert found.tolist() == [0, 0.5, 1]
print(sum(halves.compiled.stats.cache_misses.values()), cache_folder())
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Install a package that has a module of kernels, for a user whose cache folder is empty."""
    package = tmp_path / "pipelines"
    package.mkdir()
    for name in ("compiled.py", "kernel_cache.py"):
        shutil.copyfile(Path(compiled.__file__).with_name(name), package / name)
    (package / "__init__.py").touch()
    (package / "loops.py").write_text(KERNELS)
    (package / "plain.py").write_text("def f(): ...")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return package


def folder_of(package: Path) -> Path | None:
    """Return the folder of compiled code that a new process chooses for the package."""
    spec = spec_from_file_location("compiled", package / "compiled.py")
    assert spec is not None
    assert spec.loader is not None
    module: Any = module_from_spec(spec)
    spec.loader.exec_module(module)
    found: Path | None = module.cache_folder()
    return found


def begin(package: Path) -> "subprocess.Popen[str]":
    root = str(Path(compiled.__file__).parents[1])
    return subprocess.Popen(
        [sys.executable, "-m", "pipelines.loops"],
        cwd=package.parent,
        env={**os.environ, "PYTHONPATH": f"{package.parent}:{root}"},
        stdout=subprocess.PIPE,
        text=True,
    )


def test_one_of_several_processes_compiles_and_the_others_find_it(package: Path) -> None:
    running = [begin(package) for _ in range(3)]
    misses = []
    for process in running:
        out, _ = process.communicate()
        assert process.returncode == 0
        number, folder = out.split()
        misses.append(int(number))
        assert Path(folder).parent == package / "__pycache__"
    assert sorted(misses) == [0, 0, 1]
    out, _ = begin(package).communicate()
    assert out.split()[0] == "0"


def test_code_is_kept_by_the_sources_of_all_kernels_where_one_may_write(
    package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = folder_of(package)
    assert made is not None
    assert made.parent == package / "__pycache__"
    (package / "plain.py").write_text("def g(): ...")
    assert folder_of(package) == made
    (made / "f.nbi").write_text("native")
    # A user who cannot write there starts with a copy.
    monkeypatch.setattr(os, "access", lambda path, _: package not in path.parents)
    own = folder_of(package)
    assert own == tmp_path / "cache" / "corpusmill" / made.name
    assert [path.name for path in own.parent.iterdir()] == [made.name]
    assert (own / "f.nbi").read_text() == "native"
    (own / "f.nbi").write_text("newer")
    assert folder_of(package) == own
    assert (own / "f.nbi").read_text() == "newer"
    (package / "loops.py").write_text("@kernel\ndef g(): ...")
    assert folder_of(package) != own
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert folder_of(package) is None


def half(number: int) -> float:
    return number / 2


def unmade() -> None:
    raise RuntimeError("Cannot load.\nLong story")


def test_a_library_that_differs_or_fails_is_not_used(caplog: pytest.LogCaptureFixture) -> None:
    words = {"reference": "Long division"}
    assert verified("Halving", lambda: half, lambda _: None, **words) is half
    for _ in range(2):
        assert verified("Halving", lambda: half, lambda _: "half of 1 is 0.33", **words) is None
    assert verified("Doubling", unmade, lambda _: None, **words) is None
    assert caplog.messages == [
        "Halving is not used: half of 1 is 0.33. Long division is used instead.",
        "Doubling is not used: RuntimeError: Cannot load. Long division is used instead.",
    ]
