"""Our Chinese words are those of jieba's accurate mode."""

import io
import itertools

import jieba
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.quality.jieba_words import JiebaWords
from pipelines.quality.spans import texts_as_spans
from tests.pipelines.quality.texts import TEXTS

OURS = JiebaWords()
JIEBA = jieba.Tokenizer()
JIEBA.FREQ, JIEBA.total = JIEBA.gen_pfdict(JIEBA.get_dict_file())
JIEBA.initialized = True

LATIN = "aZ09+#&._%-"
FREQUENT = (
    "的一是不了在人有我他这个们中来上大为和国地到以说时要就出会可也你对生能而子那得于着下自之年过"
)
ODD_HAN = (
    "\u4e00\u9fa5\u9fa6\u9fd5\u9fd6\u9fff龘靐齉囧㐀\u3400\U00020000\U00020bb7\U0002a6d6\uf900〇々"
)
OTHERS = "ａＺ９％．－＿，。！？、—…·あカ한글éя١²½😀\ud800\udfff\U0010ffff\x00\ufeff\u200b"
WHITE = " \n\r\t\x0b\x1c\x1d\x1e\x1f\x85\xa0\u1680\u2003\u2028\u2029\u3000"


def words_of(*texts: str, ours: JiebaWords = OURS) -> list[list[str]]:
    words = ours.words(texts_as_spans(texts))
    strings = words.strings()
    return [strings[first:end] for first, end in itertools.pairwise(words.offsets.tolist())]


def check(*texts: str) -> None:
    for text, found in zip(texts, words_of(*texts), strict=True):
        assert found == [word for word in map(str.strip, JIEBA.cut(text)) if word], text


@pytest.mark.parametrize(
    "text",
    [
        *TEXTS,
        "一七",  # a word that is less likely than its characters
        "还都不",
        "说+一龘、-一靐",  # 一 is the first Chinese character
        "中华人民共和国中华人民共和",
        "囧靐齉\u9fd5龘囍",
        "B超AT&T和C++、c#与4S店γ射线",
        "乔布斯iPhone4S的3.14元100%折扣v1.2.3-rc.1",
        "北京\u3000大学\r\n\r\n清华\x85大学",
        "李小福" * 50,
        FREQUENT * 3,
        "的" * 5_000,
        "，".join(sorted(JIEBA.FREQ)[::499]),
    ],
)
def test_texts_have_the_words_of_jieba(text: str) -> None:
    check(text)


ATOMS = [*LATIN, *FREQUENT, *ODD_HAN, *OTHERS, *WHITE, "\r\n", "清华大学", "网易"]


@given(
    st.lists(st.sampled_from(ATOMS), max_size=40).map("".join)
    | st.text(st.characters(min_codepoint=0x4DF0, max_codepoint=0x9FE0), max_size=30)
    | st.text(LATIN + "的龘 ", max_size=30)
)
def test_any_text_has_the_words_of_jieba(text: str) -> None:
    check(text)


def test_every_character_is_a_word_or_white_space() -> None:
    text = ",".join(map(chr, range(0x11000)))
    check(text.replace(",,,", ","))


def test_texts_of_a_batch_have_no_say_in_each_other() -> None:
    check(*TEXTS, "中华", "人民", "", "共和国")


@pytest.mark.parametrize(
    ("changed", "why"),
    [("version", "and 0.43 is installed"), ("dictionary", "and another dictionary is installed")],
)
def test_another_jieba_does_its_own_work(
    changed: str, why: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    if changed == "version":
        monkeypatch.setattr("importlib.metadata.version", lambda _: "0.43")
    else:
        with jieba.Tokenizer().get_dict_file() as file:
            other = file.read() + "齉齉 3\n".encode()
        monkeypatch.setattr(jieba.Tokenizer, "get_dict_file", lambda _: io.BytesIO(other))
    ours = JiebaWords()
    assert words_of("北京 大学", "", "大学", ours=ours) == [["北京", "大学"], [], ["大学"]]
    warned = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert [why in line for line in warned] == [True]
