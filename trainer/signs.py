"""What blanks need to know of a tokenizer: the special tokens, and which tokens end a sentence."""

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
"""The roles that blanks may need, and how people call them; eos every tokenizer has."""
_ABSENT = -1


@dataclass(frozen=True, kw_only=True, eq=False)
class Signs:
    """Token ids by role; -1 is an id that is not there and not needed.

    As in `shards.windows`, a tokenizer without cls or pad is served by its eos.
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


def signs_of(
    special: Mapping[str, int], *, needs: Collection[str], sentence_ends: NDArray[np.bool_]
) -> Signs:
    """Return the signs of a tokenizer.

    Args:
        special: the ids by role, `manifest.tokenizer.special`.
        needs: the roles that the options ask for; others may be missing.
        sentence_ends: bool[vocabulary]: `Vocabulary.sentence_end`.

    Raises:
        UserError: a token is missing, or two have one id.
    """
    missing = [role for role in _NAMES if role in needs and role not in special]
    if missing:
        raise UserError(
            f"the tokenizer of the data has no {_listed(missing)}, which these blanks need; it has "
            f"{', '.join(sorted(special))}. Make the dataset with a tokenizer that has GLM's "
            "command tokens, or leave out the objective that needs them."
        )
    _check_distinct(
        {role: special[role] for role in ("eos", *_NAMES) if role in needs or role == "eos"}
    )
    return Signs(
        eos=special["eos"],
        cls=special.get("cls", special["eos"]),
        pad=special.get("pad", special["eos"]),
        **{role: special.get(role, _ABSENT) for role in _NAMES},
        sentence_ends=sentence_ends,
    )


def _check_distinct(ids: Mapping[str, int]) -> None:
    roles: dict[int, str] = {}
    for role, i in ids.items():
        other = roles.setdefault(i, role)
        if other != role:
            raise UserError(
                f"the tokenizer of the data gives {_listed([other, role])} the same id {i}, so "
                "that a model could not tell them apart. Make the dataset with a tokenizer that "
                "gives each an id of its own (for GLM's Chinese vocabulary: --fix-command-token)."
            )


def _listed(roles: Collection[str]) -> str:
    return " and ".join(_NAMES.get(role, role) for role in roles)
