"""Folders with datasets that something is wrong with, made by the commands themselves."""

import json
import random
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import google_crc32c
import pyarrow as pa

from tests.refusals.refusal import Refusal
from tests.refusals.runner import run
from tests.refusals.scenes import Scene, copied, holding, kept
from tests.shards import datasets

_WORDS = (
    "sea ship wind rain house road light stone river bread night morning green small old young "
    "walk speak hear find the a of and to in is was on with"
)
_BUILD = (
    "pipelines.text --provenance url --tokenizer sentencepiece:tok.model --languages en "
    "--validation 0.05 --shards 2 --output data"
)


def command(folder: Path, words: str, *, forked: bool = False) -> None:
    """Run a command that must go well.

    Args:
        folder: Where.
        words: The module and its flags.
        forked: In a copy of this process, which has imported what it needs.
    """
    done = run(Refusal(name="scene", command=words, says="", process=not forked), folder)
    assert done.code == 0, f"{words}\n{done.err}"


def _text(source: random.Random) -> str:
    words = _WORDS.split()
    sentences = (
        " ".join(source.choice(words) for _ in range(source.randrange(6, 14))).capitalize() + "."
        for _ in range(source.randrange(3, 9))
    )
    return " ".join(sentences)


def texts(path: Path, number: int, *, seed: int) -> None:
    """Write records with a text, an id and a url."""
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
        texts(folder / f"{path}.jsonl", number, seed=seed)
    command(
        folder,
        "pipelines.train_tokenizer --input docs --corpus text --output tok.model --vocab-size 300",
    )


def _make_first(folder: Path) -> None:
    _make_corpus(folder)
    command(folder, f"{_BUILD} --input docs=docs --input notes=more")


def _make_grown(folder: Path) -> None:
    shutil.copytree(kept(folder, "first", _make_first), folder, dirs_exist_ok=True)
    inputs = "--input docs=docs --input notes=more --input new=new"
    command(folder, f"{_BUILD} {inputs} --append")
    command(folder, "shards remove data --id a-3 --reason asked")


first = copied("first", _make_first, "data")
"""`data` with one generation: docs and notes, each in two shards, with validation."""
corpus = copied("first", _make_first, "docs", "more", "tok.model")
"""The input of these datasets, and their tokenizer."""
dataset = copied("grown", _make_grown, "data")
"""`data` with two generations, the second with the source new, and a removal: manifest 3."""


def _make_other(folder: Path) -> None:
    _make_corpus(folder)
    command(folder, f"{_BUILD} --input docs=docs --seed 5 --shards 4")
    (folder / "data").rename(folder / "disk")


def _made(words: str) -> Scene:
    def make(folder: Path) -> None:
        dataset(folder)
        command(folder, f"shards {words}")

    return make


another = copied("other", _make_other, "disk")
"""`disk`, a dataset of another lineage, in four shards."""
placed = copied("placed", _made("place data --to disk"), "disk")
"""`disk`, a copy of `data` as place writes it."""
exported = copied("exported", _made("export data --to numpy --source docs --output out"), "out")
"""`out`, an export of the source docs of `data` for NumPy."""


def linked(folder: Path) -> None:
    """The `data` of a scene before it, whose files all are links, as in a cache."""
    (folder / "data").rename(folder / "store")
    for path in sorted((folder / "store").rglob("*")):
        if path.is_file():
            link = folder / "data" / path.relative_to(folder / "store")
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(path)


def manifest(folder: Path) -> None:
    """`data` with nothing in it but the manifest of `dataset`."""
    made = kept(folder, "grown", _make_grown)
    (folder / "data").mkdir()
    shutil.copy(made / "data/manifest.json", folder / "data")


def found(folder: Path, pattern: str) -> Path:
    """The one file that a pattern matches."""
    paths = sorted(folder.glob(pattern))
    assert len(paths) == 1, f"{pattern}: {paths}"
    return paths[0]


def holding_json(path: str, value: Any) -> Scene:
    return holding(path, json.dumps(value))


def led_out(pattern: str) -> Scene:
    """A link to `away`, next to the dataset, instead of one file or folder."""

    def scene(folder: Path) -> None:
        path = found(folder, pattern)
        path.rename(folder / "away")
        path.symlink_to(folder / "away")

    return scene


