from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shards.reader import Dataset, Shard
from shards.sampling.windows import (
    WindowSpec,
    WindowVocabulary,
    num_windows,
    window_span,
)
from shards.vocabulary import vocabulary_table
from tests.shards.memory import END, EOS, VOCABULARY, cuts, numbered, shard

LENGTHS = st.lists(
    st.one_of(st.integers(1, 3), st.integers(1, 40), st.integers(100, 300)), min_size=1, max_size=12
)
SPECS = st.integers(1, 64).flatmap(
    lambda length: st.integers(0, length // 2).map(
        lambda slack: WindowSpec(kind="glm", length=length, slack=slack)
    )
)


def spans(shard: Shard, spec: WindowSpec, phase: int = 0) -> list[tuple[int, int]]:
    count = num_windows(shard.entry.tokens, spec.stride)
    return [
        window_span(shard, i, spec=spec, vocabulary=VOCABULARY, phase=phase) for i in range(count)
    ]


@given(lengths=LENGTHS, spec=SPECS, phase=st.integers(0, 2**64), every=st.integers(2, 60))
def test_windows_are_the_ring_cut_once(
    lengths: list[int], spec: WindowSpec, phase: int, every: int
) -> None:
    given_shard = numbered(lengths)
    given_shard.tokens[every // 2 :: every] = END
    given_shard.tokens[np.cumsum(lengths) - 1] = EOS
    cut_spans = spans(given_shard, spec, phase)
    size = sum(lengths)
    expected = list(cuts(given_shard, stride=spec.stride, slack=spec.slack, phase=phase))
    assert [end - begin for begin, end in cut_spans] == np.diff(expected).tolist()
    assert [begin for begin, _ in cut_spans] == [cut % size for cut in expected[:-1]]
    assert all(0 <= end - begin <= spec.length for begin, end in cut_spans)
    assert all(end % size == begin for (_, end), (begin, _) in pairwise([*cut_spans, cut_spans[0]]))
    assert sum(end - begin for begin, end in cut_spans) == size


@pytest.mark.parametrize("mark", [*".?!;:。？！；…\n"])
def test_every_sentence_end_cuts(mark: str) -> None:
    table = vocabulary_table([b"x", b"<eos>", mark.encode()], special={1}, size=3)
    vocabulary = WindowVocabulary(sentence_end=table["sentence_end"].to_numpy(), cls=1, pad=1)
    given_shard = shard([[*[0] * 9, 2, *[0] * 9, 1]])
    spec = WindowSpec(kind="glm", length=12, slack=4)
    assert window_span(given_shard, 0, spec=spec, vocabulary=vocabulary) == (0, 10)


def test_the_vocabulary_of_a_dataset(pristine: Path) -> None:
    vocabulary = WindowVocabulary.of(Dataset.open(pristine))
    assert (vocabulary.cls, vocabulary.pad) == (256, 256)  # it has neither, so eos replaces both
    assert np.flatnonzero(vocabulary.sentence_end).tolist() == sorted(b".?!;:\n")
