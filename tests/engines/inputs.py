"""Writes small corpora in their real file formats; texts repeat across files and splits."""

import random
from pathlib import Path

from tests.soak.files import COMPRESSIONS, FileWriter
from tests.soak.records import CORPORA
from tests.soak.texts import Texts

_FILES = {
    "wudao": tuple(f"part-20260101{number:02}.json" for number in range(60)),
    "pile": ("00.jsonl", "01.jsonl", "10.jsonl.zst", "11.jsonl.zst", "12.jsonl.gz"),
    "fineweb": ("000_00000.parquet", "001_00000.parquet"),
}


_RECORDS = {"wudao": 15, "pile": 300, "fineweb": 300}
"""The number of records per file of a corpus; an array, as in WuDao, is one split."""


def write(corpus: str, folder: Path, *, damage: float = 0.0) -> Path:
    """Write files of a corpus, and return their folder.

    Args:
        corpus: The name of the corpus; the Pile and FineWeb have the same texts.
        folder: The folder to create for the files.
        damage: The share of invalid records.
    """
    # A copy has the same words, different white space, or one more word.
    texts = Texts(random.Random(0), copies=0.4)
    writer = FileWriter(random.Random(corpus), texts, CORPORA[corpus], damage, {})
    folder.mkdir(parents=True)
    for name in _FILES[corpus]:
        ending = Path(name).suffix
        packed = ending if ending in COMPRESSIONS else ""
        content = writer.file(writer.corpus.forms[0], _RECORDS[corpus], packed)
        (folder / name).write_bytes(content.data)
    return folder
