"""Writes WuDao-shaped input of any size, for measurements.

Documents are put together from short passages of a seed text: the sample's Chinese articles, or the
`text` fields of a jsonl.zst. Titles are empty, so that a page's text is its content. The same
arguments give the same bytes. The sample is small, so its passages come back every 0.2 MB and
caches of words stay warmer than on real text: measure tokenizers with --jsonl-zst.

    python tests/bench/generate_wudao.py --output DIR --megabytes 2000 --files 10
    python tests/bench/generate_wudao.py --output DIR --jsonl-zst FILE --rewrite
"""

import argparse
import hashlib
import io
import itertools
import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import orjson
import zstandard

SAMPLE = Path(__file__).parents[2] / "pipelines" / "sample"  # run as a script, outside the package
# WuDao's open part holds about 2.7 KB a page; a log-normal of this width has that mean.
MEAN_BYTES = 2700
SIGMA = 0.8
BLOCK = 512
# One or a few sentences: 40 characters or more, then to the next end of a sentence.
PASSAGE = re.compile(r".{40,}?(?:[。！？!?\n]+|$)|.+$", re.DOTALL)


def sample_texts() -> Iterator[str]:
    """Yield the Chinese articles of the sample corpus, in order."""
    for path in sorted(SAMPLE.glob("part-*.json")):
        parsed = json.loads(path.read_text(encoding="utf-8"))
        records = parsed["RECORDS"] if isinstance(parsed, dict) else parsed
        texts = (record.get("content") for record in records)
        yield from (text for text in texts if isinstance(text, str) and _is_chinese(text))


def zst_texts(path: Path) -> Iterator[str]:
    """Yield the `text` field of each line of a jsonl.zst file, in order."""
    with path.open("rb") as file:
        stream = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True)
        yield from (orjson.loads(line)["text"] for line in io.BufferedReader(stream, 1 << 20))


def passage_pool(texts: Iterable[str]) -> list[bytes]:
    """Return the distinct passages of the texts as the insides of JSON strings, in order."""
    found = itertools.chain.from_iterable(map(PASSAGE.findall, texts))
    return [orjson.dumps(passage)[1:-1] for passage in dict.fromkeys(found)]


def documents(pool: list[bytes], *, rng: np.random.Generator) -> Iterator[bytes]:
    """Yield contents without end: passages in random order, of log-normal length.

    Each passage of the pool comes once before any comes again, and each round has an order of its
    own, so that contents differ and a seed of many words stays a text of many words.
    """
    passages = itertools.chain.from_iterable(_shuffles(pool, rng))
    while True:
        for size in rng.lognormal(np.log(MEAN_BYTES) - SIGMA**2 / 2, SIGMA, BLOCK):
            yield b"".join(_take(passages, int(size)))


def write_part(path: Path, contents: Iterable[bytes], *, limit: int | None = None) -> int:
    """Write one indented JSON array and return its bytes.

    Args:
        path: the file to write.
        contents: what stands between the quotes of each record's content.
        limit: bytes after which no further record is begun; None writes all.
    """
    size, separator = 0, b"[\n"
    with path.open("wb", buffering=1 << 20) as file:
        for number, content in enumerate(contents):
            size += file.write(separator + _record(path.name, number, content))
            separator = b",\n"
            if limit is not None and size >= limit:
                break
        return size + file.write(b"\n]\n" if size else b"[]\n")


def generate(
    output: Path, texts: Iterable[str], *, megabytes: float, files: int, seed: int
) -> Iterator[int]:
    """Write the files of recombined passages and yield the bytes of each."""
    pool = passage_pool(texts)
    if not pool:
        raise SystemExit("The seed text holds no text; pass another file as --jsonl-zst.")
    for number, path in enumerate(_paths(output, files)):
        rng = np.random.default_rng([seed, number])
        yield write_part(path, documents(pool, rng=rng), limit=int(megabytes * 1e6 / files))


def rewrite(output: Path, texts: Iterable[str], *, files: int) -> Iterator[int]:
    """Write the texts one to one, in consecutive runs, and yield the bytes of each file."""
    contents = [orjson.dumps(text)[1:-1] for text in texts]
    edges = [len(contents) * number // files for number in range(files + 1)]
    for path, (begin, end) in zip(_paths(output, files), itertools.pairwise(edges), strict=True):
        yield write_part(path, contents[begin:end])


def _is_chinese(text: str) -> bool:
    han = sum("\u4e00" <= character <= "\u9fff" for character in text)
    kana = sum("\u3040" <= character <= "\u30ff" for character in text)
    return 2 * han > len(text) and kana == 0


def _shuffles(pool: list[bytes], rng: np.random.Generator) -> Iterator[Iterator[bytes]]:
    while True:
        yield map(pool.__getitem__, rng.permutation(len(pool)).tolist())


def _take(passages: Iterator[bytes], size: int) -> Iterator[bytes]:
    taken = 0
    while taken < size:
        passage = next(passages)
        taken += len(passage)
        yield passage


def _record(name: str, number: int, content: bytes) -> bytes:
    key = hashlib.md5(b"%s %d" % (name.encode(), number), usedforsecurity=False).hexdigest()
    head = (
        f'    {{\n        "id": {number},\n        "uniqueKey": "{key}",\n'
        f'        "titleUkey": "{key[::-1]}",\n        "dataType": "百科",\n'
        '        "title": "",\n        "content": "'
    )
    return head.encode() + content + b'"\n    }'


def _paths(output: Path, files: int) -> list[Path]:
    output.mkdir(parents=True, exist_ok=True)
    return [output / f"part-{2026100000 + number}.json" for number in range(files)]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Write WuDao-shaped input for measurements.")
    parser.add_argument("--output", type=Path, required=True, help="folder for the part files")
    parser.add_argument("--megabytes", type=float, default=2000, help="size of all files together")
    parser.add_argument("--files", type=int, default=10, help="number of part files")
    parser.add_argument("--seed", type=int, default=0, help="another seed, other documents")
    parser.add_argument("--jsonl-zst", type=Path, help="seed text: a jsonl.zst with a text field")
    parser.add_argument("--rewrite", action="store_true", help="copy its documents one to one")
    arguments = parser.parse_args()
    if arguments.files < 1 or arguments.megabytes <= 0 or arguments.seed < 0:
        parser.error("--files and --megabytes must be above 0, --seed not below it")
    if arguments.rewrite and arguments.jsonl_zst is None:
        parser.error("--rewrite needs --jsonl-zst FILE, the documents to rewrite")
    return arguments


def main() -> None:
    """Write the files the command line asks for and print how many bytes they hold."""
    asked = _arguments()
    texts = zst_texts(asked.jsonl_zst) if asked.jsonl_zst else sample_texts()
    if asked.rewrite:
        sizes = rewrite(asked.output, texts, files=asked.files)
    else:
        sizes = generate(
            asked.output, texts, megabytes=asked.megabytes, files=asked.files, seed=asked.seed
        )
    print(f"{sum(sizes) / 1e6:.1f} MB in {asked.files} files under {asked.output}")


if __name__ == "__main__":
    main()
