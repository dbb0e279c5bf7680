from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shards.sampling.sampler import Sampler
from shards.sampling.stages import MixtureStage
from shards.sampling.streams import Stream
from shards.sampling.unseen import StreamGroup, stages_until_seen
from shards.sampling.windows import causal_windows

Make = Callable[..., Stream]
ONE = Fraction(1)


def sampler_of(
    streams: Sequence[Stream], stages: Sequence[MixtureStage] = (), *, num_scatters: int = 1
) -> Sampler:
    window = causal_windows(1)
    return Sampler(streams, seed=3, num_scatters=num_scatters, window=window, stages=stages)


def everything(*streams: int) -> list[StreamGroup]:
    return [StreamGroup(share=ONE, streams=streams)]


def planned(
    streams: Sequence[Stream], stages: Sequence[MixtureStage], *, start: int, **options: Any
) -> list[MixtureStage]:
    """Return the stages before a position, then those that draw all windows not yet seen."""
    earlier = [stage for stage in stages if stage.start < start]
    equal = MixtureStage(start=0, weights=dict.fromkeys([stream.name for stream in streams], 1))
    sampler = sampler_of(streams, earlier or [equal], **options)
    groups = everything(*range(len(streams)))
    return [*earlier, *stages_until_seen(sampler, groups, start=start)]


def drawn_windows(sampler: Sampler, end: int) -> Counter[tuple[int, ...]]:
    drawn = sampler.draw(range(end))
    columns = (drawn.stream, drawn.shard, drawn.window)
    return Counter(zip(*(x.tolist() for x in columns), strict=True))


@pytest.mark.slow
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    sizes=st.lists(st.integers(1, 3000), min_size=1, max_size=6),
    switches=st.lists(st.floats(0, 1), max_size=3),
)
def test_all_text_is_seen_once_before_any_is_repeated(
    make_stream: Make, sizes: list[int], switches: list[float]
) -> None:
    """Generations arrive at any position of an epoch, which ends after exactly all windows."""
    streams = [make_stream(f"g{i}", [size]) for i, size in enumerate(sizes)]
    there = 1
    stages = planned(streams[:1], (), start=0)
    for moment in sorted(switches):
        if there == len(streams):
            break
        there += 1
        start = int(moment * sum(sizes[: there - 1]))
        before = sampler_of(streams[:there], stages).draw(range(start))
        stages = planned(streams[:there], stages, start=start)
        after = sampler_of(streams[:there], stages).draw(range(start))
        assert np.array_equal(before, after)
    total = sum(sizes[:there])
    sampler = sampler_of(streams[:there], stages)
    assert stages[-1].start == total
    counts = drawn_windows(sampler, total)
    assert len(counts) == total
    assert set(counts.values()) == {1}


@pytest.mark.parametrize("num_scatters", [1, 2, 4])
def test_scatters_and_a_common_generation(make_stream: Make, num_scatters: int) -> None:
    """All windows are seen; the few that are seen twice fill up the smaller scatters."""
    streams = [
        make_stream("wide", [400, 403, 390, 407]),
        make_stream("common", [37]),
        make_stream("later", [90, 95, 91, 97]),
    ]
    stages = planned(streams[:1], (), start=0, num_scatters=num_scatters)
    stages = planned(streams[:2], stages, start=700, num_scatters=num_scatters)
    stages = planned(streams, stages, start=900, num_scatters=num_scatters)
    sampler = sampler_of(streams, stages, num_scatters=num_scatters)
    end = stages[-1].start
    counts = drawn_windows(sampler, end)
    assert len(counts) == sum(sampler.partitions.windows_of_streams)
    assert max(counts.values()) <= 2
    assert end - len(counts) <= (60 + 8 * num_scatters if num_scatters > 1 else 8)


def test_a_tiny_generation_in_a_huge_corpus_is_drawn(make_stream: Make) -> None:
    streams = [make_stream("huge", [10**9]), make_stream("tiny", [3])]
    stages = planned(streams, planned(streams[:1], (), start=0), start=5)
    drawn = sampler_of(streams, stages).draw(range(40_000))
    assert np.bincount(drawn.stream).tolist() == [39_997, 3]
    assert stages[-1].start == 10**9 + 3
    assert len(stages) < 30


@pytest.mark.parametrize("count", [4096, 4097])
def test_very_many_small_streams_are_all_seen_once(make_stream: Make, count: int) -> None:
    streams = [make_stream(f"g{i}", [1]) for i in range(count)]
    sampler = sampler_of(streams, planned(streams, (), start=0))
    assert set(drawn_windows(sampler, count).values()) == {1}
