from pathlib import Path

from pipelines.inputs.files import match_inputs


def test_a_path_that_exists_is_no_name_and_a_path(tmp_path: Path) -> None:
    folder = tmp_path / "a=b"
    folder.mkdir()
    (folder / "part-1.json").write_bytes(b"[]")
    for spec in (str(folder), f"{folder}/*", f"file://{folder}"):
        (file,) = match_inputs([spec], pattern="part-*.json", default_name="wudao")
        assert (file.source, file.relative) == ("wudao", "part-1.json")
