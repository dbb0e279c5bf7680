import re

import numpy as np


def loud(batch):
    return ["shouting" if "!!!" in text else None for text in batch["text"].to_pylist()]


class Length:
    metrics = ("chars", "longest")
    bounds = {"min_chars": 12, "max_longest": 20}

    def __init__(self, unit="1"):
        self.unit = int(unit)

    def __call__(self, batch):
        texts = batch["text"].to_pylist()
        return {
            "chars": np.array([len(text) / self.unit for text in texts]),
            "longest": [max(map(len, text.split()), default=float("nan")) for text in texts],
        }


class Stars:
    changes_text = True

    def __call__(self, batch):
        texts = [re.sub("[*]+", "", text) for text in batch["text"].to_pylist()]
        return {"text": texts, "reason": ["none left" if text == "?" else None for text in texts]}
