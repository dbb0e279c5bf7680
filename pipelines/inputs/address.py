"""The address of an input behind a URL: how it is shown, and what is said when reading it fails.

Where credentials and endpoints come from is the business of each protocol's library: the
environment or its own configuration files. They never stand in an address here, because addresses
are shown, and written beside the dataset.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from shards.errors import UserError

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
_PASSWORD = re.compile(r"(?<=://)[^/@]*:[^/]*@")


def is_url(path: str) -> bool:
    """Return whether an input's path is a URL."""
    return "://" in path


def shown(url: str) -> str:
    """Return a URL without what may be secret: user and password, and the query of a web address.

    Elsewhere a question mark is part of a name, or a wildcard.
    """
    url = _PASSWORD.sub("", url)
    return url.partition("?")[0] if url.startswith(("http://", "https://")) else url


def said(error: Exception) -> str:
    """Return what a library says of an error: on one line, not too long, without secrets."""
    text = _URL.sub(lambda match: shown(match.group()), " ".join(str(error).split())).rstrip(".")
    if not text:
        return type(error).__name__
    return text if len(text) <= MOST_CHARS_SAID else f"{text[:MOST_CHARS_SAID]}..."


def check_address(url: str) -> None:
    """Check that an address holds nothing that may be secret, and is no chain of addresses.

    Raises:
        UserError: It does, or is.
    """
    if _PASSWORD.search(url):
        name = urlsplit(url).scheme.upper()
        raise UserError(
            f"The input {shown(url)} was given with a password, and addresses are written beside "
            f"the dataset. Leave it out and set FSSPEC_{name}_USERNAME and FSSPEC_{name}_PASSWORD, "
            "or what the protocol's library reads."
        )
    if shown(url) != url:
        raise UserError(
            f"The input {shown(url)} was given with a query (?...), which may hold a signature, "
            "and addresses are written beside the dataset. Leave it out, or fetch the file first."
        )
    if "::" in url:
        raise UserError(
            f"The input {shown(url)} is a chain of addresses; give one, of files as they are."
        )


@contextmanager
def explained(url: str) -> Iterator[None]:
    """Turn what goes wrong behind a URL into a paragraph for the person.

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
            f"The input {shown(url)} does not exist, or may not be seen{words}. {_advice(url)}"
        ) from error
    except Exception as error:
        # Each protocol's library has exceptions of its own, with no root in common.
        raise UserError(
            f"The input {shown(url)} cannot be read ({said(error)}). {_advice(url)}"
        ) from error


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
