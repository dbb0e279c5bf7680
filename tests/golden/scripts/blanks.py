"""Prints hashes of the blanks made from the dataset in the script's folder."""

import hashlib
from collections.abc import Iterable
from itertools import islice

from shards import VALIDATION, Dataset, Sampler, SequentialSampler, glm_windows, streams_of
from trainer import Loader, read_once
from trainer.blanks.objective import BlankInfilling, BlankOptions

SPANS = {"bert_prob": 1, "sentence_prob": 0}
SENTENCES = {"bert_prob": 0, "sentence_prob": 1}
ENDS = {"bert_prob": 0, "sentence_prob": 0}
OPTIONS = (
    {},
    {"short_seq_prob": 0.9, "random_position": True},
    {**SPANS, "single_span_prob": 0.3, "context_mask_ratio": 0.1},
    {**SPANS, "span_ratio": 0.9, "block_mask_prob": 0.5},
    {**SENTENCES, "span_ratio": 0.5},
    {**ENDS, "infill_prob": 0, "gpt_min_ratio": 0.05},
    {**ENDS, "infill_prob": 1, "task_mask": False},
)


def show(title: object, batches: Iterable[dict]) -> None:
    """Print a line for each batch: its width, and a hash of each tensor."""
    for batch in batches:
        found = (
            f"{key}={hashlib.sha256(values.contiguous().numpy().tobytes()).hexdigest()[:8]}"
            for key, values in sorted(batch.items())
        )
        print(title, batch["tokens"].shape[1], *found)


def main() -> None:
    data = Dataset.open("data")
    entry = data.manifest.tokenizer
    for positions in (6, 64, 200):
        window = glm_windows(positions)
        sampler = Sampler(streams_of(data), seed=positions, num_scatters=2, window=window)
        held_out = SequentialSampler(streams_of(data, split=VALIDATION), window=window)
        for number, options in enumerate(OPTIONS):
            blanks = BlankInfilling(
                entry.special,
                BlankOptions(**options),
                max_positions=positions,
                sentence_ends=data.vocabulary.sentence_end,
                isolate=number < 4,
            )
            name = f"{positions} {number}"
            show(f"{name} alone", islice(Loader(sampler, batch_size=64, blanks=blanks), 2))
            second = Loader(sampler, batch_size=64, rank=1, world=2, blanks=blanks)
            show(f"{name} rank 1 of 2", islice(second, 1))
            show(f"{name} held out", read_once(held_out, batch_size=8, blanks=blanks))
            # The last batch has no sample for this rank.
            last = read_once(held_out, batch_size=8, rank=3, world=4, blanks=blanks)
            show(f"{name} held out, rank 3 of 4", last)


if __name__ == "__main__":
    main()
