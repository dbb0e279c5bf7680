"""The address behind a URL: how it is shown, and what is said when reading or writing fails.

Where credentials and endpoints come from is the business of each protocol's library: the
environment or its own configuration files. They never stand in an address here, because addresses
are shown, and written beside the dataset.
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

_LOG = logging.getLogger("corpusmill")
Result = TypeVar("Result")

MOST_CHARS_SAID = 300

_EXTRAS = {"s3": "s3", "s3a": "s3", "hf": "hub"}
"""Which of this package's extras reads a protocol."""

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
_URL = re.compile(r"\w+://[^\s\"'<>]+")
_PASSWORD = re.compile(r"(?<=://)[^/@]*:[^@]*@")
"""A secret may hold a slash."""
_WEB = re.compile("https?://", re.IGNORECASE)
_WEB_USER = re.compile(r"(?<=://)[^/@]+@")


def is_url(path: str) -> bool:
    """Return whether an input's path is a URL."""
    return "://" in path


def shown(url: str) -> str:
    """Return a URL without what may be secret: user and password, and the query of a web address.

    Elsewhere a question mark is part of a name, or a wildcard.
    """
    if _WEB.match(url):
        return _WEB_USER.sub("", url).partition("?")[0]
    return _PASSWORD.sub("", url)


def said(error: Exception) -> str:
    """Return what a library says of an error: on one line, not too long, without secrets."""
    words = "; ".join([str(error).rstrip("."), *getattr(error, "__notes__", ())])
    text = _URL.sub(lambda match: shown(match.group()), " ".join(words.split())).rstrip(".")
    if not text:
        return type(error).__name__
    return text if len(text) <= MOST_CHARS_SAID else f"{text[:MOST_CHARS_SAID]}..."


def check_address(url: str, what: str = "The input") -> None:
    """Check that an address holds nothing that may be secret, and is no chain of addresses.

    Args:
        url: The address.
        what: How a message begins: what is there.

    Raises:
        UserError: It does, or is.
    """
    if (_WEB_USER if _WEB.match(url) else _PASSWORD).search(url):
        name = urlsplit(url).scheme.upper()
        raise UserError(
            f"{what} {shown(url)} was given with a password, and addresses are written beside "
            f"the dataset. Leave it out and set FSSPEC_{name}_USERNAME and FSSPEC_{name}_PASSWORD, "
            "or what the protocol's library reads."
        )
    if shown(url) != url:
        raise UserError(
            f"{what} {shown(url)} was given with a query (?...), which may hold a signature, "
            "and addresses are written beside the dataset. Leave it out, or fetch the file first."
        )
    if "::" in url:
        raise UserError(
            f"{what} {shown(url)} is a chain of addresses; give one, of files as they are."
        )


@contextmanager
def explained(url: str, what: str = "The input", *, done: str = "read") -> Iterator[None]:
    """Turn what goes wrong behind a URL into a paragraph for the person.

    Args:
        url: The address.
        what: How a message begins: what is there.
        done: What was to be done with it: read or written.

    Raises:
        UserError: Something went wrong; it says what the library said, and what to check.
    """
    try:
        yield
    except (UserError, MemoryError):
        raise
    except ImportError as error:
        raise UserError(_missing_library(url, error)) from error
    except FileNotFoundError as error:
        # Some libraries say no more than the path.
        words = "" if url.rstrip("/").endswith(str(error)) else f" ({said(error)})"
        raise UserError(
            f"{what} {shown(url)} does not exist, or may not be seen{words}. {_advice(url)}"
        ) from error
    except Exception as error:
        # Each protocol's library has exceptions of its own, with no root in common.
        raise UserError(
            f"{what} {shown(url)} cannot be {done} ({said(error)}). {_advice(url)}"
        ) from error


WAITS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
"""Seconds between attempts: a server that restarts is back within half a minute."""

_LASTING = (
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
_LASTING_ERRNOS = {errno.EINVAL, errno.ENOSYS, errno.EPERM, errno.ENAMETOOLONG, errno.E2BIG}
_LASTING_NAMES = re.compile("Credential|Expired|Auth|Forbidden|Profile|Config")


def retried(url: str, do: Callable[[], Result]) -> Result:
    """Return what `do` returns, after trying again where the failure may pass.

    A server that is busy, restarts or drops a connection is asked again, with a pause that doubles;
    what will not change, such as a file that is missing, is raised at once.

    Args:
        url: What is shown of a failure.
        do: Something that can be done twice.
    """
    for wait in WAITS:
        try:
            return do()
        except Exception as error:
            if not _may_pass(error):
                raise
            _LOG.info("%s: %s; trying again in %g s", shown(url), said(error), wait)
        time.sleep(wait)
    try:
        return do()
    except Exception as error:
        error.add_note(f"tried {len(WAITS) + 1} times within {sum(WAITS):g} s")
        raise


def code_of(error: BaseException) -> str:
    """Return what S3 calls an error, where the library tells it; empty otherwise."""
    return str(_response(error).get("Error", {}).get("Code", ""))


def _response(error: BaseException) -> dict[str, Any]:
    for each in (error, error.__cause__):
        found = getattr(each, "response", None)
        if isinstance(found, dict):
            return found
    return {}


_REFUSALS = range(400, 500)
_PASSING_REFUSALS = {408, 409, 425, 429}
"""Statuses of HTTP: a time-out, a conflict of two requests, too early, too many."""

_PASSING_CODES = {"BadDigest", "IncompleteBody", "NoSuchUpload"}
"""Of S3: an upload was cut off, or one in parts is no longer known, and begins anew."""


def _may_pass(error: Exception) -> bool:
    if code_of(error) in _PASSING_CODES:
        return True
    status = _response(error).get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    if status in _REFUSALS and status not in _PASSING_REFUSALS:
        return False
    if isinstance(error, _LASTING) or _LASTING_NAMES.search(type(error).__name__):
        return False
    return not (isinstance(error, OSError) and error.errno in _LASTING_ERRNOS)


def _advice(url: str) -> str:
    return _ACCESS.get(urlsplit(url).scheme, "Check the address, the credentials, the connection.")


def _missing_library(url: str, error: ImportError) -> str:
    scheme = urlsplit(url).scheme
    extra = _EXTRAS.get(scheme)
    if extra:
        return (
            f"Reading {scheme}:// needs a library that is not installed: "
            f"pip install 'corpusmill[{extra}]'."
        )
    return f"Reading {scheme}:// needs a library that is not installed: {error}."
