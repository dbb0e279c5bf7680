from pathlib import Path

import pytest


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """A folder with part files on two levels and two other files."""
    folder = tmp_path / "corpus"
    for name in ("part-2.json", "part-10.json", "sub/part-1a.json", "readme.txt", "parts.json"):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"[]")
    return folder
