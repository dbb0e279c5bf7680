"""The command tokens of GLM: their names, and their ids in each kind of model.

The ids are those of THUDM/GLM (data_utils/tokenization.py) with all commands present:

    role     SentencePiece   byte-level BPE     WordPiece
    eos=pad  V               its end of text    [PAD]
    sep      V + 1           V + 4              [SEP]
    cls      V + 2           V + 2              [CLS]
    mask     V + 3           V + 3              [MASK]
    unk      V + 4           V + 5              [UNK]
    (hole)   V + 5
    sop      V + 6           V                  V
    eop      V + 7           V + 1              V + 1
    smask    V + 8           V + 7              V + 3
    gmask    V + 9           V + 6              V + 2
    dblock   V + 10          V + 8              V + 4

V is the number of the model's own pieces. The SentencePiece column is GLM's with
`--fix-command-token`; without this flag gmask and eop have the same id in GLM.
"""

import dataclasses
from collections.abc import Mapping

MULTIPLE = 128
"""Vocabularies are padded to a multiple of this, as in GLM, which suits GPUs."""

NAMES = {
    "eos": "<|endoftext|>",
    "pad": "<|endoftext|>",
    "sep": "[SEP]",
    "cls": "[CLS]",
    "mask": "[MASK]",
    "unk": "[UNK]",
    "sop": "<|startofpiece|>",
    "eop": "<|endofpiece|>",
    "smask": "[sMASK]",
    "gmask": "[gMASK]",
    "dblock": "[dBLOCK]",
}
"""How command tokens appear in decoded text."""

BERT_NAMES = {"pad": "[PAD]", "sep": "[SEP]", "cls": "[CLS]", "mask": "[MASK]", "unk": "[UNK]"}
"""The command tokens that a WordPiece model already has."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class CommandTokens:
    """The ids of a model's command tokens, by role."""

    ids: Mapping[str, int]
    total: int
    """The highest id in use, plus one."""

    @property
    def padded(self) -> int:
        """The padded size of the vocabulary, a multiple of `MULTIPLE`."""
        return -(-self.total // MULTIPLE) * MULTIPLE


def sentencepiece_commands(pieces: int, *, end_of_text: int | None) -> CommandTokens:
    """Return a SentencePiece model's commands; V ends documents if there is no end of text."""
    more = ("sep", "cls", "mask", "unk", "", "sop", "eop", "smask", "gmask", "dblock")
    if end_of_text is None:
        return _appended(("eos", *more), pieces, own={})
    return _appended(("", *more), pieces, own={"eos": end_of_text})


def byte_bpe_commands(pieces: int, *, end_of_text: int) -> CommandTokens:
    """Return the commands of a byte-level BPE model, whose own end of text ends documents."""
    roles = ("sop", "eop", "cls", "mask", "sep", "unk", "gmask", "smask", "dblock")
    return _appended(roles, pieces, own={"eos": end_of_text})


def wordpiece_commands(
    pieces: int, *, own: Mapping[str, int], end_of_text: int | None
) -> CommandTokens:
    """Return the commands of a BERT model.

    Args:
        pieces: The number of the model's pieces.
        own: The model's ids for the roles of `BERT_NAMES`.
        end_of_text: The token that ends documents; None means `[PAD]`.
    """
    roles = ("sop", "eop", "gmask", "smask", "dblock")
    eos = own["pad"] if end_of_text is None else end_of_text
    return _appended(roles, pieces, own={**own, "eos": eos})


def _appended(roles: tuple[str, ...], pieces: int, *, own: Mapping[str, int]) -> CommandTokens:
    ids = {**own, **{role: pieces + i for i, role in enumerate(roles) if role}}
    ids["pad"] = ids["eos"]
    return CommandTokens(ids=dict(sorted(ids.items())), total=pieces + len(roles))
