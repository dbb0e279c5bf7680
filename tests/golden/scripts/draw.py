"""Prints what samplers draw from the data of its folder."""

from collections.abc import Iterable

import numpy as np

from shards import (
    UNSEEN,
    BatchSize,
    Dataset,
    Mix,
    Run,
    Sampler,
    causal_windows,
    glm_windows,
    pinned,
    streams_of,
    switched,
)


def table(title: str, sampler: Sampler, positions: Iterable[int]) -> None:
    """A line a position: stream, scatter, epoch, sample, shard, window, phase, key."""
    at = np.array([*positions])
    drawn = sampler.draw(at)
    where = sampler.locate(drawn)
    columns = (at, drawn.stream, drawn.scatter, drawn.epoch, drawn.sample, *where)
    print(title, [stream.num_tokens for stream in sampler.streams])
    for row in zip(*columns, sampler.keys(drawn), strict=True):
        print(" ", *map(int, row))
    last = int(at[-1])
    print("  epochs", np.round(sampler.epochs(last), 6).tolist())
    print("  counts", sampler.counts(at[-2:]).tolist())


def main() -> None:
    data = Dataset.open("data")
    streams = streams_of(data)
    plain = Sampler(streams, seed=1, num_scatters=1, window=causal_windows(128))
    table("plain", plain, range(12))
    table("epochs", plain, range(98, 302, 17))
    scattered = Sampler(streams, seed=2, num_scatters=2, window=glm_windows(96))
    table("scattered", scattered, range(0, 400, 23))

    mixes = (
        Mix(start=0, data=("data@1=0.7", "asked=0.3")),
        Mix(start=30, data=("data@2=0.5", "asked:zhihu=0.5")),
        Mix(start=50, data=("data@3=1", "asked=2")),
    )
    run = Run(
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
    print([(step, run.position_of(step), run.batch_size(step)) for step in (0, 4, 5, 6, 11)])
    for position in (0, 1, 29, 30, 31, 50, 51):
        state = sampler.state_dict(position)
        starts = [stage["start"] for stage in state["stages"]]
        print("state at", sampler.load_state_dict(state), starts, len(state["shards"]))

    followed = Run(mixes=(Mix(start=0, data=("data@1",)),), batches=run.batches, seed=4, length=64)
    grown = switched(pinned(followed), 40, numbers={"data": 2}, weight=UNSEEN)
    table("unseen", grown.sampler(), range(30, 260, 9))
    print("mixes start at", [mix.start for mix in grown.mixes])


if __name__ == "__main__":
    main()
