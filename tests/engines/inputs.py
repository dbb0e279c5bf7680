"""Small corpora in their real containers, with texts that repeat across files and splits."""

import gzip
import json
import random
from pathlib import Path

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import zstandard

_SYLLABLES = ("ka", "lo", "mi", "ter", "ban", "so", "ril", "den", "pu", "gan", "ve", "shor")
_CHARACTERS = "山水田木火土金石日月风云雨雪花草鸟鱼牛马人手口心言门车舟书画琴棋春夏秋冬东西南北"


def text(number: int, *, chinese: bool) -> str:
    """A text; 3 in 17 are copies of an earlier one, 3 in 17 are copies with a sentence changed."""
    remainder = number % 17
    origin = number // 2 if remainder in (3, 6, 9, 11, 13, 15) else number
    sentences = _sentences(origin, chinese=chinese)
    if remainder in (3, 9, 13):
        sentences[len(sentences) // 2] = _sentences(number, chinese=chinese)[0]
    return ("" if chinese else " ").join(sentences)


def _sentences(number: int, *, chinese: bool) -> list[str]:
    rng = random.Random(number)
    if chinese:
        return ["".join(rng.choices(_CHARACTERS, k=18)) + "。" for _ in range(12)]
    words = [" ".join("".join(rng.choices(_SYLLABLES, k=2)) for _ in range(9)) for _ in range(16)]
    return [f"{sentence.capitalize()}." for sentence in words]


def write_wudao(folder: Path, *, documents: int) -> Path:
    """Write JSON arrays, as BAAI ships them."""
    for part in range(3):
        records = [
            {
                "uniqueKey": f"{number:032x}",
                "dataType": "百科",
                "title": "山水田木",
                "content": text(number, chinese=True),
            }
            for number in range(part, documents, 3)
        ]
        _with_folder(folder / f"part-202601010{part}.json").write_text(
            json.dumps(records, ensure_ascii=False)
        )
    return folder


def write_damage(folder: Path, *, documents: int) -> Path:
    """Write another file of WuDao: texts too short for the rules of `glm`, and records without."""
    records = [
        {
            "uniqueKey": f"{number:032x}",
            "dataType": "百科",
            "title": "山水田木",
            "content": text(number, chinese=True)[:60] if number % 2 else number,
        }
        for number in range(documents)
    ]
    _with_folder(folder / "part-2026010109.json").write_text(
        json.dumps(records, ensure_ascii=False)
    )
    return folder


def write_pile(folder: Path, *, documents: int) -> Path:
    """Write JSON lines, most of them plain, some compressed."""
    lines = [
        orjson.dumps(
            {
                "text": text(number, chinese=False),
                "meta": {"pile_set_name": ("Pile-CC", "ArXiv", "Github")[number % 3]},
            }
        )
        + b"\n"
        for number in range(documents)
    ]
    _with_folder(folder / "00.jsonl").write_bytes(b"".join(lines[::2]))
    _with_folder(folder / "01.jsonl").write_bytes(b"".join(lines[1::4]))
    for index, start in enumerate(range(3, 19, 4)):
        archive = b"".join(lines[start::16])
        _with_folder(folder / f"1{index}.jsonl.zst").write_bytes(zstandard.compress(archive))
        if index == 3:
            (folder / "13.jsonl.zst").unlink()
            _with_folder(folder / "13.jsonl.gz").write_bytes(gzip.compress(archive, mtime=0))
    return folder


def write_fineweb(folder: Path, *, documents: int) -> Path:
    """Write Parquet files of many small row groups; two texts in three are the Pile's."""
    for part in range(2):
        rows = [
            {
                "text": text(number + (0 if number % 3 else 50_000), chinese=False),
                "id": f"<urn:uuid:{number:08}>",
                "dump": "CC-MAIN-2024-10",
                "url": f"https://w{number}.example/",
                "language": "en",
            }
            for number in range(part, documents, 2)
        ]
        path = _with_folder(folder / f"00{part}_00000.parquet")
        pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=6, compression="zstd")
    return folder


def _with_folder(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    return path
