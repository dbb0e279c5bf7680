import json
import logging
import random
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest
import sentencepiece
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.tokenizers import fast_sentencepiece, parts
from pipelines.tokenizers.fast_sentencepiece import fast_encoder, part_encoder
from pipelines.tokenizers.model import Encode
from pipelines.tokenizers.part_bpe import PartBpe
from pipelines.tokenizers.sentencepiece_model import disarm_symbols
from tests.pipelines.tokenizers.texts import shared
from tests.pipelines.tokenizers.trained import AWKWARD_PARTS, SENTENCES, model_of, reference

SAMPLE = Path(__file__).parents[3] / "pipelines" / "sample"


Both = tuple[Encode, Encode]


@pytest.fixture(scope="module")
def both(content: bytes) -> Both:
    fast = part_encoder(content, reference(content))
    assert fast is not None
    return fast, reference(content)


@pytest.fixture(scope="module")
def sample() -> Both:
    content = disarm_symbols((SAMPLE / "sample.model").read_bytes())
    fast = part_encoder(content, reference(content))
    assert fast is not None
    return fast, reference(content)


def check(both: Both, texts: Sequence[str]) -> None:
    """Ids and lengths are the library's."""
    (tokens, lengths), (expected, expected_lengths) = (encode(texts) for encode in both)
    assert lengths.tolist() == expected_lengths.tolist()
    assert tokens.tolist() == expected.tolist()


def sample_texts() -> list[str]:
    texts: list[str] = []
    for path in sorted(SAMPLE.glob("*.json")):
        records = json.loads(path.read_text("utf-8"))
        rows = records if isinstance(records, list) else records["RECORDS"]
        texts += [value for row in rows for value in row.values() if isinstance(value, str)]
    return texts


MIXED = st.lists(
    st.one_of(st.sampled_from(AWKWARD_PARTS), st.text(st.characters(codec="utf-8"), max_size=6)),
    max_size=30,
).map("".join)


def test_the_sample(sample: Both) -> None:
    texts = sample_texts()
    assert len(texts) > 100
    check(sample, texts)
    check(sample, texts)


@pytest.mark.parametrize(
    "texts",
    [
        [],
        [""],
        ["", " ", "\n", "  ", "a", "", " a ", ""],
        ["☂☃", "☃", "a☂☃b☂ ☃ ☂☂"],
        ["\x00", "a\x00b", "\x00\x00"],
        ["the dog", "e\u0301", "the dog", "\u200b \u200b", "the"],
        ["▁", "▁a▁", "a ▁ b", " ▁"],
        ["<s>", "a</s>b", "[MASK]<n>\n\n<n>"],
        ["a" * 5000, "哈" * 3000, " " * 2000, "ab " * 1000, "\n" * 500],
        ["\U0010fffd", "a\U0010ffffb", "\U00020000\U00020001"],
    ],
)
def test_corner_cases(both: Both, texts: list[str]) -> None:
    check(both, texts)
    for text in texts:
        check(both, [text])


@settings(max_examples=60, deadline=None)
@given(texts=st.lists(MIXED, max_size=5))
def test_any_texts(both: Both, texts: list[str]) -> None:
    check(both, texts)


@settings(max_examples=60, deadline=None)
@given(texts=st.lists(MIXED, max_size=5))
def test_any_texts_by_the_sample_s_model(sample: Both, texts: list[str]) -> None:
    check(sample, texts)


def test_pieces_beside_each_other(both: Both) -> None:
    chosen = random.Random(5)
    words = [word for text in SENTENCES for word in text.replace(" ", " | ").split("|")]
    texts = [
        "".join(chosen.choices(words + AWKWARD_PARTS, k=chosen.randrange(40))) for _ in range(300)
    ]
    check(both, texts)


