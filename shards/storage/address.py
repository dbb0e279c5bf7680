"""Addresses of files behind URLs: checks them, retries requests and explains failures.

Credentials and endpoints are left to each protocol's library, which reads them from the environment
or from its configuration files. They are never part of an address, because addresses are
printed and written next to the dataset.
"""

import errno
import logging
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar
from urllib.parse import urlsplit

from shards.errors import UserError
from shards.secrets import has_parameters, has_user, without_secrets

_LOG = logging.getLogger("corpusmill")
Result = TypeVar("Result")

MAX_ERROR_CHARS = 300

_EXTRAS = {"s3": "s3", "s3a": "s3", "http": "s3", "https": "s3", "hf": "hub"}
"""The extra of this package that is needed to read each protocol."""

_S3_ACCESS = (
    "Check bucket and path, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (or AWS_PROFILE), and "
    "AWS_ENDPOINT_URL for a server other than Amazon's; FSSPEC_S3_ANON=true reads a public bucket "
    "without credentials."
)
_ACCESS = {
    "s3": _S3_ACCESS,
    "s3a": _S3_ACCESS,
    "gs": "Check bucket and path, and GOOGLE_APPLICATION_CREDENTIALS.",
    "gcs": "Check bucket and path, and GOOGLE_APPLICATION_CREDENTIALS.",
    "hf": "Check repository and path, HF_TOKEN, and HF_ENDPOINT where a mirror is used.",
}


def is_url(path: str) -> bool:
    """Return whether a path is a URL."""
    return "://" in path


def error_text(error: Exception) -> str:
    """Return a library's error message, shortened, on one line."""
    message = "; ".join([str(error).rstrip("."), *getattr(error, "__notes__", ())])
    text = " ".join(message.split()).rstrip(".")
    if not text:
        return type(error).__name__
    return text if len(text) <= MAX_ERROR_CHARS else f"{text[:MAX_ERROR_CHARS]}..."


def check_address(url: str, what: str = "The input") -> None:
    """Check that an address contains no secret and is not a chain of addresses.

    Args:
        url: The address.
        what: The subject of messages, such as "The input".

    Raises:
        UserError: The address contains a password or a query, or is a chain of addresses.
    """
    if has_user(url):
        name = urlsplit(url).scheme.upper()
        raise UserError(
            f"{what} {without_secrets(url)} has a user or a password in it, and addresses are "
            f"stored with the dataset. Omit them, and set FSSPEC_{name}_USERNAME and "
            f"FSSPEC_{name}_PASSWORD, or the variables that the protocol's library reads."
        )
    if has_parameters(url):
        raise UserError(
            f"{what} {without_secrets(url)} has a query (?...), parameters (;...) or a fragment "
            "(#...), which may be a signature, and addresses are stored with the dataset. Omit it, "
            "or download the file first."
        )
    if "::" in url:
        raise UserError(
            f"{what} {without_secrets(url)} is a chain of addresses; give the address of plain "
            "files instead."
        )


@contextmanager
def url_errors_explained(
    url: str, what: str = "The input", *, done: str = "read"
) -> Iterator[None]:
    """Turn any failure behind a URL into a message that the user can act on.

    Args:
        url: The address.
        what: The subject of messages, such as "The input".
        done: The attempted action: "read", "written", ...

    Raises:
        UserError: Something failed; the message quotes the library and says what to check.
    """
    try:
        yield
    except (UserError, MemoryError):
        raise
    except ImportError as error:
        raise UserError(_missing_library(url, error)) from error
    except FileNotFoundError as error:
        # Some libraries report only the path.
        reason = "" if url.rstrip("/").endswith(str(error)) else f" ({error_text(error)})"
        raise UserError(
            f"{what} {without_secrets(url)} does not exist or is not visible to you{reason}. "
            f"{_advice(url)}"
        ) from error
    except Exception as error:
        # Each protocol's library has its own exceptions, without a common root.
        raise UserError(
            f"{what} {without_secrets(url)} cannot be {done} ({error_text(error)}). {_advice(url)}"
        ) from error


WAITS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
"""The pauses between attempts in seconds: a restarted server is usually back in half a minute."""

_PERMANENT = (
    FileExistsError,
    FileNotFoundError,
    ImportError,
    IsADirectoryError,
    MemoryError,
    NotADirectoryError,
    NotImplementedError,
    PermissionError,
    TypeError,
    UserError,
    ValueError,
)
_PERMANENT_ERRNOS = {errno.EINVAL, errno.ENOSYS, errno.EPERM, errno.ENAMETOOLONG, errno.E2BIG}
_PERMANENT_NAMES = re.compile("Credential|Expired|Auth|Forbidden|Offline|Profile|Config|Validation")


def retry(url: str, action: Callable[[], Result]) -> Result:
    """Return the result of `action`, which is repeated as long as its failure may be transient.

    A request to a server that is busy, restarts or drops a connection is repeated after a pause
    that doubles each time; a permanent failure, such as a missing file, is raised at once.

    Args:
        url: The address to name in the log.
        action: The request, which must be safe to repeat.
    """
    waits = iter(WAITS)
    while True:
        try:
            return action()
        except Exception as error:
            if not _is_transient(error):
                raise
            if (wait := next(waits, None)) is None:
                error.add_note(f"tried {len(WAITS) + 1} times within {sum(WAITS):g} s")
                raise
            _LOG.info("%s: %s; trying again in %g s", without_secrets(url), error_text(error), wait)
        time.sleep(wait)


def s3_code(error: BaseException) -> str:
    """Return the S3 code of an error, such as NoSuchKey; empty if the library reports no code."""
    return str(_response(error).get("Error", {}).get("Code", ""))


def _response(error: BaseException) -> dict[str, Any]:
    for exception in (error, error.__cause__):
        response = getattr(exception, "response", None)
        if isinstance(response, dict):
            return response
    return {}


_CLIENT_ERRORS = range(400, 500)
_TRANSIENT_CLIENT_ERRORS = {408, 409, 425, 429}
"""HTTP statuses: time-out, conflict between two requests, too early, too many requests."""

_TRANSIENT_CODES = {"BadDigest", "IncompleteBody", "NoSuchUpload"}
"""S3 codes: an upload was cut off, or a multipart upload is no longer known and must restart."""


def _is_transient(error: Exception) -> bool:
    if s3_code(error) in _TRANSIENT_CODES:
        return True
    status = _response(error).get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    if status in _CLIENT_ERRORS and status not in _TRANSIENT_CLIENT_ERRORS:
        return False
    if isinstance(error, _PERMANENT) or _PERMANENT_NAMES.search(type(error).__name__):
        return False
    return not (isinstance(error, OSError) and error.errno in _PERMANENT_ERRNOS)


def _advice(url: str) -> str:
    return _ACCESS.get(
        urlsplit(url).scheme, "Check the address, the credentials and the connection."
    )


def _missing_library(url: str, error: ImportError) -> str:
    scheme = urlsplit(url).scheme
    extra = _EXTRAS.get(scheme)
    if extra:
        return (
            f"Reading {scheme}:// needs a library that is not installed: "
            f"pip install 'corpusmill[{extra}]'."
        )
    return f"Reading {scheme}:// needs a library that is not installed: {error}."
