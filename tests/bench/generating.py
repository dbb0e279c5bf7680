"""How fast models write 512 tokens, with what was read kept and with everything read anew.

python -m tests.bench --only generate
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

import torch

from tests.bench.table import render
from trainer.decode.decoding import Decoding
from trainer.decode.prompt import Blank, Prompt
from trainer.decode.reader import Reader
from trainer.decode.search import fill
from trainer.model.model import GLM
from trainer.model.sizes import SIZES, ModelConfig

MODELS = ("tiny", "glm-base", "gpt2-d12")
TOKENS = 512
CONTEXT = 16
BATCH = 8
POINTS = 8
"""Lengths at which reading everything anew is timed; each stands for those around it."""


def measure() -> str:
    """Return the table of tokens a second: of processor time on a CPU, else by the clock."""
    device = torch.accelerator.current_accelerator(check_available=True) or torch.device("cpu")
    dtype = torch.float32 if device.type == "cpu" else torch.bfloat16
    rows = []
    for name in MODELS:
        shape = replace(SIZES[name], max_positions=1024, hidden_dropout=0.0, attention_dropout=0.0)
        torch.manual_seed(0)
        with device:
            model = GLM(shape).to(dtype).eval().requires_grad_(False)
        kept = [_kept(model, shape, device, batch) for batch in (1, BATCH)]
        anew = _anew(model, shape, device)
        figures = (anew, kept[0], kept[0] / anew, kept[1])
        rows.append([name, *(f"{figure:,.1f}" for figure in figures)])
    clock = "processor time, all threads counted" if device.type == "cpu" else "the clock"
    head = ("model", "all read anew", "kept", "times", f"kept, batch {BATCH}")
    what = f"{device.type}, {str(dtype).removeprefix('torch.')}: tokens a second of {clock}"
    return f"{what}; {TOKENS} tokens from a prompt of {CONTEXT}\n{render(head, rows)}"


def _kept(model: GLM, shape: ModelConfig, device: torch.device, batch: int) -> float:
    prompts = [_prompt(shape, seed) for seed in range(batch)]
    decoding = Decoding(max_new_tokens=TOKENS, min_new_tokens=TOKENS)

    def write() -> None:
        fill(Reader(model, shape, device), prompts, decoding)

    return batch * TOKENS / _seconds(write, device)


def _anew(model: GLM, shape: ModelConfig, device: torch.device) -> float:
    step = TOKENS // POINTS
    total = 0.0
    for length in range(CONTEXT + step // 2, CONTEXT + TOKENS, step):
        tokens = torch.zeros(1, length, dtype=torch.int64, device=device)
        sep = torch.tensor([CONTEXT], device=device) if shape.block_positions else None
        mask = model.mask(tokens, sep, None)

        def read(tokens: torch.Tensor = tokens, mask: object = mask) -> None:
            with torch.no_grad():
                hidden = model.hidden_states(tokens, None, mask)  # type: ignore[arg-type]  # as made
                model.word_embeddings(hidden[:, -1], project=True).argmax(-1).tolist()

        total += step * _seconds(read, device)
    return TOKENS / total


def _prompt(shape: ModelConfig, seed: int) -> Prompt:
    generator = torch.Generator().manual_seed(seed)
    ids: Sequence[int] = torch.randint(
        0, shape.vocab_size, (CONTEXT,), generator=generator
    ).tolist()
    causal = not shape.block_positions
    blank = Blank(token=ids[-1], position=CONTEXT - 1, block_position=0 if causal else 1)
    return Prompt(
        context=tuple(ids[:-1]),
        blanks=(blank,),
        ends=frozenset({0}),
        causal=causal,
    )


def _seconds(work: Callable[[], None], device: torch.device) -> float:
    """Return how long some work takes; on an accelerator the second time, without its start."""
    if device.type == "cpu":
        begin = time.process_time()
        work()
        return time.process_time() - begin
    work()
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin
