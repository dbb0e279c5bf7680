from pathlib import Path

import pytest

from pipelines.inputs.files import InputFile
from pipelines.run.ledger import NAME, Ledger
from shards.errors import DamageError

FILES = [
    InputFile(source=source, path=f"/in/{name}", relative=name, bytes=7, mtime_ns=8, etag="e")
    for source, name in [("b", "1"), ("a", "2"), ("a", "1")]
]


def test_what_is_named_is_open_until_the_manifest_has_it(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    assert ledger.open_entry(0) is None
    ledger.name(3, FILES)
    entry = ledger.open_entry(2)
    assert entry is not None
    assert entry.files == [FILES[2], FILES[1], FILES[0]], "by source and path"
    assert (tmp_path / NAME).exists()
    assert ledger.open_entry(3) is None
    assert not (tmp_path / NAME).exists()


def test_a_damaged_ledger_is_named(tmp_path: Path) -> None:
    Ledger(tmp_path).name(3, FILES)
    text = (tmp_path / NAME).read_text()
    (tmp_path / NAME).write_text(text.replace('"bytes": 7', '"bytes": 9', 1))
    with pytest.raises(DamageError, match=r"ledger\.json is damaged .*Delete it"):
        Ledger(tmp_path).open_entry(2)
