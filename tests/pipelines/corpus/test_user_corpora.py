"""Users' corpora, which a module or an entry point names, with their own formats."""

import gzip
from pathlib import Path
from typing import Any

import pytest

from pipelines.corpus.code import CORPUS_CODE, code_hash
from pipelines.corpus.sources import CORPUS_MODULE, user_corpus_modules
from pipelines.corpus.spec import corpus_names, find_corpus
from pipelines.job.build import build
from shards.errors import UserError
from shards.manifest import Manifest
from tests.pipelines.own_code import install
from tests.pipelines.runs import page, shipped, small, write_wudao

NOTES = """
from pipelines.corpus import BrokenRecord, Document, InputFormat, Options, CorpusSpec
from pipelines.corpus import required_text, text_columns


def pages(stream):
    for block in stream.read().split(b"%%"):
        if block == b"?":
            yield BrokenRecord("bad-archive", block)
        else:
            page = {"body": block.decode()}  # without its bytes where it is short
            yield {**page, "raw": block} if len(block) > 10 else page


def documents(record, options):
    return (Document(required_text(record, "body"), {"kind": "note"}),)


CORPUS = CorpusSpec(
    name="notes", about="Notes.", pattern=("*.pages", "*.pages.gz"), options=Options,
    input_format=InputFormat(read=pages), provenance=text_columns("kind"), documents=documents,
)
"""


@pytest.fixture
def own(code: Path) -> Path:
    """A folder that has the package mine with the module notes."""
    (code / "mine").mkdir()
    (code / "mine" / "__init__.py").touch()
    (code / "mine" / "notes.py").write_text(NOTES)
    return code


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
    return build(
        "pipelines.wudao",
        small(output, *specs, max_reject_rate=0.5, skip_unreadable=True, **changes),
    )


def test_a_corpus_by_its_module_or_the_name_of_an_installed_package(
    own: Path, inputs: dict[str, Path], tmp_path: Path
) -> None:
    packed = gzip.compress("%%".join(f"note {i} {i * i}" for i in range(999)).encode())
    (inputs["notes"] / "c.pages.gz").write_bytes(packed[:-40])
    manifest = made(inputs, tmp_path / "module", "mine.notes")
    entry = manifest.options["corpora"]["n"]
    assert entry == {
        "corpus": "notes",
        CORPUS_MODULE: "mine.notes",
        CORPUS_CODE: code_hash("mine.notes"),
    }
    account = manifest.generations[0].accounting["n"]
    assert account["quarantined"] == {"bad-archive": 1, "nul": 1, "truncated": 1}
    assert account["kept"] > 500
    with pytest.raises(UserError, match=r"there is no corpus 'memos' \(in the call\)"):
        find_corpus("memos", where="the call")
    install(own, "[corpusmill.corpora]\nmemos = mine.notes\n")
    assert find_corpus("memos", where="") == "mine.notes"
    assert find_corpus("pile", where="") == "pipelines.pile"
    assert "memos" in corpus_names()
    given = small(tmp_path, f"zh={inputs['zh']}", f"n=memos:{inputs['notes']}", f"p=pile:{own}")
    assert user_corpus_modules(given) == ["mine.notes"]
    by_name = made(inputs, tmp_path / "name", "memos")
    assert by_name.identity == manifest.identity
    assert shipped(tmp_path / "name") == shipped(tmp_path / "module")
