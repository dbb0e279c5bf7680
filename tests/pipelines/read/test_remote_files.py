import io
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta, timezone
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from fsspec.implementations.memory import MemoryFileSystem

from pipelines.read.files import InputFile, list_inputs, match_inputs, open_input
from pipelines.read.remote_files import etag_of, open_remote
from pipelines.read.split import open_split, split_file
from shards.errors import UserError

NAMES = ("part-2.json", "part-10.json", "sub/part-1a.json", "sub/deep/part-3.json", "readme.txt")
HIDDEN = ("_temporary/0/part-4.json", "sub/.part-5.json", "sub/.old/part-6.json")
INSTANT = "2026-01-02T03:04:05+00:00"
EAST = timezone(timedelta(hours=1))


@pytest.fixture
def memory() -> Iterator[MemoryFileSystem]:
    system = MemoryFileSystem()
    for name in (*NAMES, *HIDDEN):
        system.pipe(f"/corpora/web/{name}", name.encode())
    yield system
    system.store.clear()
    system.pseudo_dirs[:] = [""]


@pytest.fixture
def local(tmp_path: Path) -> Path:
    for name in (*NAMES, *HIDDEN):
        path = tmp_path / "web" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(name.encode())
    return tmp_path


def match(spec: str, pattern: str | tuple[str, ...] = "part-*.json") -> list[InputFile]:
    return match_inputs([spec], pattern=pattern, default_name="web")


@pytest.mark.usefixtures("memory")
@pytest.mark.parametrize(
    "spec",
    [
        "",
        "web",
        "web/sub",
        "web/part-?.json",
        "web/**/part-*.json",
        "*/sub/*",
        "web/sub/.part-*",
        "web/_temporary/*/*",
    ],
)
@pytest.mark.parametrize("pattern", ["part-*.json", ("sub/part-*.json", "readme.*")])
def test_local_and_remote_files_have_the_same_names(
    local: Path, spec: str, pattern: str | tuple[str, ...]
) -> None:
    if spec == "web/sub":
        pattern = "*"
    listings = [
        list_inputs([f"{root}{spec}"], pattern=pattern, default_name="web")
        for root in (f"{local}/", "memory://corpora/")
    ]
    for name in ("hidden", "unmatched"):
        one, other = (getattr(listing, name) for listing in listings)
        assert [path.removeprefix("memory://corpora") for path in other] == [
            path.removeprefix(str(local)) for path in one
        ]
    here, there = match(f"{local}/{spec}", pattern), match(f"memory://corpora/{spec}", pattern)
    assert [(f.source, f.relative, f.bytes) for f in there] == [
        (f.source, f.relative, f.bytes) for f in here
    ]
    assert all(file.etag and not file.mtime_ns for file in there)
    assert all(file.mtime_ns and not file.etag for file in here)
    assert [open_input(f.path).read() for f in there] == [Path(f.path).read_bytes() for f in here]


@pytest.fixture
def listed(memory: MemoryFileSystem, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """A function that makes listings show links, as SFTP's do: to files, folders, or nothing."""
    real: dict[str, Any] = memory.find("/corpora/web", detail=True)

    def listed(**links: str) -> None:
        types = {f"/corpora/web/{name}": kind for name, kind in links.items()}
        targets = {name: {"name": name, "size": 7, "type": kind} for name, kind in types.items()}
        infos = real | {name: {**target, "type": "link"} for name, target in targets.items()}

        def info(_: object, path: str, **__: object) -> dict[str, Any]:
            if types.get(path) == "nothing" or "*" in path:
                raise FileNotFoundError(path)
            return targets.get(path, {"name": path, "type": "directory"})

        for name, call in (("find", lambda *_, **__: infos), ("info", info)):
            monkeypatch.setattr(MemoryFileSystem, name, call)
        monkeypatch.setattr(MemoryFileSystem, "glob", lambda *_, **__: infos)

    return listed


def refused(spec: str) -> dict[str, str]:
    """Return the files that an input refuses, after checking that it finds all others."""
    lists = [
        list_inputs([spec], pattern="part-*.json", default_name="web", growing=growing)
        for growing in (False, True)
    ]
    told = [{file.relative: why for file, why in each.refused.items()} for each in lists]
    assert told[0] == told[1]
    assert len(lists[0].files) == len(lists[1].files) >= len(NAMES) - 2
    return told[0]


def test_links_behind_a_url_are_followed_only_to_files(
    listed: Callable[..., None],
) -> None:
    listed(**{"part-4.json": "file", "notes": "file"})
    names = ["part-10.json", "part-2.json", "part-4.json", "sub/deep/part-3.json"]
    assert [file.relative for file in match("memory://corpora/web")][:4] == names
    listed(**{"part-4.json": "directory"})
    with pytest.raises(
        UserError, match=r"web/part-4\.json is a link to a folder, and links behind"
    ):
        match("memory://corpora/web")
    assert [*refused("memory://corpora/web")] == ["part-4.json"]
    listed(**{"part-4.json": "other"})
    with pytest.raises(UserError, match=r"web/part-4\.json is neither a file nor a folder"):
        match("memory://corpora/web")
    listed(**{"part-4.json": "nothing"})
    for spec in ("memory://corpora/web", "memory://corpora/web/*"):
        assert refused(spec) == {"part-4.json": "is a link to nothing"}


@pytest.mark.parametrize(
    ("info", "expected"),
    [
        ({"ETag": '"abc"', "LastModified": "today"}, "abc"),
        ({"etag": "abc"}, "abc"),
        ({"blob_id": "123", "lfs": None}, "123"),
        ({"ETag": "", "LastModified": datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=UTC)}, INSTANT),
        ({"LastModified": datetime(2026, 1, 2, 4, 4, 5, tzinfo=EAST)}, INSTANT),
        ({"updated": "2026-01-02T03:04:05Z"}, "2026-01-02T03:04:05Z"),
        ({"size": 3}, ""),
    ],
)
def test_etags(info: dict[str, Any], expected: str) -> None:
    assert etag_of(info) == expected


