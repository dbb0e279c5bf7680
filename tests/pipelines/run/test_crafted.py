"""Whatever stands in a ledger, it is told in one paragraph or does no harm."""

from pathlib import Path
from typing import Any

import pytest

from pipelines.inputs.files import InputFile
from pipelines.run.ledger import NAME, Ledger
from shards.errors import DamageError, UserError
from shards.storage.files import canonical, crc32c_of, read_json
from tests.shards.json_mutations import mutated, put

FILES = [
    InputFile(source=source, path=f"/in/{name}", relative=name, bytes=7, mtime_ns=8, etag="e")
    for source, name in [("wudao", "1"), ("a", "2")]
]


def sealed_again(value: Any) -> Any:
    if isinstance(value, dict) and "seal" in value:
        del value["seal"]
        try:
            value["seal"] = crc32c_of(canonical(value))
        except ValueError:
            value["seal"] = 0
    return value


@pytest.mark.parametrize("seeds", [range(30), pytest.param(range(1000), marks=pytest.mark.nightly)])
def test_a_crafted_ledger_is_told_or_harmless(tmp_path: Path, seeds: range) -> None:
    Ledger(tmp_path).name(2, FILES)
    whole, told = read_json(tmp_path / NAME), list[str]()
    for seed in seeds:
        put(tmp_path / NAME, sealed_again(mutated(whole, seed)))
        try:
            entry = Ledger(tmp_path).open_entry(1)
            assert entry is None or all(isinstance(file, InputFile) for file in entry.files)
        except (UserError, DamageError) as error:
            told.append(str(error))
    assert told, "no mutation was noticed"
    assert [text for text in told if "\n" in text or len(text) > 1000] == []
