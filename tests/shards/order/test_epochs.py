"""Every token of a corpus is read once in each epoch."""

from collections import Counter

import numpy as np
import pytest
from numpy.typing import NDArray

from shards.order.sampler import Sampler
from shards.order.streams import streams_of
from shards.reader import Dataset
from shards.windows import WindowSpec, WindowVocabulary, causal_windows, glm_windows
from tests.shards.numbered import CLS, build
from tests.shards.windows import read_window


@pytest.fixture(scope="module")
def numbered(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    directory = tmp_path_factory.mktemp("numbered")
    build(directory)
    return Dataset.open(directory)


def text_of(
    dataset: Dataset, sampler: Sampler, positions: NDArray[np.int64]
) -> tuple[Counter[int], set[int], list[NDArray[np.int64]]]:
    """The tokens that are trained on at some positions, and the epochs they are of."""
    vocabulary = WindowVocabulary.of(dataset)
    draws = sampler.draw(positions)
    shards = [sampler.streams[stream].shards for stream in draws.stream]
    texts = [
        read_window(
            dataset.shard(entries[shard]),
            window,
            spec=sampler.window,
            vocabulary=vocabulary,
            phase=phase,
        ).tokens
        for entries, shard, window, phase in zip(shards, *sampler.locate(draws), strict=True)
    ]
    return Counter(np.concatenate(texts).tolist()), set(draws.epoch.tolist()), texts


@pytest.mark.parametrize("num_scatters", [1, 8])
@pytest.mark.parametrize("source", ["web", "notes"])
@pytest.mark.parametrize(
    "spec",
    [
        glm_windows(64),
        causal_windows(33),
        WindowSpec(kind="glm", length=9, slack=4),
    ],
)
def test_every_token_once_an_epoch(
    numbered: Dataset, source: str, spec: WindowSpec, num_scatters: int
) -> None:
    (stream,) = (stream for stream in streams_of(numbered) if stream.name.endswith(source))
    sampler = Sampler([stream], seed=3, num_scatters=num_scatters, window=spec)
    expected = Counter(
        token for document in numbered.documents(source) for token in document.tolist()
    )
    sizes = sampler.cells.sizes.tolist()
    read = []
    for epoch in (0, 1):
        if len(sizes) == 1:  # one scatter, or a common stream: the draws of all are one epoch
            places = np.arange(epoch * sizes[0], (epoch + 1) * sizes[0])
        else:
            places = np.concatenate(
                [
                    np.arange(epoch * n, (epoch + 1) * n) * num_scatters + c
                    for c, n in enumerate(sizes)
                ]
            )
        tokens, epochs, texts = text_of(numbered, sampler, places)
        del tokens[CLS]
        assert tokens == expected
        assert epochs == {epoch}
        read.append({tuple(text.tolist()) for text in texts})
    assert read[0] != read[1]  # the second epoch cuts elsewhere
