"""URLs that are not wanted, by domain or by the beginning of their path.

A list is plain text with an entry on each line, as the folders of UT1 (Toulouse) hold them in the
files `domains` and `urls`; lines that begin with # and what follows a space and # are comments:

    example.com              the domain and all below it: www.example.com, a.b.example.com
    example.com/shop         that page and all below it: /shop, /shop/1, /shop?page=2; not /shopping
    192.0.2.7                an address

Scheme, user, port, a leading `www.` before a path, a final dot or slash, case and percent-encoding
do not count, in entries and URLs alike; names with other than ASCII letters are compared in their
ASCII form (punycode).
"""

import hashlib
import re
import urllib.parse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from pipelines.filters.listing import read_whole
from pipelines.readers.reading import Reading
from pipelines.readers.record import Damage, Record
from shards.errors import UserError

_URL = re.compile(
    r"(?:(?:[A-Za-z][A-Za-z0-9+.-]*:)?//)?(?P<site>[^/?#\\]*)(?P<page>[^#]*)", re.DOTALL
)
_ADDRESS = re.compile(r"[0-9.]+|\[.*")


@dataclass(frozen=True, kw_only=True)
class Blocklist:
    """Entries as hashes: 8 bytes each, so five million of them fit in every worker."""

    entries: np.ndarray
    """uint64, sorted, distinct."""
    fingerprint: str
    """SHA-256 of the entries, in hexadecimal: the same for the same entries in any order."""

    def blocked(self, urls: Sequence[str]) -> np.ndarray:
        """Return whether each URL falls under an entry (bool[urls]); an empty one does not."""
        keys = [list(_keys(url)) for url in urls]
        hashes = _hashes(key for each in keys for key in each)
        places = np.minimum(np.searchsorted(self.entries, hashes), len(self.entries) - 1)
        urls_of_keys = np.repeat(np.arange(len(urls)), [len(each) for each in keys])
        blocked = np.zeros(len(urls), bool)
        blocked[urls_of_keys[self.entries[places] == hashes]] = True
        return blocked


def load_blocklist(paths: Sequence[str]) -> Blocklist:
    """Return the entries of some files; compressed ones, folders, globs and URLs are all right.

    Raises:
        UserError: A file cannot be read, has a line that is no entry, or there is no entry at all.
    """
    reading = Reading(format="lines", text_fields=("text",))
    lines = (_line(path, item) for path, item in read_whole(paths, reading))
    entries = np.unique(_hashes(entry for entry in lines if entry))
    if not len(entries):
        raise UserError(
            f"{', '.join(paths)}: no entry in it; expected is a domain (example.com) or the "
            "beginning of a URL (example.com/shop) on each line."
        )
    digest = hashlib.sha256(entries.astype("<u8").tobytes()).hexdigest()
    return Blocklist(entries=entries, fingerprint=digest)


def _line(path: str, item: Record | Damage) -> str:
    """Return the key of a line's entry, "" for a comment."""
    # A line that is not UTF-8 is kept as Latin-1: lists gathered from everywhere have some.
    text = item.raw.decode("latin-1") if isinstance(item, Damage) else str(item.value["text"])
    entry = text.partition(" #")[0].partition("\t#")[0].strip()
    if not entry or entry.startswith("#"):
        return ""
    site, page = _parts(entry.removeprefix("*."))
    if not site or re.search(r"[\s*|^]", entry.removeprefix("*.")):
        raise UserError(
            f"{path}: at byte {item.offset} stands {entry[:80]!r}, which is no entry of a "
            "blocklist. Expected is a domain (example.com) or the beginning of a URL "
            "(example.com/shop) on each line, nothing else; rules of ad blockers and hosts files "
            "have to be rewritten."
        )
    return site.removeprefix("www.") + page if page else site


def _keys(url: str) -> Iterator[str]:
    """Yield every entry that would block a URL."""
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
    """Return site and page of a URL as they are compared; a page begins with /, or is empty."""
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
    except UnicodeError:  # no name that could be registered; it is compared as it is
        return site


def _hashes(keys: Iterator[str]) -> np.ndarray:
    digests = b"".join(
        hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        for key in keys
    )
    return np.frombuffer(digests, "<u8")
