"""A SentencePiece model as `tokenizer.json` gives the same ids, or the file is not written."""

import json
import random
from pathlib import Path

import pytest
from hypothesis import given, settings

from pipelines.tokenizers.tokenizer import Tokenizer, load_tokenizer
from pipelines.train_tokenizer import TokenizerOptions, train
from tests.forks import ROOT
from tests.pipelines.tokenizers.texts import AWKWARD_PARTS, AWKWARD_TEXTS, ids

SAMPLE = ROOT / "pipelines" / "sample"


def documents() -> list[str]:
    records = (json.loads(path.read_bytes()) for path in sorted(SAMPLE.glob("part-*.json")))
    fields = (one.get("content") for several in records for one in several if isinstance(one, dict))
    return [text for text in fields if isinstance(text, str) and text]


@pytest.fixture(scope="module", params=["bpe", "unigram", "bpe </s>", "unigram </s>"])
def both(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Tokenizer, Tokenizer]:
    """A tokenizer that `train_tokenizer` makes, and the same tokenizer from tokenizer.json."""
    folder = tmp_path_factory.mktemp("tokenizer")
    kind, _, end = request.param.partition(" ")
    options = TokenizerOptions(vocab_size=3000, model_type=kind)
    (folder / "own.model").write_bytes(train(documents(), options=options))
    own = load_tokenizer(f"sentencepiece:{folder / 'own.model'}", eos=end)
    text = own.transformers_json()
    assert text is not None
    (folder / "tokenizer.json").write_text(text, "utf-8")
    return own, load_tokenizer(f"hf:{folder / 'tokenizer.json'}")


def cuttings(rng: random.Random, texts: list[str]) -> str:
    text = rng.choice(texts)
    start = rng.randrange(len(text))
    cut = list(text[start : start + rng.randrange(1, 200)])
    if rng.random() < 0.3:
        rng.shuffle(cut)
        cut.insert(0, rng.choice(AWKWARD_PARTS))
    return "".join(cut)


@pytest.mark.slow
def test_ten_thousand_texts_have_the_same_ids(both: tuple[Tokenizer, Tokenizer]) -> None:
    own, written = both
    assert (written.special, written.vocabulary_size) == (own.special, own.vocabulary_size)
    rng, texts = random.Random(3), documents()
    cut = [cuttings(rng, texts) for _ in range(10_000)]
    tokens, lengths, _ = own.encode_batch(cut)
    found, found_lengths, _ = written.encode_batch(cut)
    assert lengths.tolist() == found_lengths.tolist()
    assert tokens.tolist() == found.tolist()


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(AWKWARD_TEXTS)
def test_awkward_texts_have_the_same_ids(both: tuple[Tokenizer, Tokenizer], text: str) -> None:
    own, written = both
    assert ids(written, text) == ids(own, text)


def test_a_model_that_normalises_is_not_written(tmp_path: Path, nmt_nfkc: bytes) -> None:
    (tmp_path / "own.model").write_bytes(nmt_nfkc)
    assert load_tokenizer(f"sentencepiece:{tmp_path / 'own.model'}").transformers_json() is None
