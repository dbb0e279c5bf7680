"""Weights in proportion to unseen text, so that all text is read once before any is repeated.

The epoch of a stream is that of the scatter that has read the least of the stream. The rest of
that epoch in all scatters is *unseen*. Stages draw exactly the unseen windows, at any moment in
proportion to the number in each stream. Together the stages have 2^B periods of several thousand
draws each. If a stream has u windows left,

    u = q 2^B + r      stage b = 0 … B - 1 has 2^b periods with q + (bit b of r) draws of it,
                       one more period has q

so that B + 1 stages are exact for any number of windows. A stream that is too small for a draw in
each period is read in the first stages, which are short.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from shards.sampling.mixture_schedule import MAX_PERIOD, draws_of_all
from shards.sampling.permutation import Integers
from shards.sampling.sampler import Sampler
from shards.sampling.stages import MixtureStage

_PERIOD = 2**12
"""The minimum number of draws in a period of a stage; a period has up to twice as many. The number
is small because each stage has a table."""


@dataclass(frozen=True, kw_only=True)
class StreamGroup:
    """Streams that together have a share of the samples."""

    share: Fraction
    """The share of the group, in the same unit for all groups."""
    streams: tuple[int, ...]
    """Indexes into the sampler's streams."""


def stages_until_seen(
    sampler: Sampler, groups: Sequence[StreamGroup], *, start: int
) -> Iterator[MixtureStage]:
    """Yield stages, beginning at a position, that draw all unseen windows of the current epochs.

    The last stage begins after these windows and gives equal weights to all windows of a group. A
    group that ends before the others starts its next epoch, because groups keep their shares.
    """
    windows = sampler.partitions.windows_of_streams
    drawn = sampler.schedule.counts_until(start)
    left: list[int] = np.maximum(_epoch_ends(sampler, drawn) - drawn, 0).max(axis=0).tolist()
    while any(left[stream] for group in groups for stream in group.streams):
        draws = _draws_until_a_group_ends(groups, left, windows)
        for periods, in_period in _exact_periods(draws):
            yield _stage(sampler, start, in_period)
            start += periods * sum(in_period) * sampler.num_scatters
        left = [max(0, before - now) for before, now in zip(left, draws, strict=True)]
    weights = [Fraction(0)] * len(windows)
    for group in groups:
        total = sum(windows[stream] for stream in group.streams)
        for stream in group.streams:
            weights[stream] = group.share * windows[stream] / total
    yield _stage(sampler, start, draws_of_all(weights, period=MAX_PERIOD))


def _draws_until_a_group_ends(
    groups: Sequence[StreamGroup], left: Sequence[int], windows: Sequence[int]
) -> list[int]:
    """Return the draws of each stream in a scatter until the first group has nothing left.

    Groups with nothing left at the start are not counted; they draw evenly from all their windows.
    """
    running = [group for group in groups if any(left[stream] for stream in group.streams)]
    lengths = {group: sum(left[stream] for stream in group.streams) for group in running}
    until = min(lengths[group] / group.share for group in running)
    draws = [0] * len(left)
    for group in groups:
        amounts = left if group in lengths else windows
        total = sum(amounts[stream] for stream in group.streams)
        for stream in group.streams:
            draws[stream] = int(amounts[stream] * group.share * until / total)
    return draws


def _exact_periods(draws: Sequence[int]) -> Iterator[tuple[int, list[int]]]:
    """Yield pairs of a number of periods and the draws in each; together they sum to `draws`."""
    bits = max(0, (sum(draws) // _PERIOD).bit_length() - 1)
    for bit in range(bits):
        in_period = [(count >> bits) + (count >> bit & 1) for count in draws]
        if any(in_period):
            yield 1 << bit, in_period
    # With very many streams, each may have less than one draw per period.
    if any(last := [count >> bits for count in draws]):
        yield 1, last


def _stage(sampler: Sampler, start: int, draws: Sequence[int]) -> MixtureStage:
    named = zip(sampler.names, draws, strict=True)
    return MixtureStage(start=start, weights={name: count for name, count in named if count})


def _epoch_ends(sampler: Sampler, drawn: Integers) -> Integers:
    """Return int64[scatters, streams]: the number of draws until each current epoch ends."""
    scatters = np.arange(drawn.shape[0])[:, None]
    streams = np.arange(drawn.shape[1])[None]
    sizes = sampler.partitions.sizes[sampler.partitions.partition_of(streams, scatters)]
    # The k-th draw of scatter c from a common stream is draw k S + c of the stream.
    common, step = sampler.partitions.common, sampler.num_scatters
    read = np.where(common, drawn * step + scatters, drawn)
    epochs = np.maximum(-(-read // sizes).min(axis=0), 1)
    ends = epochs * sizes
    ends_in_scatter = np.maximum(-((scatters - ends) // step), 0)
    return np.asarray(np.where(common, ends_in_scatter, ends), np.int64)
