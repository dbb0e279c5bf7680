"""llm.c's files, read back as train_gpt2.c and llmc/tokenizer.h (f1e2ace) read them."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from tests.trainer.export.tokens import MERGES, put_tokenizer
from tests.trainer.saved import GPT2_SHAPE, causal_logits, random_model, save_run
from trainer.export.export import export
from trainer.export.exporting import Exporting


class Read:
    """A model file as llm.c's `ParameterTensors` points into it."""

    def __init__(self, path: Path) -> None:
        header = np.fromfile(path, "<i4", 256)
        magic, self.version, self.positions, self.vocabulary, *sizes = header[:8].tolist()
        assert magic == 20240326
        assert not header[8:].any()
        self.layers, self.heads, self.width, rows = sizes
        c, n = self.width, self.layers
        self.shapes = {
            "wte": (rows, c),
            "wpe": (self.positions, c),
            "ln1w": (n, c),
            "ln1b": (n, c),
            "qkvw": (n, 3 * c, c),
            "qkvb": (n, 3 * c),
            "attprojw": (n, c, c),
            "attprojb": (n, c),
            "ln2w": (n, c),
            "ln2b": (n, c),
            "fcw": (n, 4 * c, c),
            "fcb": (n, 4 * c),
            "fcprojw": (n, c, 4 * c),
            "fcprojb": (n, c),
            "lnfw": (c,),
            "lnfb": (c,),
        }
        dtype = {3: torch.float32, 5: torch.bfloat16}[self.version]
        values = torch.from_numpy(np.fromfile(path, np.uint8, offset=1024)).view(dtype).float()
        sizes = [int(np.prod(shape)) for shape in self.shapes.values()]
        assert sum(sizes) == len(values)
        parts = zip(self.shapes.items(), values.split(sizes), strict=True)
        self.of = {name: part.view(shape) for (name, shape), part in parts}

    def logits(self, tokens: Tensor) -> Tensor:
        """The forward pass of train_gpt2.c."""
        of, heads = self.of, self.heads
        b, t = tokens.shape
        x = of["wte"][tokens] + of["wpe"][:t]
        for i in range(self.layers):
            q, k, v = (
                norm(x, of["ln1w"][i], of["ln1b"][i]) @ of["qkvw"][i].T + of["qkvb"][i]
            ).chunk(3, dim=-1)
            q, k, v = (z.view(b, t, heads, -1).transpose(1, 2) for z in (q, k, v))
            scores = q @ k.transpose(2, 3) / q.shape[-1] ** 0.5
            scores = scores.masked_fill(torch.ones(t, t).triu(1).bool(), -torch.inf).softmax(-1)
            x = x + (scores @ v).transpose(1, 2).reshape(b, t, -1) @ of["attprojw"][i].T
            x = x + of["attprojb"][i]
            h = norm(x, of["ln2w"][i], of["ln2b"][i]) @ of["fcw"][i].T + of["fcb"][i]
            h = 0.5 * h * (1 + torch.tanh((2 / torch.pi) ** 0.5 * (h + 0.044715 * h**3)))
            x = x + h @ of["fcprojw"][i].T + of["fcprojb"][i]
        return norm(x, of["lnfw"], of["lnfb"]) @ of["wte"].T


def norm(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    mean, var = x.mean(-1, keepdim=True), x.var(-1, keepdim=True, correction=0)
    return (x - mean) / (var + 1e-5).sqrt() * weight + bias


@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
@pytest.mark.parametrize("block_positions", [False, True])
def test_its_forward_pass_gives_the_same_logits(
    tmp_path: Path, dtype: str, block_positions: bool
) -> None:
    model = random_model(replace(GPT2_SHAPE, block_positions=block_positions))
    run = save_run(tmp_path / "run", model, objective="causal")
    export(run, Exporting(to="llm.c", output=tmp_path / "out", dtype=dtype))
    read = Read(tmp_path / "out" / ("model.bin" if dtype == "fp32" else "model_bf16.bin"))
    assert (read.version, read.vocabulary) == (3 if dtype == "fp32" else 5, 384)
    assert (read.layers, read.heads, read.width) == (2, 4, 32)
    tokens = torch.randint(384, (2, 24))
    if dtype == "bf16" and block_positions:  # positions are added before they are rounded
        return
    if dtype == "bf16":
        model = model.bfloat16().float()
    assert (read.logits(tokens) - causal_logits(model, tokens)).abs().max() < 1e-5


def test_its_tokenizer(tmp_path: Path) -> None:
    run = save_run(tmp_path / "run", random_model(GPT2_SHAPE), objective="causal")
    spec = put_tokenizer(tmp_path)
    export(run, Exporting(to="llm.c", output=tmp_path / "out", tokenizer=spec))
    content = (tmp_path / "out" / "gpt2_tokenizer.bin").read_bytes()
    assert np.frombuffer(content[:16], "<u4").tolist() == [20240328, 2, 262, 261]
    tokens, rest = list[bytes](), content[1024:]
    while rest:
        tokens.append(rest[1 : 1 + rest[0]])
        rest = rest[1 + rest[0] :]
    assert len(set(tokens)) == 262
    assert tokens[256:] == [b"th", b"the", b" the", b"on", b" on", b"<|endoftext|>"]
    assert len(MERGES) == 5
    assert Read(tmp_path / "out" / "model.bin").vocabulary == 262
