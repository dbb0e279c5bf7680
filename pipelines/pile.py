"""The Pile: JSON lines of a text and the name of its subset, in 30 archives."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pipelines.corpus.fields import required_text
from pipelines.corpus.options import SEGMENTS, Options, names, option
from pipelines.corpus.recipe import Recipe, always, strings
from pipelines.pile_subsets import GLM_SHARES, check_names, is_taken, parse_shares
from pipelines.readers.reading import Reading
from pipelines.run.command import main
from pipelines.segments.rows import Document, Rejected


@dataclass(frozen=True, kw_only=True)
class PileOptions(Options):
    """The options of pipelines.pile."""

    recipe: str = option(
        "all",
        "Which subsets to take: all, or glm: all but seven, and of PubMed Central, ArXiv and "
        "FreeLaw 30 %%.",
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
        "Take a share of a subset: NAME=SHARE, as in ArXiv=0.3. A smaller share is part of every "
        "larger one.",
        decides=SEGMENTS,
        metavar="LIST",
        type=names,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check_names((*self.allow, *self.deny, *parse_shares(self.keep)))

    def share(self, subset: str) -> float:
        """Return how much of a subset is taken; of one that is not among the 22, all."""
        if subset in self.deny or (self.allow and subset not in self.allow):
            return 0.0
        usual = GLM_SHARES.get(subset, 1.0) if self.recipe == "glm" else 1.0
        return parse_shares(self.keep).get(subset, usual)


def documents(record: Mapping[str, Any], options: PileOptions) -> tuple[Document]:
    """Return the document of one record."""
    text, meta = required_text(record, "text"), record.get("meta")
    if not isinstance(meta, Mapping):
        raise Rejected("missing-field" if meta is None else "wrong-type")
    subset = required_text(meta, "pile_set_name")
    share = options.share(subset)
    reason = None if is_taken(text, share, seed=options.seed) else "subset-share"
    return (Document(text, {"subset": subset}, reason if share else "subset"),)


RECIPE = Recipe(
    name="pile",
    about="Clean, language-identify, deduplicate, tokenize and shuffle the Pile into token shards.",
    # 00 to 29; not val and test, which lie beside the folder of the training files.
    pattern=("[0-9][0-9].jsonl.zst", "[0-9][0-9].jsonl.gz", "[0-9][0-9].jsonl"),
    options=PileOptions,
    reading=always(Reading(format="jsonl", text_fields=("text",))),
    provenance=strings("subset"),
    documents=documents,
    group="subset",
)

if __name__ == "__main__":
    sys.exit(main("pipelines.pile", sys.argv[1:]))
