"""What making blanks takes from a tokenizer: its special tokens and which tokens end a sentence."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shards.errors import UserError

_NAMES = {
    "mask": "[MASK]",
    "smask": "[sMASK]",
    "gmask": "[gMASK]",
    "sop": "sop",
    "eop": "eop",
    "dblock": "[dBLOCK]",
}
"""The roles that blanks may need, with their usual names; every tokenizer has eos."""
_ABSENT = -1


@dataclass(frozen=True, kw_only=True, eq=False)
class SpecialTokens:
    """Token ids by role; -1 is a token that the tokenizer lacks and nothing needs.

    As in `shards.windows`, eos stands in for cls and pad where a tokenizer lacks them.
    """

    eos: int
    cls: int
    pad: int
    sop: int
    eop: int
    mask: int
    smask: int
    gmask: int
    dblock: int
    sentence_ends: NDArray[np.bool_]
    """By id: whether a token ends a sentence."""

    @classmethod
    def of(
        cls, ids: Mapping[str, int], *, needs: Collection[str], sentence_ends: NDArray[np.bool_]
    ) -> "SpecialTokens":
        """Return the special tokens of a tokenizer.

        Args:
            ids: token ids by role, `manifest.tokenizer.special`.
            needs: the roles that the options ask for; others may be missing.
            sentence_ends: bool[vocabulary], `Vocabulary.sentence_end`.

        Raises:
            UserError: a token is missing, or two share an id.
        """
        missing = [role for role in _NAMES if role in needs and role not in ids]
        if missing:
            raise UserError(
                f"the tokenizer of the data has no {_names_of(missing)}, which these blanks need; "
                f"it has {', '.join(sorted(ids))}. Build the dataset with a tokenizer that has "
                "GLM's command tokens, or leave out the objective that needs them."
            )
        _check_distinct(
            {role: ids[role] for role in ("eos", *_NAMES) if role in needs or role == "eos"}
        )
        return cls(
            eos=ids["eos"],
            cls=ids.get("cls", ids["eos"]),
            pad=ids.get("pad", ids["eos"]),
            **{role: ids.get(role, _ABSENT) for role in _NAMES},
            sentence_ends=sentence_ends,
        )


def _check_distinct(ids: Mapping[str, int]) -> None:
    roles: dict[int, str] = {}
    for role, token in ids.items():
        other = roles.setdefault(token, role)
        if other != role:
            raise UserError(
                f"the tokenizer of the data gives {_names_of([other, role])} the same id {token}, "
                "so that a model could not tell them apart. Build the dataset with a tokenizer "
                "that gives each its own id (for GLM's Chinese vocabulary: --fix-command-token)."
            )


def _names_of(roles: Collection[str]) -> str:
    return " and ".join(_NAMES.get(role, role) for role in roles)
