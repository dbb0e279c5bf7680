"""Sections of what the run was told and what it read: options, rules, libraries, inputs."""

from collections.abc import Iterable, Mapping
from typing import Any

from pipelines.report.figures import short, size, whole
from pipelines.report.markup import Markup, joined, tag
from pipelines.report.tables import folded, pairs, table, told
from shards.manifest import InputEntry, Manifest

_MOST_FILES = 50


def settings(manifest: Manifest, report: Mapping[str, Any]) -> Markup:
    """Return the section about options, tokenizer and libraries."""
    tokenizer = manifest.tokenizer
    special = ", ".join(f"{role} {number}" for role, number in sorted(tokenizer.special.items()))
    plain = {name: value for name, value in manifest.options.items() if name != "quality"}
    return told(
        "Everything that decides the bytes of the dataset; models are named by SHA-256.",
        pairs([(f"--{name.replace('_', '-')}", _value(plain[name])) for name in sorted(plain)]),
        *_rules(report["rules"]),
        tag("h3", "Tokenizer"),
        pairs(
            [
                ("file", f"{tokenizer.name} ({tokenizer.spec})"),
                ("SHA-256", tokenizer.sha256),
                (
                    "vocabulary",
                    f"{whole(tokenizer.pieces)} pieces, padded to "
                    f"{whole(tokenizer.vocabulary_size)}, {tokenizer.dtype}",
                ),
                ("special tokens", special),
            ]
        ),
        tag("h3", "Libraries"),
        pairs(sorted(manifest.libraries.items())),
    )


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return "; ".join(f"{name} {_value(value[name])}" for name in sorted(value))
    if isinstance(value, list):
        return ", ".join(map(_value, value)) or "(none)"
    if isinstance(value, str) and value != value.strip():
        return f'"{value}"'
    return str(value) if value != "" else "(none)"


def _rules(rules: Mapping[str, Any]) -> list[Markup]:
    rows = [
        (
            "every other language" if language == "*" else language,
            rule["reason"],
            rule["metric"],
            f"{rule['comparison']} {short(rule['bound'])}",
        )
        for language, each in sorted(rules.items())
        for rule in each
    ]
    if not rows:
        return []
    title = f"Quality rules: {len(rows)}"
    return [folded(title, table(("language", "reason", "metric", "drops"), rows, words=3))]


def inputs(manifest: Manifest) -> Markup:
    """Return the section about the files that were read."""
    found = manifest.generations[-1].inputs
    by_source: dict[str, list[InputEntry]] = {}
    for each in found:
        by_source.setdefault(each.source, []).append(each)
    rows = [
        (source, whole(len(files)), size(sum(each.bytes for each in files)))
        for source, files in sorted(by_source.items())
    ]
    shown = min(len(found), _MOST_FILES)
    return joined(
        table(("source", "files", "bytes"), rows),
        folded(f"Files: {shown} of {whole(len(found))}", _files(found[:shown])),
    )


def _files(found: Iterable[InputEntry]) -> Markup:
    return table(
        ("source", "file", "bytes"),
        [(each.source, each.path, whole(each.bytes)) for each in found],
        words=2,
    )
