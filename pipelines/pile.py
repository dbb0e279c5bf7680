"""The Pile: JSON lines of a text and the name of its subset, in 30 archives.

Gao et al. 2020 (arXiv 2101.00027) name the 22 subsets; `--recipe glm` takes of them what the
reference GLM takes (THUDM/GLM data_utils/corpora.py, Pile), with a hash in place of its dice.
"""

import difflib
import hashlib
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipelines.command import main
from pipelines.document import Document, Rejected, below
from pipelines.fields import required_text
from pipelines.options import SEGMENTS, Options, names, option
from pipelines.readers.reading import Reading
from pipelines.recipe import Recipe, always, strings
from shards.errors import UserError

SUBSETS = (
    "ArXiv", "BookCorpus2", "Books3", "DM Mathematics", "Enron Emails", "EuroParl", "FreeLaw",
    "Github", "Gutenberg (PG-19)", "HackerNews", "NIH ExPorter", "OpenSubtitles", "OpenWebText2",
    "PhilPapers", "Pile-CC", "PubMed Abstracts", "PubMed Central", "StackExchange", "USPTO Backgrounds",
    "Ubuntu IRC", "Wikipedia (en)", "YoutubeSubtitles",
)  # fmt: skip
GLM_SHARES = {
    **dict.fromkeys(
        ("Github", "StackExchange", "DM Mathematics", "Ubuntu IRC", "EuroParl", "YoutubeSubtitles",
         "Enron Emails"),
        0.0,
    ),
    **dict.fromkeys(("PubMed Central", "ArXiv", "FreeLaw"), 0.3),
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class PileOptions(Options):
    """The options of pipelines.pile."""

    recipe: str = option(
        "all",
        "Which subsets to take: all, or glm: without seven of them, and of PubMed Central, ArXiv "
        "and FreeLaw 30 %%.",
        decides=SEGMENTS,
        choices=("all", "glm"),
    )
    allow: tuple[str, ...] = option(
        (), "Take no other subsets than these.", decides=SEGMENTS, metavar="LIST", type=names
    )
    deny: tuple[str, ...] = option(
        (), "Leave these subsets out.", decides=SEGMENTS, metavar="LIST", type=names
    )
    keep: tuple[str, ...] = option(
        (),
        "Take a share of a subset: NAME=SHARE, as in 'ArXiv=0.3'. A smaller share is part of every "
        "larger one.",
        decides=SEGMENTS,
        metavar="LIST",
        type=names,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in (*self.allow, *self.deny, *_shares(self.keep)):
            if name not in SUBSETS:
                near = difflib.get_close_matches(name, SUBSETS, n=1, cutoff=0.3)
                hint = f"did you mean {near[0]!r}? " if near else ""
                raise UserError(
                    f"{name!r} is no subset of the Pile: {hint}They are {', '.join(SUBSETS)}."
                )

    def share(self, subset: str) -> float:
        """Return how much of a subset is taken; of one that is not known, all."""
        if subset in self.deny or (self.allow and subset not in self.allow):
            return 0.0
        usual = GLM_SHARES.get(subset, 1.0) if self.recipe == "glm" else 1.0
        return _shares(self.keep).get(subset, usual)


def _shares(keep: Sequence[str]) -> dict[str, float]:
    shares = {}
    for each in keep:
        name, _, share = each.rpartition("=")
        try:
            shares[name] = float(share)
        except ValueError:
            shares[name] = -1.0
        if not name or not 0 <= shares[name] <= 1:
            raise UserError(f"--keep {each!r} is no NAME=SHARE with a share from 0 to 1")
    return shares


def documents(record: Mapping[str, Any], options: PileOptions) -> tuple[Document]:
    """Return the document of one record."""
    text, meta = required_text(record, "text"), record.get("meta")
    if not isinstance(meta, Mapping):
        raise Rejected("missing-field" if meta is None else "wrong-type")
    subset = required_text(meta, "pile_set_name")
    share = options.share(subset)
    reason = None
    if share < 1 and _hash(text, options.seed) >= below(share):
        reason = "subset-share" if share else "subset"
    return (Document(text, {"subset": subset}, reason),)


def _hash(text: str, seed: int) -> int:
    digest = hashlib.blake2b(text.encode(), digest_size=8, key=str(seed).encode())
    return int.from_bytes(digest.digest(), "little")


RECIPE = Recipe(
    name="pile",
    about="Clean, language-identify, deduplicate, tokenize and shuffle the Pile into token shards.",
    # Not val and test, which lie beside the folder of the training files.
    pattern=("[0-9][0-9].jsonl.zst", "[0-9][0-9].jsonl.gz", "[0-9][0-9].jsonl"),
    options=PileOptions,
    reading=always(Reading(format="jsonl", text_fields=("text",))),
    provenance=strings("subset"),
    documents=documents,
    group="subset",
)

if __name__ == "__main__":
    sys.exit(main("pipelines.pile", sys.argv[1:]))
