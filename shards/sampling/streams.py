"""Streams, which a sampler draws from: the shards of one source of one generation.

Shard i of a stream belongs to scatter i mod S. A stream that would leave a scatter without a token
(it has fewer than S shards, or some of them are empty) is *common*: every node has all of it.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from shards.errors import UserError
from shards.manifest import TRAIN, ShardEntry
from shards.reader import Dataset


@dataclass(frozen=True, kw_only=True)
class Stream:
    """The shards of a source of a generation, in order."""

    name: str
    """FINGERPRINT/SOURCE or FINGERPRINT/SOURCE/SPLIT; depends on the content, not on the folder."""
    dataset: Dataset = field(repr=False, compare=False)
    """The dataset that contains the shards."""
    shards: tuple[ShardEntry, ...] = field(repr=False)

    @property
    def num_tokens(self) -> int:
        """The number of tokens of all shards in the stream."""
        return sum(shard.tokens for shard in self.shards)

    def is_common(self, num_scatters: int) -> bool:
        """Return whether every node needs the whole stream (see the function `is_common`)."""
        return is_common(self.shards, num_scatters)


def is_common(shards: Sequence[ShardEntry], num_scatters: int) -> bool:
    """Return whether some scatter would get no token if the shards were divided among scatters."""
    filled = {i % num_scatters for i, shard in enumerate(shards) if shard.tokens}
    return len(filled) < num_scatters


def streams_of(
    dataset: Dataset, source: str | None = None, *, split: str = TRAIN
) -> tuple[Stream, ...]:
    """Return the streams of a dataset or one of its sources, by generation and then source.

    Streams without tokens are left out.

    Raises:
        UserError: there is no such source.
    """
    dataset.check_source(source)
    streams = (
        Stream(
            name="/".join([generation.fingerprint, name, *([] if split == TRAIN else [split])]),
            dataset=dataset,
            shards=entry.split(split),
        )
        for generation, name, entry in dataset.manifest.source_entries()
        if source in (None, name)
    )
    return tuple(stream for stream in streams if stream.num_tokens)


def check_scatters(streams: Sequence[Stream], num_scatters: int) -> None:
    """Check that a corpus can be divided among this many scatters.

    Raises:
        UserError: the shards of a stream cannot be divided evenly; the message names numbers that
            fit.
    """
    if num_scatters < 1:
        raise UserError(f"{num_scatters} scatters: there must be 1 or more")
    counts = {len(stream.shards) for stream in streams}
    uneven = (
        stream
        for stream in streams
        if len(stream.shards) % num_scatters and not stream.is_common(num_scatters)
    )
    if (stream := next(uneven, None)) is None:
        return
    fits = [n for n in range(1, max(counts) + 1) if _divides(n, counts)]
    near = sorted(sorted(fits, key=lambda n: (abs(n - num_scatters), n))[:3])
    raise UserError(
        f"{num_scatters} scatters do not fit: stream {stream.name} has {len(stream.shards)} "
        "shards, and every scatter must get the same number. Nearby numbers of scatters that fit: "
        f"{', '.join(map(str, near))}."
    )


def _divides(num_scatters: int, counts: Collection[int]) -> bool:
    return all(count % num_scatters == 0 or count < num_scatters for count in counts)
