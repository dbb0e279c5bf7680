import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import s3fs
import zstandard

from pipelines.inputs.files import InputFile, match_inputs, open_input
from pipelines.inputs.split import Split, open_split, split_file
from pipelines.wudao import RECIPE
from shards.errors import UserError
from shards.storage import address as addresses
from tests.engines.s3_server import ACCESS, NEEDED, SECRET, as_s3, serve_s3
from tests.pipelines.runs import content, page

pytestmark = NEEDED

NAMES = ("part-2.json", "part-10.json", "sub/part-1a.json", "sub/deep/part-3.json", "readme.txt")
ADVICE = r"Check bucket and path, AWS_ACCESS_KEY_ID"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("s3")


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    """A server with one corpus."""
    with serve_s3(folder, buckets=("corpora", "other")) as address:
        region = {"region_name": "us-east-1"}
        system = s3fs.S3FileSystem(
            key=ACCESS, secret=SECRET, endpoint_url=address, client_kwargs=region
        )
        system.pipe({f"corpora/web/2026/{name}": name.encode() for name in NAMES})
        yield address


@pytest.fixture
def s3(address: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[s3fs.S3FileSystem]:
    """The server as this process's S3, configured as for users: through the environment."""
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


def split_of(url: str) -> Split:
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


@pytest.mark.usefixtures("s3")
def test_a_bucket_is_a_folder_and_all_patterns_apply(local: Path) -> None:
    patterns = ("readme.*", "*/part-*.json")
    names = [file.relative for file in match(str(local), patterns)]
    assert [file.relative for file in match("s3://corpora", patterns)] == names
    assert len(names) == 5


@pytest.mark.usefixtures("s3")
def test_a_listing_of_several_pages_is_whole(folder: Path) -> None:
    (folder / "other" / "many").mkdir()
    for number in range(1001):
        (folder / "other" / "many" / f"part-{number:04}.json").write_bytes(b"[]")
    files = match("s3://other/many")
    assert [file.relative for file in files] == [f"part-{n:04}.json" for n in range(1001)]


def test_reading_seeks_and_joins_requests(s3: s3fs.S3FileSystem) -> None:
    content = bytes(range(251)) * 80_000  # 20 MB: three requests
    s3.pipe("other/large.bin", content)
    with open_input("s3://other/large.bin") as file:
        assert file.read() == content
        assert file.seek(0, 2) == len(content)
        assert file.read(1) == b""
        assert file.seek(12_345_678) == 12_345_678
        assert file.read(1000) == content[12_345_678:][:1000]
        file.seek(-7, 1)
        assert file.read(7) == content[12_346_671:][:7]


def test_an_object_written_again_is_refused(s3: s3fs.S3FileSystem) -> None:
    url = "s3://other/changed/part-1.json"
    s3.pipe(url, b"[1, 2, 3]")
    split = split_of(url)
    with open_split(split) as file:
        assert file.read() == b"[1, 2, 3]"
    s3.pipe(url, b"[1, 2, 4]")
    with pytest.raises(UserError, match=r"part-1.json was written again after the run began"):
        open_split(split)
    s3.pipe(url, b"[1, 2, 3, 4]")
    with pytest.raises(UserError, match=r"has 12 bytes and had 9 when the run began"):
        open_split(split)
    s3.rm(url)
    with pytest.raises(UserError, match=r"part-1.json does not exist or is not visible to you"):
        open_split(split)


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
def test_a_folder_without_matches_says_what_it_holds() -> None:
    with pytest.raises(
        UserError, match=r"No file in s3://corpora/web matches '\*.zst'; it holds 2026/part-10.json"
    ):
        match("s3://corpora/web", "*.zst")


@pytest.mark.usefixtures("s3")
@pytest.mark.parametrize("url", ["s3://corpora/web", "s3://corpora/web/*.json"])
@pytest.mark.parametrize(
    ("name", "value"),
    [("AWS_SECRET_ACCESS_KEY", "wrongsecret"), ("AWS_ACCESS_KEY_ID", "WRONGACCESSKEY")],
)
def test_wrong_credentials_are_reported_and_not_shown(
    monkeypatch: pytest.MonkeyPatch, url: str, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    s3fs.S3FileSystem.clear_instance_cache()
    with pytest.raises(UserError, match=rf"{ADVICE} and AWS_SECRET_ACCESS_KEY") as raised:
        match(url)
    check_paragraph(str(raised.value))


@pytest.mark.usefixtures("s3")
def test_missing_credentials_are_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    s3fs.S3FileSystem.clear_instance_cache()
    with pytest.raises(UserError, match=rf"web cannot be read \(.*credentials\)\. {ADVICE}"):
        match("s3://corpora/web")


@pytest.mark.usefixtures("s3")
def test_a_server_that_does_not_answer_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    monkeypatch.setattr(s3fs.S3FileSystem, "retries", 1)
    monkeypatch.setattr(addresses, "WAITS", (0.01,) * 6)
    s3fs.S3FileSystem.clear_instance_cache()
    with pytest.raises(UserError, match=rf"cannot be read \(Could not connect.*\)\. {ADVICE}") as e:
        match("s3://corpora/web")
    check_paragraph(str(e.value))


def check_paragraph(text: str) -> None:
    """Check that an error is one paragraph without secrets."""
    assert "\n" not in text
    assert len(text) < 700
    for secret in (ACCESS, SECRET, "wrongsecret", "WRONGACCESSKEY", "Signature="):
        assert secret not in text


@pytest.mark.usefixtures("s3")
def test_a_dataset_made_from_s3_is_that_of_the_local_files(folder: Path, tmp_path: Path) -> None:
    texts = tmp_path / "texts"
    texts.mkdir()
    lines = b"".join(
        orjson.dumps({"text": f"{page(number)['content']} {number}"}) + b"\n"
        for number in range(60)
    )
    (texts / "a.jsonl").write_bytes(lines)
    (texts / "b.jsonl.zst").write_bytes(zstandard.compress(lines[: len(lines) // 2]))
    pq.write_table(
        pa.table({"text": [page(100 + number)["content"] for number in range(40)]}),
        texts / "c.parquet",
        row_group_size=8,
    )
    shutil.copytree(texts, folder / "other" / "texts")
    made = {}
    for name, source in (("disk", str(texts)), ("bucket", "s3://other/texts")):
        command = [sys.executable, "-m", "pipelines.text", "--input", source]
        command += ["--split-bytes", "4000"]
        command += ["--tokenizer", RECIPE.sample_tokenizer, "--output", str(tmp_path / name)]
        done = subprocess.run(
            [*command, "--workers", "2", "--max-reject-rate", "0.1"],
            capture_output=True, text=True, check=False, timeout=120,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert SECRET not in done.stderr
        made[name] = content(tmp_path / name)
    assert made["disk"] == made["bucket"]
    assert len(made["disk"]) > 5