def edited(pattern: str, change: Callable[[bytes], bytes]) -> Scene:
    """One file with other bytes."""

    def scene(folder: Path) -> None:
        path = found(folder, pattern)
        path.write_bytes(change(path.read_bytes()))

    return scene


def cut(pattern: str, number: int = 2) -> Scene:
    """A file without its last bytes."""
    return edited(pattern, lambda content: content[:-number])


def overwritten(pattern: str, at: int, value: bytes) -> Scene:
    """A file with other bytes at a place; below 0: from its end."""

    def change(content: bytes) -> bytes:
        begin = at if at >= 0 else len(content) + at
        return content[:begin] + value + content[begin + len(value) :]

    return edited(pattern, change)


def missing(pattern: str) -> Scene:
    """Without a file."""
    return lambda folder: found(folder, pattern).unlink()


GONE = object()
"""Instead of a value: without it."""


def changed(value: Any, path: str, new: Any) -> Any:
    """A JSON value with another one at a path such as `a.0.b`."""
    *above, last = [int(part) if part.isdigit() else part for part in path.split(".")]
    holder = value
    for part in above:
        holder = holder[part]
    if new is GONE:
        del holder[last]
    elif isinstance(holder, list) and last == len(holder):
        holder.append(new)
    else:
        holder[last] = new(holder.get(last)) if callable(new) else new
    return value


def json_changed(pattern: str, path: str, new: Any) -> Scene:
    """A JSON file in which something differs."""

    def change(content: bytes) -> bytes:
        return json.dumps(changed(json.loads(content), path, new)).encode()

    return edited(pattern, change)


def sealed(path: str, new: Any, *more: Any, data: str = "data") -> Scene:
    """A manifest with other values, and the sha256 that belongs to them.

    Args:
        path: Where, as `a.0.b`.
        new: The value there; GONE: none.
        more: Further paths and values.
        data: The folder of the dataset.
    """

    def change(content: bytes) -> bytes:
        manifest = json.loads(content)
        words: Sequence[Any] = (path, new, *more)
        for place, value in zip(words[::2], words[1::2], strict=True):
            changed(manifest, place, value)
        return json.dumps(datasets.sealed(manifest)).encode()

    return edited(f"{data}/manifest.json", change)


def consistent(pattern: str, change: Callable[[bytes], bytes]) -> Scene:
    """One file with other bytes, of which the manifest says the size and the checksum."""

    def scene(folder: Path) -> None:
        edited(pattern, change)(folder)
        path = found(folder, pattern).relative_to(folder / "data")
        content = (folder / "data" / path).read_bytes()
        entry = {"bytes": len(content), "crc32c": google_crc32c.value(content)}
        manifest = json.loads((folder / "data/manifest.json").read_bytes())
        place = _place_in(manifest, str(path))
        sealed(f"{place}.bytes", entry["bytes"], f"{place}.crc32c", entry["crc32c"])(folder)

    return scene


def _place_in(value: Any, path: str, where: str = "") -> str:
    """The place in a manifest of the size of a file; "": there is none."""
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
    scene: Callable[[str, Callable[[bytes], bytes]], Scene] = consistent,
) -> Scene:
    """An Arrow file with other rows, of which the manifest says the size and the checksum."""

    def changed_bytes(content: bytes) -> bytes:
        table = change(pa.ipc.open_file(content).read_all()).combine_chunks()
        sink = pa.BufferOutputStream()
        with pa.ipc.new_file(sink, table.schema) as writer:
            size = -(-len(table) // batches)
            writer.write_table(table, max_chunksize=size)
        return sink.getvalue().to_pybytes()

    return scene(pattern, changed_bytes)


def cell(pattern: str, column: str, row: int, value: Any, **how: Any) -> Scene:
    """An Arrow file with another value in a column, by a function of the present one or as is."""

    def change(table: pa.Table) -> pa.Table:
        values = table[column].to_pylist()
        values[row] = value(values[row]) if callable(value) else value
        index = table.schema.get_field_index(column)
        field = table.schema.field(index)
        return table.set_column(index, field, pa.array(values, field.type))

    return rows_changed(pattern, change, **how)
