import os
from pathlib import Path

import pytest

from pipelines.corpus.code import code_hash
from pipelines.corpus.spec import CORPORA, SAMPLE
from shards.errors import UserError
from tests.pipelines.own_code import forget

SOURCES = {
    "notes_of_mine.py": "from rules import SUFFIX\n\n"
    "def never():\n    import lazy_one, ftfy\n    from mine.lazy import x\n",
    "rules.py": "SUFFIX = '!'\n",
    "unrelated.py": "X = 1\n",
    "mine/__init__.py": "",
    "mine/notes.py": "from .inner import x\n",
    "mine/inner.py": "x = 1\n",
    "mine/lazy.py": "raise RuntimeError('imported')\n",
    ".venv/lib/site-packages/ftfy.py": "X = 1\n",
}


def test_every_corpus_of_this_package_is_listed() -> None:
    paths = SAMPLE.parent.glob("*.py")
    assert {path.stem for path in paths if "\nCORPUS = " in path.read_text()} == {*CORPORA}


@pytest.mark.parametrize(
    ("module", "parts"),
    [
        ("notes_of_mine", {"notes_of_mine.py", "rules.py", "mine/__init__.py", "mine/lazy.py"}),
        ("mine.notes", {"mine/__init__.py", "mine/notes.py", "mine/inner.py"}),
    ],
)
def test_the_hash_covers_a_module_and_its_own_imports(
    code: Path, module: str, parts: set[str]
) -> None:
    """The hash is computed without importing modules, and leaves out those of other packages."""
    for name, source in SOURCES.items():
        (code / name).parent.mkdir(parents=True, exist_ok=True)
        (code / name).write_text(source)
    first = code_hash(module)
    assert len(first) == 16
    changed = set()
    for second, (name, source) in enumerate(SOURCES.items(), 1_000_000_000):
        (code / name).write_text(f"{source}# edited\n")
        # Python compares the size, and the time in whole seconds, to decide whether a compiled file
        # is current.
        os.utime(code / name, (second, second))
        forget()
        changed |= {name} if code_hash(module) != first else set()
        (code / name).write_text(source)
        forget()
        assert code_hash(module) == first
    assert changed == parts


def test_the_hash_of_compiled_code_is_that_of_its_file() -> None:
    assert code_hash("orjson.orjson") != code_hash("math")
    with pytest.raises(UserError, match="sys has no file"):
        code_hash("sys")
