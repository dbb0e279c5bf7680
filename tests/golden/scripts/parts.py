from pathlib import Path

import torch
from safetensors import safe_open

weights = {}
for path in Path("safe").glob("*.safetensors"):
    with safe_open(path, "pt") as file:
        weights |= {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118

COLUMNS = ("attention.dense.weight", "dense_4h_to_h.weight")
ROWS = ("word_embeddings.weight", "dense_h_to_4h.weight", "dense_h_to_4h.bias")


def part(name, value, rank):
    if "query_key_value" in name:
        return torch.cat([third.chunk(2)[rank] for third in value.chunk(3)])
    if name.endswith(COLUMNS):
        return value.chunk(2, 1)[rank].clone()
    return value.chunk(2)[rank].clone() if name.endswith(ROWS) else value


folder = Path("joined/release")
folder.mkdir(parents=True)
for rank in range(2):
    state = {name: part(name, value, rank) for name, value in weights.items()}
    torch.save({"module": state, "iteration": 60}, folder / f"mp_rank_0{rank}_model_states.pt")
Path("joined/latest").write_text("release")
