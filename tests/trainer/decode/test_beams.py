import pytest

from tests.trainer.decode.small import PROMPTS, TEXTS, best_text, logits_after, reader
from trainer.decode.decoding import Decoding
from trainer.decode.prompt import Prompt
from trainer.decode.search import ENDED, LIMIT, fill


@pytest.mark.parametrize("prompts", [PROMPTS, TEXTS])
@pytest.mark.parametrize(("beams", "penalty"), [(2, 0.0), (3, 0.8), (3, 2.0)])
def test_as_a_plain_search(prompts: tuple[Prompt, ...], beams: int, penalty: float) -> None:
    options = Decoding(max_new_tokens=5, beams=beams, length_penalty=penalty)
    found = fill(reader(), prompts, options)
    for wanted, fillings in zip(prompts, found, strict=True):
        tokens, worth = best_text(wanted, beams=beams, limit=5, penalty=penalty)
        assert list(fillings[0].tokens) == tokens
        assert fillings[0].score == pytest.approx(worth, abs=1e-4)
        assert fillings[0].finish == (ENDED if len(tokens) < 5 else LIMIT)


def test_later_blanks_see_the_best_text_of_earlier_ones() -> None:
    # One beam is the most probable token each time, and its log probability is told.
    options = Decoding(max_new_tokens=3, min_new_tokens=3, beams=2)
    (first, second), *_ = fill(reader(), PROMPTS[:1], options)
    total, read = 0.0, [list(first.tokens[:-1])]
    for place, token in enumerate(second.tokens):
        logits = logits_after(PROMPTS[0], [*read, list(second.tokens[:place])])
        total += float(logits.log_softmax(-1)[token])
    assert second.score == pytest.approx(total, abs=1e-4)
