"""Which token comes next: filters of logits, and draws from what they leave.

A draw is a pure function of the logits and of one number in [0, 1), which each caller derives from
a seed, the number of the prompt and that of the token: nothing depends on what is drawn beside it.
"""

from collections.abc import Collection, Sequence

import torch
from torch import Tensor

from shards.errors import UserError
from trainer.decode.decoding import Decoding

NEVER = float("-inf")
_COLDEST = torch.finfo(torch.float32).tiny
"""The lowest temperature that no device takes for 0."""


def filtered(logits: Tensor, decoding: Decoding) -> Tensor:
    """Return logits float[b, V] divided by the temperature, -inf for what is never drawn.

    First all below the k-th go (ties with it stay), then, of what is left, all before which the
    more probable ones exceed the probability `top_p`. As in THUDM/GLM (commit 4f61ed7,
    generation_utils.py).
    """
    top_k, top_p = decoding.top_k, decoding.top_p
    # The best are 0, so that the coldest temperature leaves them alone and nothing is NaN.
    best = logits.amax(-1, keepdim=True)
    logits = (logits - best) / max(decoding.effective_temperature, _COLDEST)
    if top_k:
        least = logits.topk(min(top_k, logits.shape[-1])).values[:, -1:]
        logits = logits.masked_fill(logits < least, NEVER)
    if 0 < top_p < 1:
        ranked, order = logits.sort(descending=True)
        reached = ranked.softmax(-1).cumsum(-1)
        gone = torch.zeros_like(reached, dtype=torch.bool)
        gone[:, 1:] = reached[:, :-1] > top_p
        logits = logits.masked_fill(torch.zeros_like(gone).scatter(-1, order, gone), NEVER)
    return logits


def drawn(logits: Tensor, chances: Sequence[float]) -> Tensor:
    """Return a token for each row of logits, int64[b], as its number in [0, 1) decides."""
    reached = logits.double().softmax(-1).cumsum(-1)
    total = reached[:, -1:]
    sought = torch.tensor(chances, dtype=torch.float64, device=logits.device)[:, None] * total
    # The first token beyond the number; at the end of the range, the last one that can be drawn.
    last = (reached < total).sum(-1)
    return torch.minimum(torch.searchsorted(reached, sought, right=True)[:, 0], last)


def forbidden(tokens: Sequence[int], ends: Collection[int], decoding: Decoding) -> list[int]:
    """Return the tokens that must not follow: early ends, and what repeats an n-gram.

    Args:
        tokens: what was written so far.
        ends: the tokens that end a text.
        decoding: says the fewest tokens, and n.
    """
    banned = list(ends) if len(tokens) < decoding.min_new_tokens else []
    if decoding.no_repeat_ngram:
        known = decoding.no_repeat_ngram - 1
        tail = tuple(tokens[len(tokens) - known :])
        banned += [
            tokens[i + known]
            for i in range(len(tokens) - known)
            if tuple(tokens[i : i + known]) == tail
        ]
    return banned


def without(scores: Tensor, banned: Sequence[Sequence[int]]) -> Tensor:
    """Return scores float[b, V] with -inf for the banned tokens of each row.

    Raises:
        UserError: a row has no other tokens.
    """
    if not any(banned):
        return scores
    rows = [row for row, ids in enumerate(banned) for _ in ids]
    columns = [token for ids in banned for token in ids]
    scores = scores.clone()
    scores[rows, columns] = NEVER
    if bool((scores.amax(-1) == NEVER).any()):
        raise UserError(
            "no text can be written: --no-repeat-ngram and --min-new-tokens forbid every token of "
            "the vocabulary. Give a longer n-gram, or fewer tokens."
        )
    return scores
