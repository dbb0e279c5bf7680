"""A real S3 server on localhost."""

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import s3fs

from tests.engines.processes import answers, started, wait_until
from tests.ports import free_port

PROGRAM = Path(__file__).parents[2] / ".engines" / "bin" / "versitygw"
ACCESS, SECRET = "ACCESSKEYOFTEST", "secretoftest"
NEEDED = pytest.mark.skipif(
    not PROGRAM.exists(), reason=f"the S3 server ({PROGRAM.name}) is missing: run make engines"
)

KINDS = {
    "PutObject": "put", "UploadPart": "put", "CreateMultipartUpload": "put",
    "CompleteMultipartUpload": "put", "GetObject": "get", "HeadObject": "head",
    "ListObjectsV2": "list", "DeleteObject": "delete", "DeleteObjects": "delete",
}  # fmt: skip


@contextmanager
def serve_s3(
    folder: Path, *, buckets: tuple[str, ...], access_log: Path | None = None
) -> Iterator[str]:
    """Start a server that keeps objects in a folder, and yield the address of the server.

    Args:
        folder: The folder for the objects, with one folder per bucket.
        buckets: The names of the buckets.
        access_log: A file that gets one line per request.
    """
    for bucket in buckets:
        (folder / bucket).mkdir(parents=True)
    port = free_port()
    address = f"127.0.0.1:{port}"
    keys = ["--access", ACCESS, "--secret", SECRET, "--region", "us-east-1"]
    keys += ["--access-log", str(access_log)] if access_log else []
    log = folder / "log"
    with started([PROGRAM, *keys, "--port", address, "posix", folder], log=log) as server:
        wait_until(lambda: answers(port), server, log=log)
        yield f"http://{address}"


@contextmanager
def as_s3(
    address: str, monkeypatch: pytest.MonkeyPatch, **more: str
) -> Iterator[s3fs.S3FileSystem]:
    """Make a server the S3 of this process and its commands through environment variables.

    Args:
        address: The address of the server, or of its proxy.
        monkeypatch: The fixture that restores the environment.
        more: Further environment variables.
    """
    for name, value in {
        "AWS_ENDPOINT_URL": address,
        "AWS_ACCESS_KEY_ID": ACCESS,
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
        **more,
    }.items():
        monkeypatch.setenv(name, value)
    # fsspec caches clients together with the settings that they had when they were created.
    s3fs.S3FileSystem.clear_instance_cache()
    yield s3fs.S3FileSystem()
    s3fs.S3FileSystem.clear_instance_cache()


def counted(log: Path) -> Counter[str]:
    """Return the numbers of requests in a server's log, by kind of request."""
    names = re.findall(r" s3_(\w+) ", log.read_text(errors="replace"))
    return Counter(KINDS[name] for name in names if name in KINDS)
