"""Reads a dataset as docs/dataset.md describes it, with only json, numpy and pyarrow."""

import json
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

DocumentKey = tuple[str, str, int, int]
"""The source, path, position and ordinal of a document."""


@dataclass(frozen=True)
class StoredDocument:
    """A document, as a shard stores it."""

    key: DocumentKey
    order: int
    text: str
    """The decoded text, with the prompt."""
    prompt: str
    shard: str
    row: int
    tokens: tuple[int, ...]
    columns: dict[str, Any]


@dataclass(frozen=True)
class PlainDataset:
    """A dataset that is read without the product's code."""

    folder: Path

    @cached_property
    def manifest(self) -> dict[str, Any]:
        content: dict[str, Any] = json.loads((self.folder / "manifest.json").read_bytes())
        return content

    @cached_property
    def pieces(self) -> list[bytes]:
        with pa.memory_map(str(self.folder / self.manifest["vocabulary"]["path"])) as file:
            return [*pa.ipc.open_file(file).read_all()["bytes"].to_pylist()]

    @property
    def eos(self) -> int:
        return int(self.manifest["tokenizer"]["special"]["eos"])

    def splits(self) -> Iterator[tuple[dict[str, Any], str, str]]:
        """Yield each combination of generation, source and split."""
        for generation in self.manifest["generations"]:
            for source in sorted(generation["sources"]):
                for split in ("train", "validation"):
                    yield generation, source, split

    def stored(self) -> list[StoredDocument]:
        """Return the documents of all generations."""
        return [document for home in self.splits() for document in self.documents(*home)]

    def documents(
        self, generation: dict[str, Any], source: str, split: str
    ) -> Iterator[StoredDocument]:
        """Yield the documents of one source and split of a generation, shard by shard."""
        for shard in self.shards(generation, source, split):
            yield from self.shard(shard, source)

    @staticmethod
    def shards(generation: dict[str, Any], source: str, split: str) -> list[dict[str, Any]]:
        entry = generation["sources"].get(source, {"shards": [], "validation": []})
        return [*entry["shards" if split == "train" else "validation"]]

    def tokens(self, shard: dict[str, Any]) -> np.ndarray:
        """Return all tokens of a shard."""
        dtype = np.dtype(self.manifest["tokenizer"]["dtype"]).newbyteorder("<")
        return np.fromfile(self.folder / f"{shard['path']}.bin", dtype)

    def table(self, shard: dict[str, Any]) -> list[dict[str, Any]]:
        with pa.memory_map(str(self.folder / f"{shard['path']}.arrow")) as file:
            return [*pa.ipc.open_file(file).read_all().to_pylist()]

    def shard(self, shard: dict[str, Any], source: str) -> Iterator[StoredDocument]:
        """Yield the documents of a shard after checking that the shard's three files agree."""
        tokens, rows = self.tokens(shard), self.table(shard)
        lengths = read_index(self.folder / f"{shard['path']}.idx")
        assert [row["tokens"] for row in rows] == lengths, f"{shard['path']}: .idx and .arrow"
        assert sum(lengths) == len(tokens) == shard["tokens"], f"{shard['path']}: .bin"
        assert len(rows) == shard["documents"], f"{shard['path']}: manifest"
        at = 0
        for number, row in enumerate(rows):
            ids = tuple(tokens[at : at + row["tokens"]].tolist())
            assert row["offset"] == at, f"{shard['path']}:{number}: offset"
            assert ids[-1] == self.eos, f"{shard['path']}:{number}: no eos"
            cut = row["prompt_tokens"]
            prompt = self.decode(ids[:cut])
            yield StoredDocument(
                key=(source, row["path"], row["position"], row["ordinal"]),
                order=row["order"],
                text=prompt + self.decode(ids[cut:-1]),
                prompt=prompt,
                shard=shard["path"],
                row=number,
                tokens=ids,
                columns=row,
            )
            at += row["tokens"]

    def decode(self, ids: tuple[int, ...]) -> str:
        """Return the text of tokens, minus the space that SentencePiece adds at the start."""
        return b"".join(self.pieces[token] for token in ids).decode().removeprefix(" ")

    def rows(self, generation: dict[str, Any], kind: str) -> list[dict[str, Any]]:
        """Return the rows of one kind of table, each with its source."""
        found = []
        for entry in generation.get(kind, ()):
            source = Path(entry["path"]).stem.rpartition("-")[0]
            table = pq.read_table(self.folder / entry["path"], use_threads=False)
            found += [{**row, "source": source} for row in table.to_pylist()]
        return found

    def removed(self) -> set[tuple[str, int]]:
        """Return the shard and row of each removed document."""
        found = set()
        by_name = {
            (generation["name"], source, split): self.shards(generation, source, split)
            for generation, source, split in self.splits()
        }
        for removal in self.manifest["removals"]:
            with pa.memory_map(str(self.folder / removal["documents"]["path"])) as file:
                for row in pa.ipc.open_file(file).read_all().to_pylist():
                    shards = by_name[row["generation"], row["source"], row["split"]]
                    found.add((shards[row["shard"]]["path"], row["row"]))
        return found


def read_index(path: Path) -> list[int]:
    """Return the lengths of the documents in an .idx file after checking the rest of the file."""
    data = path.read_bytes()
    magic, version, code, count, ends = struct.unpack_from("<9sQBQQ", data)
    assert (magic, version, ends) == (b"MMIDIDX\0\0", 1, count + 1), f"{path}: head"
    width = {8: 2, 4: 4}[code]
    lengths = list(struct.unpack_from(f"<{count}i", data, 34))
    starts = list(struct.unpack_from(f"<{count}q", data, 34 + 4 * count))
    numbers = list(struct.unpack_from(f"<{count + 1}q", data, 34 + 12 * count))
    assert numbers == [*range(count + 1)], f"{path}: document ends"
    assert starts == [width * sum(lengths[:at]) for at in range(count)], f"{path}: starts"
    assert len(data) == 42 + 20 * count, f"{path}: size"
    return lengths
