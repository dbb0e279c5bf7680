import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sentencepiece import SentencePieceProcessor

from pipelines.train_tokenizer import TrainOptions, train

WORDS = [
    "春天",
    "来了",
    "，",
    "人工智能",
    "改变",
    "生活",
    "。",
    "the ",
    "river ",
    "1984 ",
    "！",
    "\n",
]
OPTIONS = TrainOptions(vocab_size=400, character_coverage=1.0)


def texts(number: int) -> list[str]:
    choose = random.Random(0)
    return ["".join(choose.choices(WORDS, k=80)) for _ in range(number)]


@pytest.fixture(scope="session")
def model() -> bytes:
    return train(texts(60), options=OPTIONS)


@settings(max_examples=200, deadline=None)
@given(text=st.text(st.sampled_from("春天a1 \n\t\u3000！,é☂龘“”🙂"), min_size=1, max_size=40))
def test_texts_survive(model: bytes, text: str) -> None:
    processor = SentencePieceProcessor(model_proto=model)
    assert processor.decode(processor.encode(text)) == text


def test_line_breaks_and_runs_of_spaces(model: bytes) -> None:
    processor = SentencePieceProcessor(model_proto=model)
    assert processor.encode("来了\n来了", out_type=str).count("<0x0A>") == 1
    assert processor.encode("1984", out_type=str)[-4:] == ["1", "9", "8", "4"]


def test_long_lines_are_not_lost() -> None:
    # SentencePiece alone would drop a line of this length, and with it the only text there is.
    assert train(["".join(texts(60)).replace("\n", "")], options=OPTIONS)
