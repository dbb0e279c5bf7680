from pathlib import Path

import pytest

from pipelines.planning.storage import (
    PAGE_KEYS,
    CountingStorage,
    Requests,
    counting,
    upload,
)


def test_what_is_asked_of_a_path_is_counted_as_s3_counts_it() -> None:
    with counting() as (folder, calls):
        file = folder / "file"
        file.write(b"content")
        assert file.size() == 7
        assert file.read() == b"content"
        assert file.read_ranges([(0, 3), (4, 7)]) == [b"con", b"ent"]
        assert not (folder / "absent").exists()
        assert folder.files() == {"file": 7}
        assert not (folder / "empty").files()
        file.unlink()
        total = sum((call.requests for call in calls), Requests())
    assert total == Requests(put=1, head=4, get=3, list=4, delete=1, bytes=13)
    assert not CountingStorage.objects


def test_a_local_file_is_uploaded(tmp_path: Path) -> None:
    for name, content in {"a": b"content", "empty": b""}.items():
        (tmp_path / name).write_bytes(content)
        with counting() as (folder, calls):
            (folder / name).upload(tmp_path / name)
            assert [call.written for call in calls] == [len(content)]
            assert (folder / name).read() == content


def test_long_listings_have_pages() -> None:
    with counting() as (folder, calls):
        for number in range(PAGE_KEYS + 1):
            (folder / f"{number}").write(b"")
        calls.clear()
        assert len(folder.files()) == PAGE_KEYS + 1
        assert [call.requests.list for call in calls] == [2]


def test_an_absent_file_is_an_error() -> None:
    with counting() as (folder, _), pytest.raises(FileNotFoundError):
        (folder / "absent").read()


def test_a_large_file_goes_up_in_parts() -> None:
    assert upload((100 << 20) - 1).put == 1
    assert upload(200 << 20).put == 6
