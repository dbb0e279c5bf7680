"""GPT-2 as llm.c reads it (karpathy/llm.c, commit f1e2ace: train_gpt2.cu, llmc/tokenizer.h).

    model.bin            256 int32: magic, version, positions, vocabulary, layers, heads, width,
                         padded vocabulary, 0 …; then the parameters end to end, those of all
                         layers of a kind together, matrices as [outputs, inputs]
    gpt2_tokenizer.bin   256 uint32: magic, version, vocabulary, end of text, 0 …; then for each
                         id one byte with the length of its bytes, and these

llm.c looks for gpt2_tokenizer.bin in the folder in which it is started.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch

from shards.storage.files import atomic_write
from trainer.export.gpt2 import positions
from trainer.export.subject import Subject
from trainer.weights.gpt2_names import IN_LAYER, LAST, POSITIONS, WORDS, name_in_layer
from trainer.weights.safetensors import bytes_of

_MAGIC = 20240326
_VERSIONS = {torch.float32: 3, torch.bfloat16: 5}
_TOKENIZER_MAGIC, _TOKENIZER_VERSION = 20240328, 2
_HEADER = 256
"""Numbers of 4 bytes."""
_LONGEST = 255
"""Bytes of a token, whose length has one byte."""


def write_llmc(subject: Subject, folder: Path) -> list[str]:
    """Write a causal model, fp32 or bf16, for llm.c and return what its user should know."""
    shape, tensors = subject.shape, subject.tensors
    sizes = (shape.num_layers, shape.num_heads, shape.hidden_size, shape.vocab_size)
    version = _VERSIONS[tensors.dtype]
    header = np.zeros(_HEADER, "<i4")
    header[:8] = _MAGIC, version, shape.position_rows, subject.vocabulary, *sizes
    table = tensors.renamed(tensors.shapes, lambda _: positions(tensors))
    is_bf16 = tensors.dtype == torch.bfloat16
    with atomic_write(folder / ("model_bf16.bin" if is_bf16 else "model.bin")) as handle:
        handle.write(header)
        for name in _order(shape.num_layers):
            handle.write(bytes_of((table if name == POSITIONS else tensors).read(name)))
    build = "in its usual build" if is_bf16 else "built with PRECISION=FP32"
    return [f"llm.c reads it {build}", *_write_tokenizer(subject, folder)]


def _order(num_layers: int) -> Iterator[str]:
    yield WORDS
    yield POSITIONS
    for kind in IN_LAYER:
        yield from (name_in_layer(index, kind) for index in range(num_layers))
    yield from LAST


def _write_tokenizer(subject: Subject, folder: Path) -> list[str]:
    tokenizer = subject.tokenizer
    if tokenizer is None:
        return [
            "gpt2_tokenizer.bin, with which llm.c shows its samples, is missing: give --tokenizer"
        ]
    pieces = tokenizer.pieces()[: subject.vocabulary]
    if wrong := [i for i, piece in enumerate(pieces) if not 0 < len(piece) <= _LONGEST]:
        return [
            f"no gpt2_tokenizer.bin: the token {wrong[0]} has {len(pieces[wrong[0]])} bytes, and "
            f"llm.c's have 1 to {_LONGEST}"
        ]
    header = np.zeros(_HEADER, "<u4")
    header[:4] = _TOKENIZER_MAGIC, _TOKENIZER_VERSION, len(pieces), tokenizer.special["eos"]
    with atomic_write(folder / "gpt2_tokenizer.bin") as handle:
        handle.write(header)
        handle.write(b"".join(bytes([len(piece)]) + piece for piece in pieces))
    return []