def test_glm_s_model() -> None:
    content = disarm_symbols(shared("tokenizers/cog-pretrain.model").read_bytes())
    fast = part_encoder(content, reference(content))
    assert fast is not None
    chosen = random.Random(3)
    processor = sentencepiece.SentencePieceProcessor(model_proto=content)
    pieces = [processor.id_to_piece(i).replace("▁", " ") for i in range(len(processor))]
    mixed = [
        "".join(chosen.choices(pieces, k=30) + chosen.choices(AWKWARD_PARTS, k=3))
        for _ in range(99)
    ]
    mixed += ["".join(chosen.choices(pieces + AWKWARD_PARTS * 99, k=20)) for _ in range(100)]
    check((fast, reference(content)), mixed + sample_texts())


def test_a_small_cache_changes_nothing(nmt_nfkc: bytes) -> None:
    library = reference(nmt_nfkc)
    small = fast_encoder(model_of(nmt_nfkc), library, cache_bits=6)
    chosen = random.Random(1)
    for _ in range(200):
        words = [
            "".join(chosen.choices("abcdefgh人工智能", k=chosen.randrange(9))) for _ in range(8)
        ]
        check((small, library), [" ".join(words)])


def test_groups_change_nothing(nmt_nfkc: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    library = reference(nmt_nfkc)
    monkeypatch.setattr(fast_sentencepiece, "CHUNK_CHARS", 50)
    monkeypatch.setattr(fast_sentencepiece, "MAX_CHARS", 300)
    fast = fast_encoder(model_of(nmt_nfkc), library)
    check((fast, library), [*SENTENCES, "", *SENTENCES, " ".join(SENTENCES * 2), "the dog"])


def test_equal_hashes_change_nothing(nmt_nfkc: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "_BASE", 1)  # then a hash does not tell the order of characters
    library = reference(nmt_nfkc)
    fast = fast_encoder(model_of(nmt_nfkc), library)
    for texts in (["quick"], ["kciuq"], ["quick", "ciukq"], ["quick", "the"]):
        check((fast, library), texts)


def test_threads_change_nothing(nmt_nfkc: bytes) -> None:
    library = reference(nmt_nfkc)
    fast = fast_encoder(model_of(nmt_nfkc), library, cache_bits=8)
    wrong = []

    def work(seed: int) -> None:
        chosen = random.Random(seed)
        for _ in range(40):
            text = " ".join("".join(chosen.choices("abcdefgh", k=6)) for _ in range(20))
            if fast([text])[0].tolist() != library([text])[0].tolist():
                wrong.append(text)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_parts_seen_before_are_not_encoded_again(
    nmt_nfkc: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    fast = fast_encoder(model_of(nmt_nfkc), reference(nmt_nfkc))
    first = fast(SENTENCES)[0].tolist()
    assert first
    monkeypatch.setattr(fast_sentencepiece._PartEncoder, "_learn", None)
    assert fast([*SENTENCES[1:], SENTENCES[0]])[0].tolist() != first
    assert fast(SENTENCES)[0].tolist() == first


def test_half_a_surrogate_pair_fails_as_in_the_library(nmt_nfkc: bytes) -> None:
    library = reference(nmt_nfkc)
    with pytest.raises(RuntimeError) as expected:
        library(["a\ud800"])
    with pytest.raises(RuntimeError) as raised:
        fast_encoder(model_of(nmt_nfkc), library)(["b", "a\ud800"])
    assert str(raised.value) == str(expected.value)


def test_an_encoder_that_differs_is_refused(
    nmt_nfkc: bytes, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    encode = PartBpe.encode
    monkeypatch.setattr(PartBpe, "encode", lambda *args: (encode(*args)[0] ^ 1, encode(*args)[1]))
    with caplog.at_level(logging.WARNING):
        assert part_encoder(nmt_nfkc, reference(nmt_nfkc)) is None
    assert "encodes whole texts: part by part, for " in caplog.text


def test_an_encoder_that_fails_is_refused(
    nmt_nfkc: bytes, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(PartBpe, "encode", None)
    with caplog.at_level(logging.WARNING):
        assert part_encoder(nmt_nfkc, reference(nmt_nfkc)) is None
    assert "part by part, it fails (" in caplog.text
