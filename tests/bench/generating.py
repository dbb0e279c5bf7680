"""Measures how fast one thread or an accelerator generates 512 tokens from a prompt of 16."""

import time
from dataclasses import replace

import torch

from tests.bench.table import render
from trainer.generate.decoder import CachedDecoder
from trainer.generate.decoding import Decoding
from trainer.generate.prompt import Blank, Prompt
from trainer.generate.search import fill
from trainer.model.model import GLM
from trainer.model.sizes import SIZES

MODELS = ("tiny", "glm-base", "gpt2-d12")
TOKENS, CONTEXT = 512, 16
BATCHES = (1, 8)


def measure() -> str:
    """Return the table of tokens per second, of CPU time on a CPU, else of elapsed time."""
    device = torch.accelerator.current_accelerator(check_available=True) or torch.device("cpu")
    on_cpu = device.type == "cpu"
    dtype, clock = (
        (torch.float32, time.process_time) if on_cpu else (torch.bfloat16, time.perf_counter)
    )
    decoding = Decoding(max_new_tokens=TOKENS, min_new_tokens=TOKENS)
    rows = []
    for name in MODELS:
        shape = replace(SIZES[name], max_positions=1024, hidden_dropout=0.0, attention_dropout=0.0)
        torch.manual_seed(0)
        with device:
            model = GLM(shape).to(dtype).eval().requires_grad_(False)
        causal, rates = not shape.block_positions, []
        for batch in BATCHES:
            for _ in range(1 if on_cpu else 2):  # the first run on an accelerator is a warm-up
                began = clock()
                prompts = [_prompt(seed, causal) for seed in range(batch)]
                fill(CachedDecoder(model, shape, device), prompts, decoding)
                seconds = clock() - began
            rates.append(f"{batch * TOKENS / seconds:,.1f}")
        rows.append([name, *rates])
    head = ("tokens a second", *(f"batch {batch}" for batch in BATCHES))
    return f"{device.type}, {dtype}\n{render(head, rows)}"


def _prompt(seed: int, causal: bool) -> Prompt:
    ids = torch.randint(0, 128, (CONTEXT,), generator=torch.Generator().manual_seed(seed)).tolist()
    blank = Blank(token=ids[-1], position=CONTEXT - 1, block_position=0 if causal else 1)
    return Prompt(context=tuple(ids[:-1]), blanks=(blank,), ends=frozenset({0}), causal=causal)
