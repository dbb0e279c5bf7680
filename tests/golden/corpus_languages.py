"""Texts in many languages, alone and mixed, for which a model gives different scores."""

from collections.abc import Iterator
from pathlib import Path

from pipelines.steps.langid import installed_model
from tests.golden.corpus_words import CHINESE, ENGLISH, endless, plain, write_texts

_TEXTS = {
    "English": "The quick brown fox jumps over the lazy dog, and the dog does not mind at all.",
    "Chinese": "人工智能正在改变我们的生活方式，也带来了新的问题，需要大家一起来研究。",
    "traditional Chinese": "人工智慧正在改變我們的生活方式，也帶來了新的問題，需要大家一起來研究。",
    "Cantonese": "我哋今日去咗邊度食嘢呀，佢哋話唔知喎。",
    "Japanese": "吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。",
    "Korean": "안녕하세요, 오늘 날씨가 참 좋네요. 함께 산책할까요?",
    "German": "Falsches Üben von Xylophonmusik quält jeden größeren Zwerg ganz besonders.",
    "French": "Portez ce vieux whisky au juge blond qui fume près de la fenêtre.",
    "Russian": "Съешь же ещё этих мягких французских булок, да выпей чаю.",
    "Arabic": "صِف خَلقَ خَودِ كَمِثلِ الشَمسِ إِذ بَزَغَت",
    "Thai": "เป็นมนุษย์สุดประเสริฐเลิศคุณค่า กว่าบรรดาฝูงสัตว์เดรัจฉาน",
    "digits": "12345 67890 13579 24680",
    "marks": "... !!! ??? --- ***",
    "one letter": "a",
    "one character": "中",
    "code": "for (int i = 0; i < n; ++i) { sum += values[i]; }",
    "Latin": "Lorem ipsum dolor sit amet, consectetur adipiscing elit.",
}

LABELS = {
    "zh": "zho_Hans",
    "en": "eng_Latn",
    "ja": "jpn_Jpan",
    "sq": "als_Latn",
    "yue": "yue_Hant",
}


def languages(folder: Path) -> None:
    """Write the texts."""
    texts = {f"alone: {name}": text for name, text in _TEXTS.items()}
    texts |= dict(_mixed()) | dict(_long())
    write_texts(folder / "languages" / "languages.jsonl", texts)


def own_labels(folder: Path) -> None:
    """Write lid.176 with some labels replaced by those of GlotLID and NLLB."""
    content = installed_model().read_bytes()
    for code, label in LABELS.items():
        content = content.replace(f"__label__{code}\0".encode(), f"__label__{label}\0".encode())
    (folder / "glot.ftz").write_bytes(content)


def _mixed() -> Iterator[tuple[str, str]]:
    """Yield texts whose first 256 characters are in two languages, and the rest in a third."""
    french = "près de la fenêtre où l'été dernier nous étions déjà très heureux ensemble "
    japanese = "吾輩は猫である。名前はまだ無い。"
    chinese, english = "".join(plain(400, CHINESE)), " ".join(plain(300))
    for count in range(0, 256, 12):
        head = f"{chinese[:count]} {english}"[:256]
        yield f"mixed: {count} of 256 in Chinese", f"{head} {english[:900]}"
        head = f"{(french * 4)[:count]} {english}"[:256]
        yield f"mixed: {count} of 256 in French", head + chinese
        head = f"{(japanese * 16)[:count]} {english}"[:256]
        yield f"mixed: {count} of 256 in Japanese", head + chinese


def _long() -> Iterator[tuple[str, str]]:
    """Yield texts in which the language changes after a given number of characters."""
    english = " ".join(word for word, _ in zip(endless(ENGLISH), range(400), strict=False))
    chinese = "".join(plain(900, CHINESE))
    for count in (255, 256, 257, 1023, 1024, 1025):
        yield f"long: {count} in English, then Chinese", english[:count] + chinese
        yield f"long: {count} in Chinese, then English", chinese[:count] + english
    for count in (19, 20, 1023, 1024):
        yield f"long: {count} of white space, then English", f"{' ' * count}{english}"
