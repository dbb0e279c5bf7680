from pathlib import Path

import pyarrow as pa
import pytest

from shards.errors import DamageError
from shards.storage.files import atomic_write, crc32c
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


def test_decode() -> None:
    vocabulary = Vocabulary(TABLE)
    assert vocabulary.decode([0, 1, 2, 3, 6]) == "a b.好。"
    assert vocabulary.decode([0, 2]) == "a�"
    assert vocabulary.decode([4, 5, 8, 0]) == "⟨[MASK]⟩⟨5⟩⟨8⟩a"
    assert vocabulary.decode([]) == ""


@pytest.mark.parametrize("text", [*".?!;:。？！；…\n", "a.b", " ..."])
def test_sentence_ends(text: str) -> None:
    assert ends_sentence(text)


@pytest.mark.parametrize("text", ["", "a", "，", ",", "、", "：", "．", " ", "\t"])
def test_no_sentence_ends(text: str) -> None:
    assert not ends_sentence(text)


@pytest.mark.parametrize("token", [-1, 9])
def test_an_id_outside(token: int) -> None:
    with pytest.raises(DamageError, match=rf"token id {token} is outside .* of 9 ids"):
        Vocabulary(TABLE).decode([token])


def test_another_file(tmp_path: Path) -> None:
    entry = write_vocabulary(tmp_path, TABLE)
    damaged = bytearray((tmp_path / entry.path).read_bytes())
    damaged[len(damaged) // 2] ^= 1
    (tmp_path / "v.arrow").write_bytes(damaged)
    with pytest.raises(DamageError, match=r"v\.arrow is not the file that the manifest names: it"):
        Vocabulary.open(tmp_path / "v.arrow", entry)
    with pytest.raises(DamageError, match=r"w\.arrow is missing"):
        Vocabulary.open(tmp_path / "w.arrow", entry)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (pa.table({"bytes": [b"a"]}), r"is not a vocabulary: it has the columns \['bytes'\], not"),
        (None, r"v\.arrow is not an Arrow file, or is damaged \(.*\): restore it"),
    ],
)
def test_a_file_that_the_manifest_names_and_is_no_vocabulary(
    tmp_path: Path, table: pa.Table | None, message: str
) -> None:
    path = tmp_path / "v.arrow"
    with atomic_write(path) as handle:
        if table is None:
            handle.write(b"nothing like it")
        else:
            with pa.ipc.new_file(handle, table.schema) as writer:
                writer.write_table(table)
    with pytest.raises(DamageError, match=message):
        Vocabulary.open(path, handle.entry)
