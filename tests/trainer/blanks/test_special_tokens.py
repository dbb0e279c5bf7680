import pytest

from shards.errors import UserError
from tests.trainer.texts import CLS, EOP, EOS, SENTENCE_ENDS, SPECIAL
from trainer.blanks.special_tokens import SpecialTokens


def test_ids_by_role() -> None:
    special = SpecialTokens.of(SPECIAL, needs=SPECIAL, sentence_ends=SENTENCE_ENDS)
    assert (special.eos, special.cls, special.eop) == (EOS, CLS, EOP)
    assert special.sentence_ends is SENTENCE_ENDS


def test_eos_stands_in_for_cls_and_pad() -> None:
    special = SpecialTokens.of({"eos": 9, "sop": 3}, needs={"sop"}, sentence_ends=SENTENCE_ENDS)
    assert (special.cls, special.pad, special.sop, special.eop) == (9, 9, 3, -1)


def test_missing_tokens_are_named() -> None:
    with pytest.raises(UserError, match=r"has no \[MASK\] and eop, which these .* has eos, sop"):
        SpecialTokens.of(
            {"eos": 0, "sop": 1}, needs={"mask", "sop", "eop"}, sentence_ends=SENTENCE_ENDS
        )


def test_two_tokens_of_one_id() -> None:
    """GLM's Chinese vocabulary without --fix-command-token has this."""
    same = {**SPECIAL, "gmask": EOP}
    with pytest.raises(UserError, match=r"\[gMASK\] and eop the same id 6"):
        SpecialTokens.of(same, needs=SPECIAL, sentence_ends=SENTENCE_ENDS)
    # It is no problem where only one of them is needed.
    SpecialTokens.of(same, needs={"sop", "eop"}, sentence_ends=SENTENCE_ENDS)
