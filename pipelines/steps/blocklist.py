"""Drops documents from unwanted URLs, which are listed by domain or by the beginning of the path.

A list is plain text with one entry per line, like the files `domains` and `urls` in the folders of
UT1 (Toulouse). Lines that begin with # are comments, and so is any text after a space and #:

    example.com              the domain and its subdomains: www.example.com, a.b.example.com
    example.com/shop         the page and all below it: /shop, /shop/1, /shop?page=2; not /shopping
    192.0.2.7                an address

In entries and URLs alike, scheme, user, port, a leading `www.` before a path, a final dot or slash,
case and percent-encoding are ignored; names with letters other than ASCII are compared in their
ASCII form (punycode).
"""

import hashlib
import re
import urllib.parse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from pipelines.read.input_format import InputFormat
from pipelines.read.record import Damage, Record
from pipelines.read.value import as_text
from pipelines.segments.rows import FilterResult
from pipelines.steps.rule_files import read_rule_files
from pipelines.steps.step import Step, reasons_where
from shards.errors import UserError

BLOCKED = "url-blocklist"

_URL = re.compile(
    r"(?:(?:[A-Za-z][A-Za-z0-9+.-]*:)?//)?(?P<site>[^/?#\\]*)(?P<page>[^#]*)", re.DOTALL
)
_SITE = re.compile(r"[\w-]+(?:\.[\w-]+)+|localhost|\[[0-9a-f:.]+\]")
_ADDRESS = re.compile(r"[0-9.]+|\[.*")


@dataclass(frozen=True, kw_only=True)
class Blocklist:
    """Entries as hashes of 8 bytes, so that five million entries fit into every worker."""

    entries: np.ndarray
    """uint64, sorted, distinct."""
    fingerprint: str
    """SHA-256 of the entries, in hexadecimal; the order of the entries does not matter."""

    def blocked(self, urls: Sequence[str]) -> np.ndarray:
        """Return whether an entry blocks each URL (bool[urls]); empty URLs are never blocked."""
        keys_by_url = [list(_keys(url)) for url in urls]
        hashes = _hashes(key for keys in keys_by_url for key in keys)
        places = np.minimum(np.searchsorted(self.entries, hashes), len(self.entries) - 1)
        urls_of_keys = np.repeat(np.arange(len(urls)), [len(keys) for keys in keys_by_url])
        blocked = np.zeros(len(urls), bool)
        blocked[urls_of_keys[self.entries[places] == hashes]] = True
        return blocked


def load_blocklist(paths: Sequence[str]) -> Blocklist:
    """Return the entries of files; paths may also be compressed files, folders, globs or URLs.

    Raises:
        UserError: A file cannot be read, a line is not an entry, or there are no entries.
    """
    input_format = InputFormat(format="lines", text_fields=("text",))
    lines = (_line(path, item) for path, item in read_rule_files(paths, input_format))
    entries = np.unique(_hashes(entry for entry in lines if entry))
    if not len(entries):
        raise UserError(
            f"{', '.join(paths)}: no entries. Each line should contain a domain (example.com) or "
            "the beginning of a URL (example.com/shop)."
        )
    digest = hashlib.sha256(entries.astype("<u8").tobytes()).hexdigest()
    return Blocklist(entries=entries, fingerprint=digest)


def _line(path: str, item: Record | Damage) -> str:
    """Return the key of the entry in a line; "" for a comment."""
    # Lists from many sources contain lines that are not UTF-8; these are read as Latin-1.
    text = item.raw.decode("latin-1") if isinstance(item, Damage) else str(item.value["text"])
    entry = text.partition(" #")[0].partition("\t#")[0].strip()
    if not entry or entry.startswith("#"):
        return ""
    site, page = _parts(entry.removeprefix("*."))
    if not site or re.search(r"[\s*|^]", entry.removeprefix("*.")):
        raise UserError(
            f"{path}: {entry[:80]!r} at byte {item.offset} is not an entry of a blocklist. Each "
            "line should contain only a domain (example.com) or the beginning of a URL "
            "(example.com/shop); convert the rules of ad blockers and hosts files first."
        )
    return site.removeprefix("www.") + page if page else site


def has_site(url: str) -> bool:
    """Return whether a text is a URL that an entry could block."""
    site, _ = _parts(url)
    return _SITE.fullmatch(site) is not None


def _keys(url: str) -> Iterator[str]:
    """Yield the key of every entry that would block a URL."""
    site, page = _parts(url)
    if not site:
        return
    yield site
    if not _ADDRESS.fullmatch(site):
        for dot in re.finditer(r"\.", site):
            yield site[dot.end() :]
    site = site.removeprefix("www.")
    for end in re.finditer(r"(?<!^)[/?]", page):
        yield site + page[: end.start()]
    if page:
        yield site + page


def _parts(url: str) -> tuple[str, str]:
    """Return the normalized site and page of a URL; the page begins with / or is empty."""
    match = _URL.match(url.strip())
    site, page = (match["site"], match["page"]) if match else ("", "")
    site = site.rpartition("@")[2].lower()
    site = site.partition("]")[0] + "]" if site.startswith("[") else site.partition(":")[0]
    if not site.isascii():
        site = _ascii(site)
    if "%" in page:
        page = urllib.parse.unquote(page)
    page = page.lower().rstrip("/")
    return site.strip("."), f"/{page}" if page.startswith("?") else page


def _ascii(site: str) -> str:
    try:
        return site.encode("idna").decode()
    except UnicodeError:  # such a name cannot be registered; compare it unchanged
        return site


def _hashes(keys: Iterator[str]) -> np.ndarray:
    digests = b"".join(
        hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        for key in keys
    )
    return np.frombuffer(digests, "<u8")


class BlockStep(Step):
    """Drops documents whose URL matches an entry of a blocklist."""

    name = "block"
    reasons = (BLOCKED,)
    needs = ("prompt", "text", "url")

    def __init__(self, paths: Sequence[str]) -> None:
        """Load the list.

        Args:
            paths: Files of domains and URL prefixes, as in --url-blocklist.

        Raises:
            UserError: The list cannot be loaded; see load_blocklist.
        """
        self._blocklist = load_blocklist(paths)
        self.fingerprints = {"url_blocklist": self._blocklist.fingerprint}

    def __call__(self, batch: pa.RecordBatch) -> FilterResult:
        """Drop documents from blocked URLs."""
        if "url" not in batch.schema.names:
            raise UserError("--url-blocklist needs a corpus with a column url")
        urls = [as_text(url) for url in batch["url"].to_pylist()]
        return FilterResult(batch, reasons_where(self._blocklist.blocked(urls), BLOCKED))
