"""Prints the windows that samplers draw from the dataset in this folder, and loaders' batches."""

import hashlib
from collections.abc import Iterable

import numpy as np

from shards import (
    VALIDATION,
    BatchSize,
    Blend,
    Dataset,
    Sampler,
    SamplingPlan,
    SequentialSampler,
    causal_windows,
    glm_windows,
    resolve_versions,
    streams_of,
    switch_version,
)
from trainer import Loader, read_once


def table(title: str, sampler: Sampler, positions: Iterable[int]) -> None:
    """Print one line per position: stream, scatter, epoch, shard, window, phase and key."""
    at = np.array([*positions])
    drawn = sampler.draw(at)
    print(title, [stream.num_tokens for stream in sampler.streams])
    for row in zip(at, *drawn, strict=True):
        print(" ", *map(int, row))
    last = int(at[-1])
    print("  epochs", np.round(sampler.epochs(last), 6).tolist())
    print("  counts", sampler.schedule.counts_until(last).tolist())


def back(sampler: Sampler, positions: Iterable[int]) -> None:
    """Print the positions that a sampler does not find again from the window it draws there."""
    at = np.array([*positions])
    drawn = sampler.draw(at)
    for index, position in enumerate(at):
        found = sampler.position_of(
            int(drawn.stream[index]),
            shard=int(drawn.shard[index]),
            window=int(drawn.window[index]),
            epoch=int(drawn.epoch[index]),
        )
        if found != position:
            print("  not found again:", position, found)


def digest(values: object) -> str:
    if values is None:
        return "none"
    array = np.ascontiguousarray(np.asarray(values))
    return f"{array.shape} {hashlib.sha256(array.tobytes()).hexdigest()[:12]}"


def batches(title: str, loader: Iterable[dict], count: int) -> None:
    """Print a line for each batch, with the hashes of the batch's parts."""
    print(title)
    for _, batch in zip(range(count), loader, strict=False):
        print(" ", *(f"{key}={digest(batch[key])}" for key in sorted(batch)))


def main() -> None:
    data = Dataset.open("data")
    streams = streams_of(data)
    plain = Sampler(streams, seed=1, num_scatters=1, window=causal_windows(128))
    table("plain", plain, range(12))
    table("epochs", plain, range(98, 302, 17))
    back(plain, range(0, 300, 7))
    scattered = Sampler(streams, seed=2, num_scatters=2, window=glm_windows(96))
    table("scattered", scattered, range(0, 400, 23))
    back(scattered, range(0, 400, 11))

    mixes = (
        Blend(start=0, data=("data@1=0.7", "asked=0.3")),
        Blend(start=30, data=("data@2=0.5", "asked:zhihu=0.5")),
        Blend(start=50, data=("data@3=1", "asked=2")),
    )
    run = SamplingPlan(
        mixes=mixes,
        batches=(BatchSize(step=0, size=4), BatchSize(step=5, size=8)),
        seed=3,
        scatters=1,
        length=64,
        max_epochs={"asked": 40},
        steps=12,
    )
    sampler = run.sampler()
    table("mixed", sampler, range(0, 76, 3))
    back(sampler, range(0, 76))
    print([(step, run.position_of(step), run.batch_size(step)) for step in (0, 4, 5, 6, 11)])
    for position in (0, 1, 29, 30, 31, 50, 51):
        state = sampler.state_dict(position)
        starts = [stage["start"] for stage in state["stages"]]
        print("state at", sampler.load_state_dict(state), starts, len(state["shards"]))

    followed = SamplingPlan(
        mixes=(Blend(start=0, data=("data@1",)),), batches=run.batches, seed=4, length=64
    )
    grown = switch_version(resolve_versions(followed), 40, numbers={"data": 2})
    table("unseen", grown.sampler(), range(30, 260, 9))
    print("mixes start at", [mix.start for mix in grown.mixes])

    for rank in range(2):
        loader = Loader(sampler, batch_size=4, rank=rank, world=2)
        batches(f"rank {rank} of 2", loader, 4)
    batches("whole", Loader(scattered, batch_size=4, rank=0, world=1), 3)
    # With a wide slack, narrow windows are cut in every possible way.
    cut = Sampler(streams, seed=5, num_scatters=1, window=glm_windows(40, slack=10))
    batches("cut", Loader(cut, batch_size=24, rank=0, world=1), 18)
    held_out = SequentialSampler(streams_of(data, split=VALIDATION), window=causal_windows(64))
    batches("held out", read_once(held_out, batch_size=3), 9)
    batches("half", read_once(held_out, batch_size=8, rank=1, world=2, boundaries=True), 9)


if __name__ == "__main__":
    main()
