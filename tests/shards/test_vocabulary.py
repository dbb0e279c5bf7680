from pathlib import Path

import pytest

from shards.storage.files import crc32c
from shards.vocabulary import Vocabulary, ends_sentence, vocabulary_table, write_vocabulary

PIECES = [b"a", b" b.", "好".encode()[:2], "好".encode()[2:], b"[MASK]", b"", "。".encode()]
TABLE = vocabulary_table(PIECES, special={4, 5}, size=9)


def test_round_trip(tmp_path: Path) -> None:
    entry = write_vocabulary(tmp_path, TABLE)
    path = tmp_path / entry.path
    assert entry.path == f"vocabulary-{crc32c(path):08x}.arrow"
    assert (entry.bytes, entry.crc32c, entry.rows) == (path.stat().st_size, crc32c(path), 9)
    vocabulary = Vocabulary.open(path, entry)
    assert len(vocabulary) == 9
    assert vocabulary.special.tolist() == [False] * 4 + [True] * 2 + [False] + [True] * 2
    assert vocabulary.sentence_end.tolist() == [i in (1, 6) for i in range(9)]


@pytest.mark.parametrize("text", ["", "a", "，", ",", "、", "：", "．", " ", "\t"])
def test_no_sentence_ends(text: str) -> None:
    assert not ends_sentence(text)
