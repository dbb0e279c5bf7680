"""Corpora of one's own, by module path and by the name of an entry point, and formats of theirs."""

import gzip
import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from pipelines.corpus.code import CODE, code_hash
from pipelines.corpus.recipe import corpus_module, corpus_names
from pipelines.corpus.sources import MODULE, match_corpora, other_modules
from pipelines.run.append import append
from pipelines.run.build import build
from shards.errors import UserError
from shards.manifest import Manifest
from tests.pipelines.runs import page, shipped, small, write_wudao

NOTES = """
from pipelines.corpus import Broken, Document, Options, Reading, Recipe, always, required_text
from pipelines.corpus import strings


def pages(stream):
    for block in stream.read().split(b"%%"):
        if block == b"?":
            yield Broken("bad-archive", block)
        elif block == b"!":
            raise KeyError("exclamation")
        else:
            yield {"body": block.decode(), "raw": block}


def documents(record, options):
    return (Document(required_text(record, "body"), {"kind": "note"}),)


RECIPE = Recipe(
    name="notes", about="Notes.", pattern=("*.pages", "*.pages.gz"), options=Options,
    reading=always(Reading(read=pages)), provenance=strings("kind"), documents=documents,
)
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that holds the module my_notes, and the package mine with the module notes."""
    folder = tmp_path / "code"
    (folder / "mine").mkdir(parents=True)
    (folder / "mine" / "__init__.py").touch()
    for name in ("my_notes.py", "mine/notes.py"):
        (folder / name).write_text(NOTES)
    monkeypatch.syspath_prepend(str(folder))
    yield folder
    forget()


def forget() -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] in ("mine", "my_notes")]:
        del sys.modules[name]
    importlib.invalidate_caches()
    code_hash.cache_clear()


def install(folder: Path) -> None:
    """Make the folder a place where a package with an entry point is installed."""
    about = folder / "mine-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[corpusmill.corpora]\nmemos = mine.notes\n")


@pytest.fixture
def inputs(tmp_path: Path) -> dict[str, Path]:
    pages = tmp_path / "pages"
    pages.mkdir()
    (pages / "a.pages").write_text("%%".join(f"a note of mine, number {i}" for i in range(9)))
    (pages / "b.pages").write_text("one note%%?%%another\0 note")
    zh = write_wudao(tmp_path / "zh" / "part-1.json", [page(i) for i in range(5)]).parent
    return {"zh": zh, "notes": pages}


def made(inputs: dict[str, Path], output: Path, corpus: str, **changes: Any) -> Manifest:
    specs = (f"zh={inputs['zh']}", f"n={corpus}:{inputs['notes']}")
    return build("pipelines.wudao", small(output, *specs, max_reject_rate=0.5, **changes))


@pytest.mark.parametrize("corpus", ["mine.notes", "my_notes"])
def test_a_corpus_by_its_module(
    own: Path, inputs: dict[str, Path], tmp_path: Path, corpus: str
) -> None:
    assert own
    manifest = made(inputs, tmp_path / "out", corpus)
    entry = manifest.options["corpora"]["n"]
    assert entry == {"corpus": "notes", MODULE: corpus, CODE: code_hash(corpus)}
    rows = audit(tmp_path / "out", manifest, "n")
    assert [row["reason"] for row in rows].count("bad-archive") == 1
    assert sum(row["reason"] is None for row in rows) == 10


def audit(output: Path, manifest: Manifest, source: str) -> list[dict[str, Any]]:
    tables = [table for each in manifest.generations for table in each.audit]
    return [
        row
        for table in tables
        if table.source == source
        for row in pq.read_table(output / table.path).to_pylist()
    ]


def test_a_corpus_of_an_installed_package(
    own: Path, inputs: dict[str, Path], tmp_path: Path
) -> None:
    assert corpus_module("memos") is None
    install(own)
    assert corpus_module("memos") == "mine.notes"
    assert corpus_module("pile") == "pipelines.pile"
    assert "memos" in corpus_names()
    given = small(tmp_path, f"zh={inputs['zh']}", f"n=memos:{inputs['notes']}", f"p=pile:{own}")
    assert other_modules(given) == ["mine.notes"]
    by_name = made(inputs, tmp_path / "name", "memos")
    by_module = made(inputs, tmp_path / "module", "mine.notes")
    assert by_name.identity == by_module.identity
    assert shipped(tmp_path / "name") == shipped(tmp_path / "module")


def test_what_is_and_what_is_not_a_corpus(own: Path, tmp_path: Path) -> None:
    assert own

    def told(spec: str) -> str:
        with pytest.raises(UserError) as refused:
            match_corpora("pipelines.wudao", small(tmp_path, spec))
        return str(refused.value)

    assert "there is no corpus 'mine.notse'" in told("n=mine.notse:/data")
    assert "there is no corpus 'os.path'" in told("n=os.path:/data")
    assert "did you mean pile?" in told("n=pil:/data")
    (own / "mine" / "bad.py").write_text("import nowhere\n")
    assert "the corpus mine.bad: it cannot be imported" in told("n=mine.bad:/data")
    # A scheme, a hub's name and a path are none.
    assert "there is no corpus" not in told("n=nowhere://bucket/data")
    assert "there is no corpus" not in told("n=./mine.notes:/data")


def test_it_grows_and_is_refused_after_an_edit(
    own: Path, inputs: dict[str, Path], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    first = made(inputs, out, "mine.notes")
    (inputs["notes"] / "c.pages").write_text("a third file%%with two notes")
    specs = (f"zh={inputs['zh']}", f"n=mine.notes:{inputs['notes']}")
    options = small(out, *specs, max_reject_rate=0.5, append=True)
    append("pipelines.wudao", options)
    (own / "mine" / "notes.py").write_text(NOTES.replace('"note"', '"memo"'))
    forget()
    with pytest.raises(UserError, match=r"the code of the corpus of 'n' .*was edited since\. "):
        made(inputs, out, "mine.notes")
    assert first.identity


def test_a_reader_that_fails_says_where(own: Path, inputs: dict[str, Path], tmp_path: Path) -> None:
    assert own
    (inputs["notes"] / "c.pages").write_text("fine%%!")
    with pytest.raises(
        UserError, match=r"c\.pages: the corpus mine\.notes: its read\(\) fails: KeyError: .*:11\)"
    ):
        made(inputs, tmp_path / "out", "mine.notes")


def test_a_cut_archive_is_damage_and_is_counted(
    own: Path, inputs: dict[str, Path], tmp_path: Path
) -> None:
    assert own
    packed = gzip.compress("%%".join(f"note {i} {i * i}" for i in range(999)).encode())
    (inputs["notes"] / "c.pages.gz").write_bytes(packed[:-40])
    manifest = made(inputs, tmp_path / "out", "mine.notes")
    reasons = [row["reason"] for row in audit(tmp_path / "out", manifest, "n")]
    assert reasons.count("truncated") == 1
