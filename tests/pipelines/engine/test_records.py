from pathlib import Path

import pytest

from pipelines.engine.records import finished_record, read_record
from pipelines.map.mapper import SplitRecord
from shards.errors import DamageError
from shards.storage.files import canonical, crc32c_of, read_json, write_json
from tests.pipelines.mapped import leave, record, splits


@pytest.mark.parametrize("stem", ["../x", "/etc/x", "a/b", "a/../../x"])
def test_no_record_names_a_file_outside_of_its_folder(
    tmp_path: Path, file: Path, stem: str
) -> None:
    leave(tmp_path, "t", record(splits(file)[0], stems=["x"]))
    content = read_json(tmp_path / "t.json")
    content["segments"][0]["stem"] = stem
    del content["seal"]
    write_json(tmp_path / "t.json", {**content, "seal": crc32c_of(canonical(content))})
    assert finished_record(SplitRecord, tmp_path / "t.json") is None
    with pytest.raises(DamageError, match=r"t\.json.segments\[0\]: .* is no (path|name)"):
        read_record(SplitRecord, tmp_path / "t.json")
