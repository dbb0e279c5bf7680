import io

import jieba
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.quality.words import SPACES, MeasuredText
from tests.pipelines.native import fresh_splitters, loaded, splitters
from tests.pipelines.quality.texts import TEXTS

PLAIN, COMPILED = splitters("zh", native=False), splitters("zh", native=True)

LATIN = "aZ09+#&._%-"
FREQUENT = (
    "的一是不了在人有我他这个们中来上大为和国地到以说时要就出会可也你对生能而子那得于着下自之年过"
)
ODD_HAN = (
    "\u4e00\u9fa5\u9fa6\u9fd5\u9fd6\u9fff龘靐齉囧㐀\u3400\U00020000\U00020bb7\U0002a6d6\uf900〇々"
)
OTHERS = "ａＺ９％．－＿，。！？、—…·あカ한글éя١²½😀\ud800\udfff\U0010ffff\x00\ufeff\u200b"
WHITE = " \n\r\t\x0b\x1c\x1d\x1e\x1f\x85\xa0\u1680\u2003\u2028\u2029\u3000"


def check(text: str) -> None:
    words = PLAIN.words(text, language="zh", kind=SPACES)
    assert COMPILED.words(text, language="zh", kind=SPACES) == words
    measured = MeasuredText(text, "zh", splitters=COMPILED)
    spans = measured.spans(SPACES)
    assert spans.codes is measured.codes
    assert spans.of(text) == measured.words(SPACES) == words


@pytest.mark.parametrize(
    "text",
    [
        *TEXTS,
        "一七",  # a word that is less likely than its characters
        "还都不",
        "说+一龘、-一靐",  # 一 is the first of the characters
        "中华人民共和国中华人民共和",
        "囧靐齉\u9fd5龘囍",
        "B超AT&T和C++、c#与4S店γ射线",
        "乔布斯iPhone4S的3.14元100%折扣v1.2.3-rc.1",
        "北京\u3000大学\r\n\r\n清华\x85大学",
        "李小福" * 50,
        FREQUENT * 3,
        "的" * 5_000,
        "，".join(sorted(PLAIN._jieba.FREQ)[::499]),
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


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ("version", "it follows jieba 0.42.1, and 0.43 is installed"),
        ("dictionary", "jieba's own dictionary, and another is in its place"),
    ],
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
    fresh = loaded(lambda: fresh_splitters("zh"), native=True, differs=True)
    assert fresh.words("北京大学", language="zh", kind=SPACES) == ["北京大学"]
    spans = MeasuredText("北京 大学", "zh", splitters=fresh).spans(SPACES)
    assert spans.ends.tolist() == [2, 4]
    warned = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert [why in line for line in warned] == [True]
