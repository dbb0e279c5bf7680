import importlib
import re
import shlex
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from shards.errors import UserError
from shards.exports.megatron import megatron_blend
from tests.shards.conftest import EOS, GENERATION, TEXTS, build


def test_nothing_to_train_on(tmp_path: Path) -> None:
    build(tmp_path, {**TEXTS, f"{GENERATION}/pile/00000": []})
    with pytest.raises(UserError, match="there are no training tokens"):
        megatron_blend([f"{tmp_path}:pile"])


class Tokenizer:
    """The tokenizer attributes and methods that Megatron's dataset uses."""

    eod = pad = EOS
    vocab_size = 384
    unique_identifiers = {"class": "bytes"}  # noqa: RUF012 - a constant


@pytest.fixture
def core() -> Iterator[Any]:
    """Megatron's modules by their names in megatron.core.datasets."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Megatron warns about libraries that it does not find
        pytest.importorskip(
            "megatron.core.datasets.gpt_dataset",
            reason="megatron-core is not installed (pip install corpusmill[test])",
        )
        yield lambda name: importlib.import_module(f"megatron.core.datasets.{name}")


@pytest.mark.slow
def test_megatron_blends_the_shards_as_they_weigh(dataset: Path, core: Any) -> None:
    weights = [f"{dataset}:wudao=0.25", f"{dataset}:pile=0.75"]
    read = core("utils").get_blend_from_list
    parts = re.split(r"--(?:train|valid)-data-path ", megatron_blend(weights).arguments())[1:]
    gpt = core("gpt_dataset")
    config = gpt.GPTDatasetConfig(
        random_seed=1,
        sequence_length=4,
        blend_per_split=[*(read(shlex.split(part)) for part in parts), None],
        tokenizer=Tokenizer(),
        reset_position_ids=False,
        reset_attention_mask=False,
        eod_mask_loss=False,
        create_attention_mask=False,
    )
    builder = core("blended_megatron_dataset_builder").BlendedMegatronDatasetBuilder
    train, valid, _ = builder(gpt.GPTDataset, [188, 4, 0], lambda: True, config).build()
    drawn = Counter(int(number) for number in train.dataset_index[:188])
    # Of 188 samples, 0.25 x 22 / 47 come from the first shard of wudao, and so on.
    assert [drawn[number] for number in range(4)] == pytest.approx([22, 10, 15, 141], abs=1)
    pile = [i for i in range(188) if train.dataset_index[i] == 3]
    assert {*b"onetw", EOS} >= {token for i in pile for token in train[i]["tokens"].tolist()}
    assert len(valid) >= 4
