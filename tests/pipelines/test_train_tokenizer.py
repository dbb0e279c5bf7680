import random

from pipelines.train_tokenizer import TokenizerOptions, train


def test_long_lines_are_not_lost() -> None:
    # SentencePiece alone would drop a line of this length, and thus the only text.
    words = [
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
    ]
    text = "".join(random.Random(0).choices(words, k=4800))
    assert train([text], options=TokenizerOptions(vocab_size=400, character_coverage=1.0))
