"""Reads, as plain data, the files that a row has written, using only documented formats."""

import difflib
import hashlib
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pyarrow import parquet

_MASKS = (
    (r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(:\d\d)?(\.\d+)?(Z|\+00:00)?)?", "DATE"),
    (r"(?<![\w:/.])\d{1,2}:\d\d(:\d\d)?\b", "TIME"),
    (r"(localhost|127\.0\.0\.1):\d+", r"\1:PORT"),
    (r"(ms/step|tokens/s|samples/s) [\d.,]+", r"\1 RATE"),
    (r"[\d.,]+ (ms/step|tokens/s|samples/s|MB/s|GB/s|documents/s)", r"RATE \1"),
    (r" *\b\d[\d.,]* (s|ms|min|h|seconds?|minutes?|hours?)\b *", " TIME "),
    (r"\b\d+\.\d+\.\d+\S*", "VERSION"),
    (r"\b(worker|driver) [\d.]+ [kMG]B", r"\1 MEMORY"),
    (r"\b(process|pid) \d+", r"\1 PID"),
    # The records of items contain folder names, which differ in length.
    (r"(through Beam) [\d.]+ [kMG]?B", r"\1 SIZE"),
    (r"^identity   [0-9a-f]{64}", "identity   SHA256"),
    (r"(?<=\w-)[0-9a-f]{8}(?!\w)", "XXXXXXXX"),
)
"""Patterns of the texts that differ between runs, and of the 8 digits of an identity in a file
name, which is pinned once per generation instead of in every line."""

_PROGRESS = re.compile(
    r"^\S+ +\d+ %( \||$)|^(?!map)\w+: \d+ of \d+ items were finished before$"
    r"|^kernels are compiled first"
)
_NO_DATA = (
    "report.html",
    "report.json",
    "inputs.json",
    "manifest.json",
    "ledger.json",
    "log.jsonl",
)
_TIMINGS = ("ms_per_step", "tokens_per_second", "samples_per_second", "waiting", "seconds", "time")
_PACKED = (".parquet", ".gz", ".zst", ".bz2", ".xz")
_SHORT = 8_000
"""Texts of up to this many bytes are pinned in full."""


def outcome_of(folder: Path, ran: list[dict], keeps: Sequence[str], root: Path) -> dict:
    """Return the output of the commands, and the contents of the files that they wrote."""
    commands = [{**one, "printed": masked(one["printed"], folder, root)} for one in ran]
    found: dict = {"commands": commands}
    for manifest in sorted(folder.rglob("manifest.json")):
        name = str(manifest.parent.relative_to(folder))
        found.setdefault("datasets", {})[name] = _dataset(manifest.parent)
    for log in sorted(folder.rglob("log.jsonl")):
        name = str(log.parent.relative_to(folder))
        found.setdefault("runs", {})[name] = _training(log)
    for pattern in keeps:
        for path in sorted(folder.glob(pattern)):
            if not path.is_file() or path.name.startswith("."):
                continue
            name = _unnamed(str(path.relative_to(folder)))
            found.setdefault("files", {})[name] = _content(path, folder, root)
    return found


def masked(lines: list[str], folder: Path, root: Path) -> list[str]:
    """Return the lines after masking the texts that differ between runs and machines."""
    return [_masked(line, folder, root) for line in lines if not _PROGRESS.match(line)]


def _masked(line: str, folder: Path, root: Path) -> str:
    text = line.replace(str(folder), ".").replace(str(root), "ROOT")
    for pattern, instead in _MASKS:
        text = re.sub(pattern, instead, text)
    return text.rstrip()


def _unnamed(name: str) -> str:
    """Return a path after removing the identities in the names of files."""
    return re.sub(r"-[0-9a-f]{8}(?=[./]|$)", "", name)


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


def _content(path: Path, folder: Path, root: Path) -> str | list[str]:
    binary = path.suffix in (".bin", ".idx", ".arrow", ".parquet", ".npy", ".ds")
    if binary or path.stat().st_size > _SHORT:
        return _hash(path)
    try:
        text = path.read_text("utf-8")
        return _hash(path) if "\0" in text else masked(text.splitlines(), folder, root)
    except UnicodeDecodeError:
        return _hash(path)


def _dataset(dataset: Path) -> dict:
    manifest = json.loads((dataset / "manifest.json").read_text("utf-8"))
    files: dict[str, str] = {}
    for path in sorted(dataset.rglob("*")):
        if path.is_file() and path.name not in _NO_DATA and not path.name.startswith("."):
            name = _unnamed(str(path.relative_to(dataset)))
            # Until prune has run, two files may have names that differ only in their identities.
            files[name] = " ".join(sorted([*files.get(name, "").split(), _hash(path)]))
    return {
        "manifest": _without(manifest, ("sha256", "lineage", "libraries", "crc32c")),
        "files": files,
        "verdicts": dict(sorted(_verdicts(dataset, manifest))),
    }


