import json
import random
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sentencepiece import SentencePieceProcessor

import pipelines
from pipelines.tokenizers.tokenizer import load_tokenizer
from pipelines.train_tokenizer import TrainOptions, train
from shards.console import run_module
from shards.vocabulary import Vocabulary

main = partial(run_module, "pipelines.train_tokenizer")

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
    "runs ",
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


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """Both shapes of WuDao's files, with some records that hold no document."""
    records = [{"title": "", "content": text} for text in texts(120)]
    odd = [{"title": "x"}, {"content": 3}, {"content": "short"}, {"content": "乱码 cafÃ© " * 20}]
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "part-1.json").write_text(json.dumps(records[:80], ensure_ascii=False), "utf-8")
    (folder / "part-2.json").write_text(json.dumps({"RECORDS": odd + records[80:]}), "utf-8")
    return folder


def command(corpus: Path, output: Path, *more: str) -> list[str]:
    flags = ["--input", str(corpus), "--vocab-size", "400", "--character-coverage", "1"]
    return [*flags, "--output", str(output), *more]


def test_command(corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "out" / "tiny.model"
    assert main(command(corpus, output)) == 0
    out, err = capsys.readouterr()
    # 120 documents and the one of mojibake, less the two in a hundred held back.
    assert "tiny.model: 400 pieces from 11" in out
    assert " bytes per token on " in out
    assert (
        f"next: python -m pipelines.wudao --input {corpus} --tokenizer sentencepiece:{output}"
        in out
    )
    assert "part-2.json (2 of 2)" in err
    tokenizer = load_tokenizer(f"sentencepiece:{output}")
    assert (tokenizer.pieces, tokenizer.special["eos"]) == (400, 400)
    assert "é".encode() in tokenizer.vocabulary()["bytes"].to_pylist(), "mojibake is repaired first"


def test_the_same_texts_give_the_same_bytes(model: bytes) -> None:
    assert train(texts(60), options=OPTIONS) == model
    assert train(texts(61), options=OPTIONS) != model


@pytest.mark.parametrize("model_type", ["bpe", "unigram"])
def test_both_kinds(model_type: str) -> None:
    options = TrainOptions(vocab_size=340, model_type=model_type, character_coverage=1.0)
    processor = SentencePieceProcessor(model_proto=train(texts(60), options=options))
    assert len(processor) == 340
    assert processor.decode(processor.encode("春天来了，the river")) == "春天来了，the river"


@settings(max_examples=200, deadline=None)
@given(text=st.text(st.sampled_from("春天a1 \n\t\u3000！,é☂龘“”🙂"), min_size=1, max_size=40))
def test_texts_survive(model: bytes, text: str) -> None:
    processor = SentencePieceProcessor(model_proto=model)
    assert processor.decode(processor.encode(text)) == text


def test_line_breaks_and_runs_of_spaces(model: bytes) -> None:
    processor = SentencePieceProcessor(model_proto=model)
    assert processor.encode("来了\n来了", out_type=str).count("<0x0A>") == 1
    assert processor.encode("1984", out_type=str)[-4:] == ["1", "9", "8", "4"]


def test_glm_normalization_loses_full_width_and_breaks() -> None:
    options = TrainOptions(vocab_size=400, character_coverage=1.0, normalization="nmt_nfkc")
    processor = SentencePieceProcessor(model_proto=train(texts(60), options=options))
    assert processor.decode(processor.encode("来了！\n  来了")) == "来了! 来了"


def test_long_lines_are_not_lost() -> None:
    # SentencePiece alone would drop a line of this length, and with it the only text there is.
    assert train(["".join(texts(60)).replace("\n", "")], options=OPTIONS)


def test_command_is_deterministic_and_sampled(corpus: Path, tmp_path: Path) -> None:
    first, again, fewer = (tmp_path / f"{name}.model" for name in "abc")
    assert main(command(corpus, first)) == main(command(corpus, again)) == 0
    assert main(command(corpus, fewer, "--sample-bytes", "20k")) == 0
    assert first.read_bytes() == again.read_bytes() != fewer.read_bytes()


def test_nothing_is_overwritten(
    corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "mine.model"
    output.write_text("precious")
    assert main(command(corpus, output)) == 2
    assert "mine.model exists already" in capsys.readouterr().err
    assert output.read_text() == "precious"


def test_the_samples_own_tokenizer() -> None:
    path = Path(pipelines.__file__).parent / "sample" / "sample.model"
    tokenizer = load_tokenizer(f"sentencepiece:{path}")
    assert (tokenizer.pieces, tokenizer.vocabulary_size) == (4000, 4096)
    tokens, _, failures = tokenizer.encode_batch(["霁原的春天，\nthe river [MASK]。"])
    assert failures == []
    decoded = Vocabulary(tokenizer.vocabulary()).decode(tokens)
    assert decoded == " 霁原的春天，\nthe river [MASK]。"
