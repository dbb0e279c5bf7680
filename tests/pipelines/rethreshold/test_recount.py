from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.quality.selection import parse_selection
from pipelines.rethreshold.recount import BYTES, DOCUMENTS, NOW, THEN, TOKENS, recount
from pipelines.run.origin import Thresholds
from shards import DamageError
from shards.storage.files import FileEntry, crc32c

SPECS = ("gopher+glm", "zh=glm")


def thresholds(
    *overrides: str, score: float = 0.5, languages: tuple[str, ...] = ("en", "zh")
) -> Thresholds:
    return Thresholds(
        languages=frozenset(languages), score=score, selection=parse_selection(SPECS, overrides)
    )


FIRST = thresholds()
OTHER = thresholds("gopher.min_words=20", "zh:glm.min_chars=150", score=0.7)
FATES = (None, "duplicate", "near-duplicate", "contaminated")
PLAIN = {
    "gopher.word_length": 5.0,
    "gopher.stop_words": 4.0,
    "gopher.alphabetic_words": 1.0,
    "gopher.hashes": 0.0,
    "gopher.ellipses": 0.0,
    "gopher.bullet_lines": 0.0,
    "gopher.ellipsis_lines": 0.0,
}


def reason_of(row: dict[str, Any], chosen: Thresholds) -> str | None:
    """The reason of the first step that a row breaks, found one row at a time."""
    if row["language"] not in (chosen.languages or ()):
        return "language"
    if np.float32(row["score"]) < np.float32(chosen.score):
        return "language-score"
    for rule in chosen.rules(row["language"]):
        value = row[rule.metric]
        if value is None:
            continue
        bound = np.float32(rule.bound)
        if value < bound if rule.comparison == "<" else value > bound:
            return rule.reason
    return None


def rows(seed: int, num: int) -> list[dict[str, Any]]:
    rng = np.random.default_rng(seed)
    metrics = {rule.metric for name in ("en", "zh") for rule in FIRST.rules(name)}
    made = []
    for _ in range(num):
        language = str(rng.choice(["en", "zh", "fr"]))
        row: dict[str, Any] = dict.fromkeys(metrics)
        if language == "en":
            row |= PLAIN | {"gopher.words": float(rng.integers(1, 200))}
        if language != "fr":
            row["glm.chars"] = float(rng.integers(1, 300))
        row |= {"language": language, "score": float(np.float32(rng.random()))}
        row |= {"bytes": int(rng.integers(1, 1000)), "tokens": int(rng.integers(1, 300))}
        row["reason"] = reason_of(row, FIRST)
        if row["reason"] is None:
            row["reason"] = FATES[rng.integers(len(FATES))]
        else:
            row["tokens"] = None
        made.append(row)
    unjudged = {name: None for name in made[0]} | {"bytes": 3, "reason": "too-short"}
    return [*made, unjudged, unjudged, unjudged | {"reason": "bad-json"}]


def entry_of(path: Path) -> tuple[Path, FileEntry]:
    return path, FileEntry(bytes=path.stat().st_size, crc32c=crc32c(path))


def write(path: Path, made: list[dict[str, Any]]) -> Path:
    floats = {name: pa.float32() for name in made[0] if "." in name}
    types = {"score": pa.float32(), "language": pa.large_string(), "reason": pa.large_string()}
    types |= {"bytes": pa.int64(), "tokens": pa.int32(), **floats}
    columns = {
        name: pa.array([None if row[name] is None else row[name] for row in made], type_)
        for name, type_ in types.items()
    }
    pq.write_table(pa.table(columns), path)
    return path


@pytest.mark.parametrize("other", [FIRST, OTHER, thresholds(languages=("zh",))])
def test_counts_are_those_of_looking_at_each_row(tmp_path: Path, other: Thresholds) -> None:
    parts = [rows(seed, 400) for seed in range(3)]
    paths = [write(tmp_path / f"s-{n}.parquet", part) for n, part in enumerate(parts)]
    source = recount(map(entry_of, paths), FIRST, other)
    every = [row for part in parts for row in part]
    assert source.unjudged == {"too-short": 6, "bad-json": 3}
    judged = [row for row in every if row["language"]]
    assert source.languages.keys() == {"en", "zh", "fr"}
    fates = {None: 0, "duplicate": 1, "near-duplicate": 1, "contaminated": 2}
    for language, counts in source.languages.items():
        own = [row for row in judged if row["language"] == language]
        for when, chosen in ((NOW, FIRST), (THEN, other)):
            steps = ["language", "language-score", *(r.reason for r in chosen.rules(language))]
            reasons = [reason_of(row, chosen) for row in own]
            assert counts.dropped[when].tolist() == [reasons.count(step) for step in steps]
            for fate in range(4):
                kept = [
                    row
                    for row, reason in zip(own, reasons, strict=True)
                    if reason is None and fates.get(row["reason"], 3) == fate
                ]
                passed = counts.passed[when, fate]
                assert passed[DOCUMENTS] == len(kept)
                assert passed[BYTES] == sum(row["bytes"] for row in kept)
                assert passed[TOKENS] == sum(row["tokens"] or 0 for row in kept)
            assert (counts.broken[when] >= counts.dropped[when]).all()


def test_a_table_that_contradicts_itself_is_damage(tmp_path: Path) -> None:
    made = rows(1, 50)
    victim = next(row for row in made if row["reason"] is None)
    victim["glm.chars"] = 1.0
    path = write(tmp_path / "s-0.parquet", made)
    with pytest.raises(DamageError, match=r"s-0\.parquet: the metrics of a text in '(zh|en)'"):
        recount([entry_of(path)], FIRST, FIRST)
    table = pq.read_table(path).drop_columns(["glm.chars"])
    pq.write_table(table, path)
    with pytest.raises(DamageError, match=r"has no column glm\.chars"):
        recount([entry_of(path)], FIRST, FIRST)
