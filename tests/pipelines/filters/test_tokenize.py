import dataclasses
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
import sentencepiece

from pipelines.corpus.recipe import SAMPLE
from pipelines.filters.step import split_verdict
from pipelines.filters.tokenize import Tokenize
from tests.pipelines.filters.batches import CHINESE, ENGLISH, batch, check_same_rows, with_prompts


@pytest.fixture(scope="module")
def tokenize() -> Tokenize:
    return Tokenize(f"sentencepiece:{SAMPLE / 'sample.model'}")


def test_tokens_are_those_of_the_library_and_eos(tokenize: Tokenize) -> None:
    library = sentencepiece.SentencePieceProcessor(model_file=str(SAMPLE / "sample.model"))
    texts = (CHINESE, ENGLISH, "a", f"{CHINESE}\n\n{ENGLISH}")
    before = batch(*texts)
    verdict = tokenize(before)
    check_same_rows(verdict, before)
    eos = tokenize.tokenizer.special["eos"]
    tokens = verdict.batch["tokens"]
    assert tokens.to_pylist() == [[*library.encode(text), eos] for text in texts]
    assert tokens.type == pa.large_list(pa.from_numpy_dtype(tokenize.tokenizer.dtype))
    assert verdict.reasons.null_count == len(texts)


def test_special_tokens_written_in_a_text_are_text(tokenize: Tokenize) -> None:
    tokens = tokenize(batch("<|endoftext|> [MASK] </s>")).batch["tokens"][0].as_py()
    specials = set(tokenize.tokenizer.special.values()) - {tokenize.tokenizer.special["unk"]}
    assert tokens.pop() == tokenize.tokenizer.special["eos"]
    assert not specials & set(tokens)


def test_only_a_text_that_the_tokenizer_fails_on_is_quarantined(
    tokenize: Tokenize, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = tokenize(batch(CHINESE, ENGLISH)).batch["tokens"].to_pylist()
    plain = tokenize.tokenizer._model.encode

    def failing(texts: Sequence[str]) -> tuple[npt.NDArray[np.generic], npt.NDArray[np.int64]]:
        if "poison" in texts:
            raise RuntimeError("the library fails on this text")
        return plain(texts)

    model = dataclasses.replace(tokenize.tokenizer._model, encode=failing)
    monkeypatch.setattr(tokenize.tokenizer, "_model", model)
    kept, dropped = split_verdict(tokenize(batch(CHINESE, "poison", ENGLISH)))
    assert kept["tokens"].to_pylist() == whole
    assert dropped.reasons.to_pylist() == ["tokenizer-failed"]
    assert dropped.batch["position"].to_pylist() == [100]


def test_prompts_stand_before_their_texts_and_are_counted(tokenize: Tokenize) -> None:
    rows = with_prompts((CHINESE, ENGLISH, CHINESE), ("", "问题：桥？回答：", "问题：谁？"))
    verdict = tokenize(rows)
    eos = tokenize.tokenizer.special["eos"]

    def ids(text: str) -> list[int]:
        return tokenize.tokenizer.encode_batch([text])[0].tolist() if text else []

    pairs = list(zip(rows["prompt"].to_pylist(), rows["text"].to_pylist(), strict=True))
    assert verdict.batch["tokens"].to_pylist() == [
        [*ids(prompt), *ids(text), eos] for prompt, text in pairs
    ]
    assert verdict.batch["prompt_tokens"].to_pylist() == [len(ids(prompt)) for prompt, _ in pairs]
    assert verdict.batch["prompt_tokens"].to_pylist()[1] > 0