def _without(value: object, keys: Sequence[str]) -> object:
    """Return a value after removing some keys and replacing each list of files by two totals."""
    if isinstance(value, dict):
        return {key: _without(item, keys) for key, item in value.items() if key not in keys}
    if isinstance(value, list):
        if value and all(isinstance(item, dict) and {"path", "rows"} <= {*item} for item in value):
            return f"{len(value)} files, {sum(item['rows'] for item in value)} rows"
        return [_without(item, keys) for item in value]
    return _unnamed(value) if isinstance(value, str) else value


def _verdicts(dataset: Path, manifest: dict) -> Iterator[tuple[str, str]]:
    """Yield a readable name for each record, and the verdict on the record."""
    places = _input_paths(dataset)
    for generation in manifest["generations"]:
        for file in generation["audit"]:
            if not (dataset / file["path"]).exists():  # a copy for a node has no audit tables
                continue
            source = Path(file["path"]).name.rpartition("-")[0]
            for row in parquet.read_table(dataset / file["path"]).to_pylist():
                title = _title(places.get((source, row["path"])), row)
                answer = f"+{row['ordinal']}" if row["ordinal"] else ""
                place = f"{row['path']}:{row['position']}{answer}"
                told = " ".join(_verdict_words(row, metric=title.partition(" ")[0]))
                yield f"{generation['number']} {source} {place} {title}".rstrip(), told


def _input_paths(dataset: Path) -> dict[tuple[str, str], Path]:
    """Return the paths of the input files by source and relative path."""
    inputs = dataset / "inputs.json"
    if not inputs.exists():
        return {}
    listed = json.loads(inputs.read_text("utf-8"))
    return {(one["source"], one["path"]): Path(one["from"]) for one in listed}


def _verdict_words(row: dict, metric: str) -> Iterator[str]:
    """Yield the verdict on a record in words, and the value of the metric that its title names."""
    yield row["verdict"]
    for key in ("reason", "language", "tokens"):
        if row.get(key) is not None:
            yield str(row[key])
    if row.get("repaired"):
        yield "repaired"
    if "." in metric and row.get(metric) is not None:
        yield f"{row[metric]:.5g}"


_TITLE = re.compile(rb'"(?:title|id|uniqueKey|url|name)" *: *("[^"]{1,60}|\d+)')


def _title(path: Path | None, row: dict) -> str:
    """Return the id or title in a record, or "" if the record's file is compressed."""
    if path is None or not path.exists() or path.suffix in _PACKED:
        return ""
    with path.open("rb") as file:
        file.seek(row["position"])
        found = _TITLE.search(file.read(min(row["length"], 4096)))
    return found[1].decode("utf-8", "replace").lstrip('"') if found else ""


def _training(log: Path) -> dict:
    events = []
    for line in log.read_text("utf-8").splitlines():
        event = json.loads(line)
        events.append({key: value for key, value in event.items() if key not in _TIMINGS})
    steps = sorted(path.name for path in log.parent.glob("step*"))
    return {"events": events, "checkpoints": steps}


def differences(expected: Mapping[str, object], found: Mapping[str, object]) -> Iterator[str]:
    """Yield a diff of two outcomes, ignoring the last digits of decimals."""
    for kind in sorted({*expected, *found}):
        old, new = (to_json(side.get(kind)).splitlines() for side in (expected, found))
        # Losses and gradient norms on a different processor differed by 6e-5 after some steps.
        tolerance = 2e-4 if kind == "runs" else 1e-5
        same = (_is_close(*lines, tolerance) for lines in zip(old, new, strict=False))
        if len(old) != len(new) or not all(same):
            lines = difflib.unified_diff(old, new, kind, kind, n=1, lineterm="")
            yield from (f"{line[:300]} …" if len(line) > 300 else line for line in lines)


_DECIMAL = re.compile(r"(?<![\w.])-?\d+\.(\d{4,})(?:e[-+]\d+)?(?![\w.])")
"""A decimal whose last digits may differ between processors."""


def _is_close(expected: str, found: str, tolerance: float) -> bool:
    """Return whether two lines are the same, except for the last digits of decimals."""
    if expected == found:
        return True
    if _DECIMAL.sub("F", expected) != _DECIMAL.sub("F", found):
        return False
    pairs = zip(_DECIMAL.finditer(expected), _DECIMAL.finditer(found), strict=True)
    return all(
        math.isclose(float(a[0]), float(b[0]), rel_tol=tolerance, abs_tol=1.5 / 10 ** len(a[1]))
        for a, b in pairs
    )


def to_json(value: object, depth: int = 0) -> str:
    """Return JSON with sorted keys; a value that is short enough is on one line."""
    flat = json.dumps(value, ensure_ascii=False, sort_keys=True)
    if not isinstance(value, dict | list) or (depth > 1 and len(flat) < 100) or len(flat) < 3:
        return flat
    pad = " " * (depth + 1)
    if isinstance(value, dict):
        lines = [
            f"{pad}{json.dumps(key, ensure_ascii=False)}: {to_json(value[key], depth + 1)}"
            for key in sorted(value)
        ]
        return "{\n" + ",\n".join(lines) + "\n" + " " * depth + "}"
    inner = ",\n".join(pad + to_json(item, depth + 1) for item in value)
    return "[\n" + inner + "\n" + " " * depth + "]"
