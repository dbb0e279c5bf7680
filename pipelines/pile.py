"""The Pile: JSON lines with a text and the name of its subset, in 30 archives."""

import functools
import hashlib
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipelines.corpus import (
    SEGMENTS,
    CorpusSpec,
    Document,
    InputFormat,
    Options,
    Rejected,
    names,
    option,
    required_text,
    text_columns,
)
from pipelines.corpus.clean_level import WHITESPACE
from pipelines.job.command import main
from pipelines.segments.identity import hash_bound
from shards.commands.spelling import nearest
from shards.errors import UserError

SUBSETS = (
    "ArXiv", "BookCorpus2", "Books3", "DM Mathematics", "Enron Emails", "EuroParl", "FreeLaw",
    "Github", "Gutenberg (PG-19)", "HackerNews", "NIH ExPorter", "OpenSubtitles", "OpenWebText2",
    "PhilPapers", "Pile-CC", "PubMed Abstracts", "PubMed Central", "StackExchange",
    "USPTO Backgrounds", "Ubuntu IRC", "Wikipedia (en)", "YoutubeSubtitles",
)  # fmt: skip
"""The subsets in table 1 of Gao et al. 2020 (arXiv 2101.00027), spelled as in `pile_set_name`."""

CODE_SUBSETS = frozenset({"Github", "StackExchange"})
"""Subsets of programs, or of answers that are full of programs; entities and mojibake in them are
intentional. The other subsets contain prose, with snippets of code at most."""

_LEFT_OUT = (
    "Github", "StackExchange", "DM Mathematics", "Ubuntu IRC", "EuroParl", "YoutubeSubtitles",
    "Enron Emails",
)  # fmt: skip

GLM_SHARES: Mapping[str, float] = {
    **dict.fromkeys(_LEFT_OUT, 0.0),
    **dict.fromkeys(("PubMed Central", "ArXiv", "FreeLaw"), 0.3),
}
"""The shares of the subsets that the reference GLM does not use in full (THUDM/GLM
data_utils/corpora.py, Pile)."""

_NAME = re.compile(
    rf"""["']pile_set_name["']\s*:\s*["']({"|".join(map(re.escape, SUBSETS))})["']"""
)
"""Matches the name of the subset in a string that represents JSON or a Python dictionary."""


@dataclass(frozen=True, kw_only=True)
class PileOptions(Options):
    """The options of pipelines.pile."""

    subsets: str = option("all", affects=SEGMENTS, choices=("all", "glm"))
    """Subsets to use: all, or glm, which leaves out seven and uses 30 % of PubMed Central, ArXiv
    and FreeLaw."""
    allow: tuple[str, ...] = option((), affects=SEGMENTS, metavar="LIST", type=names)
    """Use only these subsets."""
    deny: tuple[str, ...] = option((), affects=SEGMENTS, metavar="LIST", type=names)
    """Leave out these subsets."""
    keep: tuple[str, ...] = option((), affects=SEGMENTS, metavar="LIST", type=names)
    """Use a share of a subset: NAME=SHARE, as in ArXiv=0.3. A smaller share is contained in every
    larger one."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_names((*self.allow, *self.deny, *parse_shares(self.keep)))

    @property
    def takes_all(self) -> bool:
        """Whether every subset is taken completely."""
        return self.subsets == "all" and not (self.allow or self.deny or self.keep)

    def share(self, subset: str) -> float:
        """Return the share of a subset that is taken; 1 for names outside the 22 subsets."""
        if subset in self.deny or (self.allow and subset not in self.allow):
            return 0.0
        usual = GLM_SHARES.get(subset, 1.0) if self.subsets == "glm" else 1.0
        return parse_shares(self.keep).get(subset, usual)


def documents(record: Mapping[str, Any], options: PileOptions) -> tuple[Document]:
    """Return the document of one record."""
    text, subset = required_text(record, "text"), _subset(record.get("meta"), options)
    share = options.share(subset)
    reason = None if is_taken(text, share, seed=options.seed) else "subset-share"
    level = WHITESPACE if subset in CODE_SUBSETS else ""
    reason = reason if share else "subset"
    return (Document(text, {"subset": subset}, reason, clean=level),)


def _subset(meta: Any, options: PileOptions) -> str:
    """Return the subset of a record; "" if the record does not name it and all subsets are taken.

    In some copies of the Pile, `meta` is a string.

    Raises:
        Rejected: The subset is unknown, and the options choose subsets.
    """
    if isinstance(meta, str) and (found := _NAME.search(meta)):
        return found[1]
    if isinstance(meta, Mapping):
        return required_text(meta, "pile_set_name")
    if meta is None and options.takes_all:
        return ""
    raise Rejected("missing-field" if meta is None else "wrong-type", "meta")


def check_names(subsets: Iterable[str]) -> None:
    """Check that the names are subsets of the Pile.

    Raises:
        UserError: A name is not a subset; the message lists all subsets.
    """
    for name in subsets:
        if name not in SUBSETS:
            near = nearest(name, SUBSETS, most=1, likeness=0.3)
            hint = f"did you mean {near[0]!r}? " if near else ""
            raise UserError(
                f"{name!r} is not a subset of the Pile: {hint}They are {', '.join(SUBSETS)}."
            )


@functools.lru_cache(maxsize=8)
def parse_shares(keep: Sequence[str]) -> Mapping[str, float]:
    """Parse a list of NAME=SHARE and return the shares by name.

    Raises:
        UserError: An item does not have this form, or a share is not between 0 and 1.
    """
    shares = {}
    for item in keep:
        name, _, share = item.rpartition("=")
        try:
            shares[name] = float(share)
        except ValueError:
            shares[name] = -1.0
        if not name or not 0 <= shares[name] <= 1:
            raise UserError(
                f"--keep {item!r}: expected is NAME=SHARE with a share from 0 to 1, as in ArXiv=0.3"
            )
    check_names(shares)
    return shares


def is_taken(text: str, share: float, *, seed: int) -> bool:
    """Return whether a text's hash puts it in the share; larger shares contain smaller ones."""
    if share >= 1:
        return True
    digest = hashlib.blake2b(text.encode(), digest_size=8, key=f"share {seed}".encode()).digest()
    return int.from_bytes(digest, "little") < hash_bound(share)


CORPUS = CorpusSpec(
    name="pile",
    about="Clean, filter, deduplicate, tokenize and shuffle the Pile into token shards.",
    # Training files are 00 to 29; val and test, which are next to their folder, do not match.
    pattern=("[0-9][0-9].jsonl.zst", "[0-9][0-9].jsonl.gz", "[0-9][0-9].jsonl"),
    options=PileOptions,
    input_format=InputFormat(format="jsonl", text_fields=("text",)),
    provenance=text_columns("subset"),
    documents=documents,
    group="subset",
)

if __name__ == "__main__":
    sys.exit(main("pipelines.pile", sys.argv[1:]))
