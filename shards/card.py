"""The page of a published dataset, its card: what the manifest says of it, and how it is used."""

from collections.abc import Iterator

from shards.manifest import NAME, TRAIN, Manifest, sum_shards
from shards.storage.hub import HubName
from shards.summary import source_rows

CARD = "README.md"
"""Its name, in a dataset's folder and on the hub."""
OURS = "<!-- Written by python -m shards push, and again at each push while this line is here. -->"


def card_of(manifest: Manifest, name: HubName) -> str:
    """Return the card of a dataset, in Markdown.

    Args:
        manifest: Of the dataset.
        name: Its name on the hub.
    """
    return "\n".join([*_lines(manifest, name), ""])


def _lines(manifest: Manifest, name: HubName) -> Iterator[str]:
    train, tokenizer = sum_shards(manifest.shards(split=TRAIN)), manifest.tokenizer
    # The hub would take the tables of documents, which have no text, for the data.
    yield from ("---", "tags:", "- corpusmill", "viewer: false", "---", OURS, "")
    yield from (f"# {name.repository.partition('/')[2]}", "")
    yield (
        f"{train.tokens:,} tokens of {train.documents:,} documents, shuffled, for training "
        f"language models: the corpus `{manifest.corpus}` as corpusmill made it, with the "
        f"tokenizer `{tokenizer.label}`, which `{manifest.vocabulary.path}` holds. `{NAME}` has "
        f"number {manifest.number} and the identity `{manifest.identity}`."
    )
    yield ""
    head, *rows = source_rows(manifest)
    for row in (head, ["---"] * len(head), *rows):
        yield f"| {' | '.join(row)} |"
    yield ""
    yield from ("```console", f"$ python -m trainer.train --data {name} …", "```")
