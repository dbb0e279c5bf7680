"""The notebooks in docs run, and give the output that they contain."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
TIME = re.compile(r"\b\d+:\d\d\b|\b\d+\.\d s\b")
NUMBER = re.compile(r"\d[\d.,]*")

pytestmark = pytest.mark.slow


@pytest.fixture
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder in which Python finds this code, and Jupyter no settings of the user."""
    for name in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_a_notebook_gives_its_output(path: Path, own_folder: Path) -> None:
    held = nbformat.read(path, as_version=4)
    ran = executed(path, own_folder)
    for cell, again in zip(held.cells, ran.cells, strict=True):
        assert list(shown(again)) == list(shown(cell)), cell.source
    text = path.read_text("utf-8")
    assert not re.search(r"/(?:home|tmp|work|root|Users)/", text), "it names a folder of a machine"
    assert len(text) < 40_000


def executed(path: Path, folder: Path) -> Any:
    """Return a notebook after running it in a folder with this Python."""
    notebook = nbformat.read(path, as_version=4)
    resources = {"metadata": {"path": str(folder)}}
    return NotebookClient(notebook, timeout=300, resources=resources).execute()


def shown(cell: Any) -> Iterator[str]:
    """Yield a cell's outputs, with times masked, and also numbers if the cell's tag is `varies`."""
    varies = "varies" in cell.metadata.get("tags", [])
    for output in cell.get("outputs", []):
        for text in (output.get("text", ""), *sorted(output.get("data", {}).values())):
            timeless = TIME.sub("TIME", "".join(text))
            yield " ".join(NUMBER.sub("N", timeless).split()) if varies else timeless
