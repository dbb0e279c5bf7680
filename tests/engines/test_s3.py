from collections.abc import Iterator
from pathlib import Path

import pytest
import s3fs

from pipelines.read.files import InputFile, match_inputs, open_input
from pipelines.read.split import FileSplit, open_split, split_file
from shards.errors import UserError
from shards.storage import address as addresses
from tests.engines.s3_server import ACCESS, NEEDED, SECRET, as_s3, serve_s3

pytestmark = NEEDED

NAMES = ("part-2.json", "part-10.json", "sub/part-1a.json", "sub/deep/part-3.json", "readme.txt")
ADVICE = r"Check bucket and path, AWS_ACCESS_KEY_ID"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("s3")


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    """The address of a server that has a corpus."""
    with serve_s3(folder, buckets=("corpora", "other")) as address:
        region = {"region_name": "us-east-1"}
        system = s3fs.S3FileSystem(
            key=ACCESS, secret=SECRET, endpoint_url=address, client_kwargs=region
        )
        system.pipe({f"corpora/web/2026/{name}": name.encode() for name in NAMES})
        yield address


@pytest.fixture
def s3(address: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[s3fs.S3FileSystem]:
    """The server as this process's S3, configured by environment variables as users do it."""
    with as_s3(address, monkeypatch) as system:
        yield system


@pytest.fixture
def local(tmp_path: Path) -> Path:
    for name in NAMES:
        path = tmp_path / "web" / "2026" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(name.encode())
    return tmp_path


def match(spec: str, pattern: str | tuple[str, ...] = "part-*.json") -> list[InputFile]:
    return match_inputs([spec], pattern=pattern, default_name="web")


def split_of(url: str) -> FileSplit:
    (file,) = match(url)
    (split,) = split_file(file, file.bytes)
    return split


@pytest.mark.usefixtures("s3")
@pytest.mark.parametrize(
    "spec",
    [
        "web",
        "web/2026/",
        "web/2026/part-10.json",
        "web/2026/part-?.json",
        "web/*/part-*.json",
        "web/**/part-*.json",
        "web/2026/s*/*",
        "web/2026/*",
    ],
)
def test_a_corpus_has_the_same_names_on_disk_and_in_a_bucket(local: Path, spec: str) -> None:
    disk, bucket = match(f"{local}/{spec}"), match(f"s3://corpora/{spec}")
    assert [(f.source, f.relative, f.bytes) for f in bucket] == [
        (f.source, f.relative, f.bytes) for f in disk
    ]
    assert all(file.etag and not file.mtime_ns for file in bucket)
    assert all(file.path.startswith("s3://corpora/web/2026/") for file in bucket)
    assert [open_input(f.path).read() for f in bucket] == [Path(f.path).read_bytes() for f in disk]


def test_an_object_written_again_while_it_is_read_is_refused(s3: s3fs.S3FileSystem) -> None:
    url = "s3://other/read/part-1.json"
    s3.pipe(url, b"a" * (10 << 20))
    with open_split(split_of(url)) as file:
        file.read(1)
        s3.pipe(url, b"b" * (10 << 20))
        with pytest.raises(UserError, match=r"part-1.json cannot be read"):
            file.read()


@pytest.mark.usefixtures("s3")
@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("s3://nowhere", r"s3://nowhere does not exist or is not visible to you"),
        ("s3://nowhere/web", r"s3://nowhere/web does not exist.*bucket"),
        ("s3://nowhere/*.json", r"s3://nowhere/\*.json does not exist or is not visible to you"),
        ("s3://corpora/none", r"s3://corpora/none does not exist or is not visible to you\. Check"),
        ("s3://corpora/web/*.zst", r"No file matches s3://corpora/web/\*.zst"),
        ("s3://corpora/none/*.zst", r"s3://corpora/none/\*.zst does not exist"),
    ],
)
def test_a_missing_bucket_or_path_is_reported(url: str, message: str) -> None:
    with pytest.raises(UserError, match=message) as raised:
        match(url)
    check_paragraph(str(raised.value))


@pytest.mark.usefixtures("s3")
def test_the_error_for_a_folder_without_matches_lists_its_files() -> None:
    message = r"No file in s3://corpora/web matches '\*.zst'; it contains 2026/part-10.json"
    with pytest.raises(UserError, match=message):
        match("s3://corpora/web", "*.zst")


WRONG = rf"{ADVICE} and AWS_SECRET_ACCESS_KEY"
NONE = dict.fromkeys(("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"), "")
NO_FILES = dict.fromkeys(("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"), "/none")
NOBODY = {"AWS_ENDPOINT_URL": "http://127.0.0.1:9", "AWS_MAX_ATTEMPTS": "1"}


@pytest.mark.usefixtures("s3")
@pytest.mark.parametrize("url", ["s3://corpora/web", "s3://corpora/web/*.json"])
@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"AWS_SECRET_ACCESS_KEY": "wrongsecret"}, WRONG),
        ({"AWS_ACCESS_KEY_ID": "WRONGACCESSKEY"}, WRONG),
        ({**NONE, **NO_FILES}, rf"web.* cannot be read \(.*credentials\)\. {ADVICE}"),
        (NOBODY, rf"web.* cannot be read \(Could not connect.*\)\. {ADVICE}"),
    ],
)
def test_access_errors_are_reported_without_secrets(
    monkeypatch: pytest.MonkeyPatch, url: str, variables: dict[str, str], message: str
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(addresses, "WAITS", (0.01,))
    s3fs.S3FileSystem.clear_instance_cache()
    with pytest.raises(UserError, match=message) as raised:
        match(url)
    check_paragraph(str(raised.value))


def check_paragraph(text: str) -> None:
    """Check that an error is one paragraph and contains no secrets."""
    assert "\n" not in text
    assert len(text) < 700
    for secret in (ACCESS, SECRET, "wrongsecret", "WRONGACCESSKEY", "Signature="):
        assert secret not in text
