"""Setups of datasets, most of them damaged, which the product's commands build."""

import json
import random
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import google_crc32c
import pyarrow as pa

from tests.refusals.setups import Setup, copy_of, made_once, run_command, with_file
from tests.shards import datasets

_WORDS = (
    "sea ship wind rain house road light stone river bread night morning green small old young "
    "walk speak hear find the a of and to in is was on with"
)
_BUILD = (
    "pipelines.text --provenance url --tokenizer sentencepiece:tok.model --languages en "
    "--validation 0.05 --shards 2 --output data"
)


def _text(source: random.Random) -> str:
    words = _WORDS.split()
    sentences = (
        " ".join(source.choice(words) for _ in range(source.randrange(6, 14))).capitalize() + "."
        for _ in range(source.randrange(3, 9))
    )
    return " ".join(sentences)


def write_texts(path: Path, number: int, *, seed: int) -> None:
    """Write records with a text, an id and a URL."""
    source, name = random.Random(seed), path.stem
    lines = (
        json.dumps(
            {"id": f"{name}-{i}", "text": _text(source), "url": f"https://{name}.example/{i}"}
        )
        for i in range(number)
    )
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines))


def _make_corpus(folder: Path) -> None:
    for path, number, seed in (("docs/a", 60, 1), ("more/b", 40, 2), ("new/c", 40, 3)):
        write_texts(folder / f"{path}.jsonl", number, seed=seed)
    run_command(
        folder,
        "pipelines.train_tokenizer --input docs --corpus text --output tok.model --vocab-size 300",
    )


def _make_first(folder: Path) -> None:
    _make_corpus(folder)
    run_command(folder, f"{_BUILD} --input docs=docs --input notes=more")


def _make_grown(folder: Path) -> None:
    shutil.copytree(made_once(folder, "first", _make_first), folder, dirs_exist_ok=True)
    inputs = "--input docs=docs --input notes=more --input new=new"
    run_command(folder, f"{_BUILD} {inputs} --append")
    run_command(folder, "shards remove data --id a-3 --reason asked")


first = copy_of("first", _make_first, "data")
"""`data`, with one generation: docs and notes, each in two shards, with validation."""
corpus = copy_of("first", _make_first, "docs", "more", "tok.model")
"""The inputs and the tokenizer from which `first` and `dataset` are made."""
dataset = copy_of("grown", _make_grown, "data")
"""`data`, with manifest 3: two generations, of which the second has the source `new`, and a
removal."""


def _make_other(folder: Path) -> None:
    _make_corpus(folder)
    run_command(folder, f"{_BUILD} --input docs=docs --seed 5 --shards 4")
    (folder / "data").rename(folder / "disk")


def _made(words: str) -> Setup:
    def make(folder: Path) -> None:
        dataset(folder)
        run_command(folder, f"shards {words}")

    return make


another = copy_of("other", _make_other, "disk")
"""`disk`, a dataset of a different lineage, in four shards."""
placed = copy_of("placed", _made("place data --to disk"), "disk")
"""`disk`, a copy of `data` written by `place`."""
exported = copy_of("exported", _made("export data --to numpy --source docs --output out"), "out")
"""`out`, an export of `data`'s source docs for NumPy."""


def all_links(folder: Path) -> None:
    """Replace all files of `data` by links, as a cache has them."""
    (folder / "data").rename(folder / "store")
    for path in sorted((folder / "store").rglob("*")):
        if path.is_file():
            link = folder / "data" / path.relative_to(folder / "store")
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(path)


def manifest(folder: Path) -> None:
    """Write a folder `data` with only the manifest of `dataset`."""
    made = made_once(folder, "grown", _make_grown)
    (folder / "data").mkdir()
    shutil.copy(made / "data/manifest.json", folder / "data")


def find_one(folder: Path, pattern: str) -> Path:
    """Return the only path that matches a pattern."""
    paths = sorted(folder.glob(pattern))
    assert len(paths) == 1, f"{pattern}: {paths}"
    return paths[0]


def with_json(path: str, value: Any) -> Setup:
    return with_file(path, json.dumps(value))


def as_link(pattern: str) -> Setup:
    """Return a setup that replaces a file or folder by a link to `away`, next to the dataset."""

    def setup(folder: Path) -> None:
        path = find_one(folder, pattern)
        path.rename(folder / "away")
        path.symlink_to(folder / "away")

    return setup


def edited(pattern: str, change: Callable[[bytes], bytes]) -> Setup:
    """Return a setup that changes the bytes of a file."""

    def setup(folder: Path) -> None:
        path = find_one(folder, pattern)
        path.write_bytes(change(path.read_bytes()))

    return setup


