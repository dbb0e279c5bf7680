import sentencepiece

from pipelines.tokenizers.sentencepiece_model import parse_charsmap
from tests.pipelines.tokenizers.trained import model_of


def test_rules_of_characters(nmt_nfkc: bytes) -> None:
    model = model_of(nmt_nfkc)
    assert len(model.character_rules.single) > 4000
    assert {0x301, 0x3099, 0x1161} <= model.character_rules.joining
    assert not {ord("a"), ord(" "), ord("的")} & model.character_rules.joining
    processor = sentencepiece.SentencePieceProcessor(model_proto=nmt_nfkc)
    checked = 0
    for code, text in list(model.character_rules.single.items())[::7]:
        assert processor.normalize(f"|{chr(code)}|") == f"▁|{text}|".replace(" ", "▁")
        checked += 1
    assert checked > 500
    assert parse_charsmap(b"").single == {}


def test_joiners_are_all_of_them(nmt_nfkc: bytes) -> None:
    model = model_of(nmt_nfkc)
    processor = sentencepiece.SentencePieceProcessor(model_proto=nmt_nfkc)
    bases = "aAeoカハか한ᄒϓक" + "ΑΩ" + "\u0627"
    candidates = [*range(0x80, 0x3100, 3), *sorted(model.character_rules.joining)]
    whole = 0
    for code in candidates:
        alone = processor.normalize(f"|{chr(code)}|")[2:-1]
        together = [processor.normalize(f"|{base}{chr(code)}|")[2:-1] for base in bases]
        singly = [processor.normalize(f"|{base}|")[2:-1] + alone for base in bases]
        if together != singly:
            whole += 1
            assert code in model.character_rules.joining
    assert whole > 20
