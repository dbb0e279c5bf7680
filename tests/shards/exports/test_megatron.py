import importlib
import json
import re
import shlex
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from shards.__main__ import main
from shards.errors import DamageError, UserError
from shards.exports import megatron
from shards.exports.megatron import blends
from shards.manifest import read_manifest, write_manifest
from tests.shards.conftest import EOS, GENERATION, put_texts
from tests.shards.datasets import with_sources


def by_name(data: list[str], split: str = "train") -> dict[str, float]:
    """Return the weights of shards by SOURCE/NUMBER."""
    shards = blends(data).splits[split]
    return {"/".join(shard.prefix.parts[-2:]): shard.weight for shard in shards}


def test_a_shard_weighs_as_much_as_it_has_tokens(pristine: Path) -> None:
    assert by_name([str(pristine)]) == {
        "pile/00000": 8,
        "wudao/00000": 22,
        "wudao/00002": 10,
        "wudao/00003": 15,
    }
    assert by_name([str(pristine)], "valid") == {"wudao/validation-00000": 9}
    assert by_name([f"{pristine}:wudao"]) == {
        "wudao/00000": 22, "wudao/00002": 10, "wudao/00003": 15,
    }  # fmt: skip
    assert blends([f"{pristine}:pile"]).splits.keys() == {"train"}
    assert blends([str(pristine)]).num_empty == 1


def test_weights_of_sources_are_spread_over_their_shards(pristine: Path) -> None:
    weights = by_name([f"{pristine}:wudao=0.25", f"{pristine}:pile=0.75"])
    assert weights.pop("pile/00000") == 0.75
    assert weights == pytest.approx(
        {"wudao/00000": 22 / 188, "wudao/00002": 10 / 188, "wudao/00003": 15 / 188}
    )


def test_the_command(
    pristine: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: Any
) -> None:
    monkeypatch.chdir(pristine.parent)
    assert main(["megatron", pristine.name]) == 0
    shown = capsys.readouterr()
    words = shlex.split(shown.out)
    assert words[:3] == ["--train-data-path", "8", str(pristine / GENERATION / "pile" / "00000")]
    at = words.index("--valid-data-path")
    assert words[at + 1 :] == ["9", str(pristine / GENERATION / "wudao" / "validation-00000")]
    assert at == 1 + 2 * 4
    assert shown.err == (
        "train: 55 tokens, shards: 4; valid: 9 tokens, shards: 1; empty shards left out: 1\n"
    )
    lists = tmp_path / "a list.json"
    assert main(["megatron", pristine.name, "--output", str(lists)]) == 0
    assert shlex.split(capsys.readouterr().out) == ["--per-split-data-args-path", str(lists)]
    assert json.loads(lists.read_text()) == {
        "train": words[1:at],
        "valid": words[at + 1 :],
        "test": None,
    }


def test_what_megatron_cannot_read_is_refused(
    dataset: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = str(dataset)
    monkeypatch.setattr(megatron, "_MOST", 3)
    with pytest.raises(UserError, match="4 shards are more than the 3 that Megatron can blend"):
        blends([name])
    (dataset / GENERATION / "wudao" / "00002.idx").unlink()
    with pytest.raises(DamageError, match=r"wudao/00002\.idx"):
        blends([name])


def test_nothing_to_train_on(dataset: Path) -> None:
    empty = put_texts(dataset, f"{GENERATION}/pile/00000", [], order=0)
    manifest = read_manifest(dataset)
    pile = replace(manifest.generations[0].sources["pile"], shards=(empty,))
    write_manifest(dataset, with_sources(manifest, pile=pile))
    with pytest.raises(UserError, match="there is no token to train on"):
        blends([f"{dataset}:pile"])


class Tokenizer:
    """What Megatron's dataset asks of a tokenizer."""

    eod = pad = EOS
    vocab_size = 384
    unique_identifiers = {"class": "bytes"}  # noqa: RUF012 - a constant


@pytest.fixture
def core() -> Iterator[Any]:
    """Megatron's modules, by their names in megatron.core.datasets."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns of what it could use and does not find
        pytest.importorskip(
            "megatron.core.datasets.gpt_dataset",
            reason="megatron-core is not installed (pip install corpusmill[test])",
        )
        yield lambda name: importlib.import_module(f"megatron.core.datasets.{name}")


@pytest.mark.slow
def test_megatron_blends_the_shards_as_they_weigh(dataset: Path, core: Any) -> None:
    weights = [f"{dataset}:wudao=0.25", f"{dataset}:pile=0.75"]
    read = core("utils").get_blend_from_list
    parts = re.split(r"--(?:train|valid)-data-path ", blends(weights).arguments())[1:]
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
    # Of 188 samples 0.25 x 22 / 47 are of the first shard of wudao, and so on.
    assert [drawn[number] for number in range(4)] == pytest.approx([22, 10, 15, 141], abs=1)
    pile = [i for i in range(188) if train.dataset_index[i] == 3]
    assert {*b"onetw", EOS} >= {token for i in pile for token in train[i]["tokens"].tolist()}
    assert len(valid) >= 4
