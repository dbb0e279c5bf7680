"""A real S3 server on localhost."""

import re
import socket
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.ports import free_port

PROGRAM = Path(__file__).parents[2] / ".engines" / "bin" / "versitygw"
ACCESS, SECRET = "ACCESSKEYOFTEST", "secretoftest"

KINDS = {
    "PutObject": "put", "UploadPart": "put", "CreateMultipartUpload": "put",
    "CompleteMultipartUpload": "put", "GetObject": "get", "HeadObject": "head",
    "ListObjectsV2": "list", "DeleteObject": "delete", "DeleteObjects": "delete",
}  # fmt: skip


@contextmanager
def serve_s3(
    folder: Path, *, buckets: tuple[str, ...], access_log: Path | None = None
) -> Iterator[str]:
    """Yield the address of a server that keeps objects in a folder; it ends with the block.

    Args:
        folder: Where objects lie, one folder per bucket.
        buckets: Their names.
        access_log: Gets one line per request.
    """
    for bucket in buckets:
        (folder / bucket).mkdir(parents=True)
    port = free_port()
    address = f"127.0.0.1:{port}"
    keys = ["--access", ACCESS, "--secret", SECRET, "--region", "us-east-1"]
    keys += ["--access-log", str(access_log)] if access_log else []
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(
            [str(PROGRAM), *keys, "--port", address, "posix", str(folder)], stdout=log, stderr=log
        )
    try:
        _wait(server, port, log=folder / "log")
        yield f"http://{address}"
    finally:
        server.kill()
        server.wait()


def _wait(server: "subprocess.Popen[bytes]", port: int, *, log: Path) -> None:
    for _ in range(600):
        if server.poll() is not None:
            raise RuntimeError(f"the S3 server ended: {log.read_text()}")
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except ConnectionRefusedError:
            time.sleep(0.05)
        else:
            return
    raise RuntimeError(f"the S3 server does not answer: {log.read_text()}")


def counted(log: Path) -> Counter[str]:
    """Return the requests that a server has logged, by kind."""
    names = re.findall(r" s3_(\w+) ", log.read_text(errors="replace"))
    return Counter(KINDS[name] for name in names if name in KINDS)
