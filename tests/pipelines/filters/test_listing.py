import gzip
from pathlib import Path

import pytest

from pipelines.filters.listing import read_whole
from pipelines.readers.reading import Reading
from shards.errors import UserError

LINES = Reading(format="lines", text_fields=("text",))


def test_every_record_of_some_files(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    (tmp_path / "b.txt.gz").write_bytes(gzip.compress(b"three\n"))
    (tmp_path / "alone").write_text("four\n")
    paths = [str(tmp_path / "alone"), str(tmp_path / "*.txt*")]
    records = [(Path(path).name, item.value["text"]) for path, item in read_whole(paths, LINES)]
    assert records == [("alone", "four"), ("a.txt", "one"), ("a.txt", "two"), ("b.txt.gz", "three")]


def test_a_path_that_names_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"none\.txt does not exist"):
        list(read_whole([str(tmp_path / "none.txt")], LINES))
