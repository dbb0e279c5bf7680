"""The 22 subsets of the Pile, and how much of each is taken."""

import difflib
import functools
import hashlib
from collections.abc import Iterable, Mapping, Sequence

from pipelines.segments.rows import below
from shards.errors import UserError

SUBSETS = (
    "ArXiv", "BookCorpus2", "Books3", "DM Mathematics", "Enron Emails", "EuroParl", "FreeLaw",
    "Github", "Gutenberg (PG-19)", "HackerNews", "NIH ExPorter", "OpenSubtitles", "OpenWebText2",
    "PhilPapers", "Pile-CC", "PubMed Abstracts", "PubMed Central", "StackExchange",
    "USPTO Backgrounds", "Ubuntu IRC", "Wikipedia (en)", "YoutubeSubtitles",
)  # fmt: skip
"""Gao et al. 2020 (arXiv 2101.00027), table 1, as `pile_set_name` spells them."""

_LEFT_OUT = (
    "Github", "StackExchange", "DM Mathematics", "Ubuntu IRC", "EuroParl", "YoutubeSubtitles",
    "Enron Emails",
)  # fmt: skip
GLM_SHARES: Mapping[str, float] = {
    **dict.fromkeys(_LEFT_OUT, 0.0),
    **dict.fromkeys(("PubMed Central", "ArXiv", "FreeLaw"), 0.3),
}
"""What the reference GLM takes (THUDM/GLM data_utils/corpora.py, Pile); of the others, all."""


def check_names(subsets: Iterable[str]) -> None:
    """Check that these are subsets of the Pile.

    Raises:
        UserError: One is not; the message says which there are.
    """
    for name in subsets:
        if name not in SUBSETS:
            near = difflib.get_close_matches(name, SUBSETS, n=1, cutoff=0.3)
            hint = f"did you mean {near[0]!r}? " if near else ""
            raise UserError(
                f"{name!r} is no subset of the Pile: {hint}They are {', '.join(SUBSETS)}."
            )


@functools.lru_cache(maxsize=8)
def parse_shares(keep: Sequence[str]) -> Mapping[str, float]:
    """Return the shares of a list of NAME=SHARE.

    Raises:
        UserError: A part is written in another way, or a share is not from 0 to 1.
    """
    shares = {}
    for each in keep:
        name, _, share = each.rpartition("=")
        try:
            shares[name] = float(share)
        except ValueError:
            shares[name] = -1.0
        if not name or not 0 <= shares[name] <= 1:
            raise UserError(
                f"--keep {each!r}: expected is NAME=SHARE with a share from 0 to 1, as in ArXiv=0.3"
            )
    check_names(shares)
    return shares


def is_taken(text: str, share: float, *, seed: int) -> bool:
    """Return whether a text is in the share: by a hash of it, so that shares nest."""
    if share >= 1:
        return True
    digest = hashlib.blake2b(text.encode(), digest_size=8, key=f"share {seed}".encode()).digest()
    return int.from_bytes(digest, "little") < below(share)
