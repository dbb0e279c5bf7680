import itertools
import os
from pathlib import Path

import pytest

from pipelines.corpus.code import code_hash
from pipelines.corpus.recipe import CORPORA, SAMPLE
from shards.errors import UserError
from tests.pipelines.own_code import forget

_SECONDS = itertools.count(1_000_000_000)


def write(folder: Path, *, package: str, suffix: str) -> None:
    home = folder / package if package else folder
    home.mkdir(exist_ok=True)
    if package:
        (home / "__init__.py").touch()
    dotted = f"{package}." if package else ""
    (home / "notes_of_mine.py").write_text(f"from {dotted}rules import SUFFIX\n")
    (home / "rules.py").write_text(f"SUFFIX = {suffix!r}\n")
    # By size and second Python decides whether what it has compiled is of this file.
    second = next(_SECONDS)
    os.utime(home / "rules.py", (second, second))
    forget()


def test_every_corpus_of_this_package_is_listed() -> None:
    paths = SAMPLE.parent.glob("*.py")
    assert {path.stem for path in paths if "\nRECIPE = " in path.read_text()} == {*CORPORA}


@pytest.mark.parametrize(
    ("package", "module"), [("mine", "mine.notes_of_mine"), ("", "notes_of_mine")]
)
def test_code_is_the_module_and_what_it_imports_of_its_own(
    code: Path, package: str, module: str
) -> None:
    write(code, package=package, suffix="!")
    first = code_hash(module)
    assert len(first) == 16
    home = code / package
    (home / "unrelated.py").write_text("X = 1\n")
    forget()
    assert code_hash(module) == first
    write(code, package=package, suffix="?")
    assert code_hash(module) != first
    write(code, package=package, suffix="!")
    assert code_hash(module) == first
    with (home / "notes_of_mine.py").open("a") as source:
        source.write("# edited\n")
    forget()
    assert code_hash(module) != first


def test_what_others_wrote_is_not_the_corpus_and_is_not_imported(code: Path) -> None:
    write(code, package="", suffix="!")
    notes = code / "notes_of_mine.py"
    lazy = "\n\ndef never():\n    import lazy_one, ftfy\n    from lazy_package.inner import x\n"
    notes.write_text(notes.read_text() + lazy)
    others = code / ".venv" / "lib" / "site-packages"
    others.mkdir(parents=True)
    (others / "ftfy.py").write_text("X = 1\n")
    (code / "lazy_package").mkdir()
    (code / "lazy_package" / "__init__.py").write_text("raise RuntimeError('imported')\n")
    (code / "lazy_package" / "inner.py").write_text("x = 1\n")
    forget()
    first = code_hash("notes_of_mine")
    (others / "ftfy.py").write_text("X = 2\n")
    forget()
    assert code_hash("notes_of_mine") == first
    (code / "lazy_package" / "inner.py").write_text("x = 2\n")
    forget()
    assert code_hash("notes_of_mine") != first


def test_relative_imports_and_packages_are_followed(code: Path) -> None:
    write(code, package="mine", suffix="!")
    notes = code / "mine" / "notes_of_mine.py"
    notes.write_text(notes.read_text().replace("from mine.rules", "from .rules"))
    forget()
    first = code_hash("mine.notes_of_mine")
    (code / "mine" / "rules.py").write_text("SUFFIX = '?'\n")
    forget()
    second = code_hash("mine.notes_of_mine")
    (code / "mine" / "__init__.py").write_text("X = 1\n")
    forget()
    assert len({first, second, code_hash("mine.notes_of_mine")}) == 3


def test_compiled_code_is_known_by_its_file() -> None:
    assert code_hash("orjson.orjson") != code_hash("math")
    with pytest.raises(UserError, match="sys has no file"):
        code_hash("sys")