def test_reading_seeks(memory: MemoryFileSystem) -> None:
    content = bytes(range(251)) * 50_000  # 12.5 MB, which is more than the reader reads ahead
    memory.pipe("/large.bin", content)
    with open_input("memory://large.bin") as file:
        assert file.read() == content
        assert file.seek(0, io.SEEK_END) == len(content)
        assert file.read(1) == b""
        assert file.seek(10_345_678) == 10_345_678
        assert file.read(1000) == content[10_345_678:][:1000]
        assert file.seek(-1000, io.SEEK_CUR) == 10_345_678
        assert b"".join(iter(lambda: file.read(300_000), b"")) == content[10_345_678:]


def test_an_error_while_reading_is_reported(
    memory: MemoryFileSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Broken(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            raise OSError(f"connection to http://h/ lost after {size} bytes")

        def seek(self, *_: int) -> int:
            raise ValueError("Cannot seek streaming HTTP file")

    memory.pipe("/large.bin", b"0123")
    monkeypatch.setattr("shards.storage.address.WAITS", (0.0,) * 6)
    monkeypatch.setattr(MemoryFileSystem, "open", lambda *_, **__: Broken())
    file, _ = open_remote("memory://large.bin")
    for attempt in (file.read, partial(file.read, 3)):
        with pytest.raises(UserError, match=r"memory://large\.bin cannot be read \(.* http://h/ l"):
            attempt()
    with pytest.raises(UserError, match=r"cannot be read \(Cannot seek streaming HTTP file\)"):
        file.seek(3)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"[1, 2, 3]", r"part-1\.json was written again after the run began, so it is still being"),
        (b"[1, 2, 3, 4]", r"part-1\.json has 12 bytes and had 9 when the run began"),
        (None, r"part-1\.json does not exist"),
    ],
)
def test_a_file_written_again_is_refused(
    memory: MemoryFileSystem, content: bytes | None, message: str
) -> None:
    memory.pipe("/part-1.json", b"[1, 2, 3]")
    (file,) = match("memory://part-1.json")
    (split,) = split_file(file, file.bytes)
    with open_split(split) as stream:
        assert stream.read() == b"[1, 2, 3]"
    memory.rm("/part-1.json")
    if content:
        memory.pipe("/part-1.json", content)
        # Otherwise both files might seem to have been written at the same tick of the clock.
        memory.store["/part-1.json"].created += timedelta(seconds=1)
    with pytest.raises(UserError, match=message):
        open_split(split)


# Files on the web. Python's own server lists folders, but does not support ranges.


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def web(local: Path) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(local)))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_web_folders_and_files_are_found(web: str) -> None:
    names = ["part-10.json", "part-2.json", "sub/deep/part-3.json", "sub/part-1a.json"]
    assert [file.relative for file in match(f"{web}/web/")] == names
    assert [file.relative for file in match(f"{web}/web/part-*.json")] == names[:2]
    (file,) = match(f"{web}/web/part-10.json")
    assert (file.relative, file.path) == ("part-10.json", f"{web}/web/part-10.json")
    with pytest.raises(UserError, match=r"web/none does not exist or is not visible to you"):
        match(f"{web}/web/none")


@pytest.mark.parametrize("status", [403, 404, None])
def test_a_web_folder_that_cannot_be_listed_is_an_error(
    web: str, monkeypatch: pytest.MonkeyPatch, status: int | None
) -> None:
    def get(handler: Quiet) -> None:
        if not handler.path.endswith("/sub/deep/"):
            SimpleHTTPRequestHandler.do_GET(handler)
        elif status:
            handler.send_error(status)
        else:
            handler.close_connection = True  # closes the connection and sends no response

    monkeypatch.setattr("shards.storage.address.WAITS", (0.0,))
    monkeypatch.setattr(Quiet, "do_GET", get, raising=False)
    for spec in (f"{web}/web/", f"{web}/web/**/part-*.json"):
        for find in (match, looked):
            with pytest.raises(UserError, match=r"/web/.* (does not exist|cannot be read) .*\("):
                find(spec)
    monkeypatch.undo()
    assert len(match(f"{web}/web/")) == len(looked(f"{web}/web/")) == 4


def looked(spec: str) -> list[str]:
    listing = list_inputs([spec], pattern="part-*.json", default_name="web", growing=True)
    return sorted(file.relative for file in listing.files)


@pytest.mark.parametrize(
    "spec", ["memory://corpora/web", "memory://corpora/web/", "memory://corpora/web/*.json"]
)
def test_listings_follow_files_that_come_and_go(memory: MemoryFileSystem, spec: str) -> None:
    deep = [] if "*" in spec else ["sub/deep/part-3.json", "sub/part-1a.json"]
    assert looked(spec) == ["part-10.json", "part-2.json", *deep]
    memory.pipe("/corpora/web/part-5.json.part", b"[")
    memory.pipe("/corpora/web/part-6.json", b"")
    memory.pipe("/corpora/web/part-7.json", b"[]")
    assert looked(spec) == ["part-10.json", "part-2.json", "part-7.json", *deep]
    memory.rm("/corpora/web", recursive=True)
    assert looked(spec) == []