def cut(pattern: str, number: int = 2) -> Setup:
    """Return a setup that cuts the last bytes off a file."""
    return edited(pattern, lambda content: content[:-number])


def overwritten(pattern: str, at: int, value: bytes) -> Setup:
    """Return a setup that overwrites bytes at an offset, which counts from the end if negative."""

    def change(content: bytes) -> bytes:
        begin = at if at >= 0 else len(content) + at
        return content[:begin] + value + content[begin + len(value) :]

    return edited(pattern, change)


def missing(pattern: str) -> Setup:
    """Return a setup that deletes a file."""
    return lambda folder: find_one(folder, pattern).unlink()


ABSENT = object()
"""A value that means that the key is deleted."""


def changed(value: Any, path: str, new: Any) -> Any:
    """Return a JSON value after replacing the value at a path such as `a.0.b`."""
    *above, last = [int(part) if part.isdigit() else part for part in path.split(".")]
    holder = value
    for part in above:
        holder = holder[part]
    if new is ABSENT:
        del holder[last]
    elif isinstance(holder, list) and last == len(holder):
        holder.append(new)
    else:
        holder[last] = new(holder.get(last)) if callable(new) else new
    return value


def json_changed(pattern: str, path: str, new: Any) -> Setup:
    """Return a setup that changes a value in a JSON file."""

    def change(content: bytes) -> bytes:
        return json.dumps(changed(json.loads(content), path, new)).encode()

    return edited(pattern, change)


def with_manifest(path: str, new: Any, *more: Any, data: str = "data") -> Setup:
    """Return a setup that changes values in a manifest, and the sha256 to match.

    Args:
        path: The path of a value, such as `a.0.b`.
        new: The new value; ABSENT deletes it.
        more: Further paths and values, in turn.
        data: The folder of the dataset.
    """

    def change(content: bytes) -> bytes:
        manifest = json.loads(content)
        words: Sequence[Any] = (path, new, *more)
        for place, value in zip(words[::2], words[1::2], strict=True):
            changed(manifest, place, value)
        return json.dumps(datasets.sealed(manifest)).encode()

    return edited(f"{data}/manifest.json", change)


def with_checksum(pattern: str, change: Callable[[bytes], bytes]) -> Setup:
    """Return a setup that changes a file's bytes, and its size and checksum in the manifest."""

    def setup(folder: Path) -> None:
        edited(pattern, change)(folder)
        path = find_one(folder, pattern).relative_to(folder / "data")
        content = (folder / "data" / path).read_bytes()
        entry = {"bytes": len(content), "crc32c": google_crc32c.value(content)}
        manifest = json.loads((folder / "data/manifest.json").read_bytes())
        place = _place_in(manifest, str(path))
        with_manifest(f"{place}.bytes", entry["bytes"], f"{place}.crc32c", entry["crc32c"])(folder)

    return setup


def _place_in(value: Any, path: str, where: str = "") -> str:
    """Return the path, inside a manifest, of a file's entry; "" if there is none."""
    stem, _, suffix = path.rpartition(".")
    if isinstance(value, dict) and value.get("path") == path and "crc32c" in value:
        return where
    if isinstance(value, dict) and value.get("path") == stem and "files" in value:
        return f"{where}.files.{suffix}"
    items = value.items() if isinstance(value, dict) else enumerate(value)
    places = (
        _place_in(item, path, f"{where}.{key}".lstrip("."))
        for key, item in items
        if isinstance(item, dict | list)
    )
    return next(filter(None, places), "")


def rows_changed(
    pattern: str,
    change: Callable[[pa.Table], pa.Table],
    *,
    batches: int = 1,
    setup: Callable[[str, Callable[[bytes], bytes]], Setup] = with_checksum,
) -> Setup:
    """Return a setup that changes an Arrow file's rows, and the file's entry in the manifest."""

    def changed_bytes(content: bytes) -> bytes:
        table = change(pa.ipc.open_file(content).read_all()).combine_chunks()
        sink = pa.BufferOutputStream()
        with pa.ipc.new_file(sink, table.schema) as writer:
            size = -(-len(table) // batches)
            writer.write_table(table, max_chunksize=size)
        return sink.getvalue().to_pybytes()

    return setup(pattern, changed_bytes)


def cell_changed(pattern: str, column: str, row: int, value: Any, **how: Any) -> Setup:
    """Return a setup that changes one cell of an Arrow file; a function gets the old value."""

    def change(table: pa.Table) -> pa.Table:
        values = table[column].to_pylist()
        values[row] = value(values[row]) if callable(value) else value
        index = table.schema.get_field_index(column)
        field = table.schema.field(index)
        return table.set_column(index, field, pa.array(values, field.type))

    return rows_changed(pattern, change, **how)
