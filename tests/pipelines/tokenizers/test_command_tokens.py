from pipelines.tokenizers.command_tokens import (
    byte_bpe_commands,
    sentencepiece_commands,
    wordpiece_commands,
)


def test_layouts_are_those_of_glm() -> None:
    gpt2 = byte_bpe_commands(50257, end_of_text=50256)
    assert (gpt2.total, gpt2.padded) == (50266, 50304)
    assert gpt2.ids == {
        "eos": 50256, "pad": 50256, "cls": 50259, "mask": 50260, "sep": 50261, "unk": 50262,
        "sop": 50257, "eop": 50258, "gmask": 50263, "smask": 50264, "dblock": 50265,
    }  # fmt: skip
    chinese = sentencepiece_commands(50000)
    assert (chinese.total, chinese.padded) == (50011, 50048)
    assert chinese.ids == {
        "eos": 50000, "pad": 50000, "cls": 50002, "mask": 50003, "sep": 50001, "unk": 50004,
        "sop": 50006, "eop": 50007, "gmask": 50009, "smask": 50008, "dblock": 50010,
    }  # fmt: skip
    own = {"pad": 0, "cls": 101, "mask": 103, "sep": 102, "unk": 100}
    uncased = wordpiece_commands(30522, own=own)
    assert (uncased.total, uncased.padded) == (30527, 30592)
    assert uncased.ids == {
        **own, "eos": 0, "sop": 30522, "eop": 30523, "gmask": 30524, "smask": 30525,
        "dblock": 30526,
    }  # fmt: skip


def test_padding_beyond_uint16() -> None:
    commands = byte_bpe_commands(100277, end_of_text=100257)
    assert commands.padded == 100352
