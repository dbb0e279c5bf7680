import pytest

from tests.trainer.decode.small import EOP, PROMPTS, SHAPE, TEXTS, causal, greedy, reader
from trainer.decode.decoding import Decoding
from trainer.decode.prompt import Prompt
from trainer.decode.search import ENDED, LIMIT, POSITIONS, Filling, fill

GREEDY = Decoding(max_new_tokens=6)


def filled(prompts: tuple[Prompt, ...], decoding: Decoding, size: int) -> list[list[Filling]]:
    """In batches of a size; each prompt's draws derive from its number."""
    return [
        fillings
        for first in range(0, len(prompts), size)
        for fillings in fill(
            reader(),
            prompts[first : first + size],
            decoding,
            first=first,
        )
    ]


@pytest.mark.parametrize("prompts", [PROMPTS, TEXTS])
@pytest.mark.parametrize("size", [1, 3, 4])
def test_as_without_a_cache(prompts: tuple[Prompt, ...], size: int) -> None:
    expected = [greedy(wanted, limit=6) for wanted in prompts]
    found = filled(prompts, GREEDY, size)
    assert [[list(f.tokens) for f in fillings] for fillings in found] == expected
    assert {f.finish for fillings in found for f in fillings} >= {LIMIT}


def test_what_ends_a_blank() -> None:
    hot = Decoding(max_new_tokens=400, temperature=3.0)
    fillings = [f for found in filled(PROMPTS * 2, hot, 8) for f in found]
    room = SHAPE.position_rows - 1
    by_reason = {
        reason: [f for f in fillings if f.finish == reason] for reason in (ENDED, POSITIONS)
    }
    assert all(by_reason.values())
    assert sum(map(len, by_reason.values())) == len(fillings)
    assert {len(f.tokens) for f in by_reason[POSITIONS]} == {room}
    assert all(EOP not in f.tokens for f in fillings)


def test_a_causal_text_ends_with_the_positions() -> None:
    (found,) = filled((causal(range(1, 41)),), Decoding(max_new_tokens=400, min_new_tokens=400), 1)
    assert found[0].finish == POSITIONS
    # Positions 0 to 48; the last token put out is not read.
    assert len(found[0].tokens) == SHAPE.position_rows - 39
