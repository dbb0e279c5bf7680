import itertools

from pipelines.tokenizers.parts import ODD, PartCutter
from tests.pipelines.tokenizers.trained import model_of


def test_texts_are_cut_where_nothing_is_joined(nmt_nfkc: bytes) -> None:
    cutter = PartCutter(model_of(nmt_nfkc))
    cut = cutter.cut(*cutter.read(["The cat  sat。", "", " \n", "，好的\n"]))
    shown = [
        "".join(map(chr, cut.codes[start:end])) for start, end in itertools.pairwise(cut.starts)
    ]
    assert "".join(shown) == " The cat sat。 ,好的"
    assert {" The", " ", "s", "。", "好", "的"} <= set(shown)
    assert cut.texts.tolist() == [0, *[cut.texts[1]] * 3, len(shown)]
    assert len(cut.keys) == len(shown)


def test_cuts_are_between_pieces(content: bytes) -> None:
    model = model_of(content)
    cutter = PartCutter(model)
    lengths = [len(piece.text) for piece in model.pieces]
    assert max(lengths) > 3
    for piece in model.pieces:
        text = piece.text.replace("▁", " ")
        cut = cutter.cut(*cutter.read([f"。{text}。"]))
        # The piece stands behind a space and the first full stop.
        assert not set(cut.starts.tolist()) & set(range(3, 2 + len(text)))


def test_odd_characters(nmt_nfkc: bytes) -> None:
    reading = PartCutter(model_of(nmt_nfkc)).tables.reading
    assert [int(reading[ord(c)]) for c in "a，　\n人"] == [ord(c) for c in "a,  人"]
    for odd in (0, 1, 0x301, 0xA8, 0x3099, 0x10FFFD):
        assert reading[odd] == ODD
