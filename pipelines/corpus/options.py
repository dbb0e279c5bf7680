"""The options of a run, each written once: type, default, meaning, and what it decides.

An option decides the bytes of segments, or only those of the dataset made of them, or just how the
work is done. The first two kinds are *semantic*: the manifest records them, and a dataset is never
continued with others. The third is *operational*.
"""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from pathlib import Path
from typing import Any, Self

from pipelines.corpus.clean_level import parse_levels
from pipelines.corpus.foreign_flags import FOREIGN_FLAGS
from pipelines.corpus.part import parse_part
from pipelines.execute.flags import BEHIND, beam_flags, refuse_unknown
from pipelines.read.input_format import REJECT, REMOVE, REPLACE
from shards.commands import flags
from shards.commands.command import Command
from shards.commands.flags import (
    REST,
    count,
    fraction,
    moment,
    names,
    options_of,
    positive,
    seconds,
)
from shards.commands.table import called
from shards.errors import UserError
from shards.storage.remote import AnyPath, any_path

MAX_VALIDATION = 0.05
"""The largest share of a source's documents that validation takes."""

GROUPS = (
    OWN := "of this corpus alone",
    IN := "input",
    OUT := "output",
    LANGUAGES := "languages",
    FILTERS := "quality and filters",
    DUPLICATES := "duplicates",
    SHARDS := "tokens, validation and shards",
    RUNNING := "machines and running",
    GROWING := "datasets that grow",
)
"""Titles in `--help`, in their order there."""

SEGMENTS, DATASET, NOTHING = "segments", "dataset", "nothing"


def option(
    default: Any,
    help: str = "",
    *,
    decides: str = NOTHING,
    newer: bool = False,
    group: str = "",
    **argument: Any,
) -> Any:
    """Return a dataclass field that becomes the flag of its name.

    Args:
        default: Its default.
        help: One or two sentences for `--help`, with the unit; "": the text below the field.
        decides: SEGMENTS, DATASET or NOTHING.
        newer: Whether there are datasets from before there was this option: it is recorded only
            where it is given, so that they remain what the same command makes.
        group: As of `shards.commands.flags.option`: the title in `--help`.
        argument: Further arguments of argparse's add_argument.
    """
    metadata = {"decides": decides, "newer": newer}
    return flags.option(default, help, group=group, metadata=metadata, **argument)


def count_or_auto(text: str) -> int | str:
    """Return a whole number from 0 on, or "auto"."""
    if text == "auto":
        return text
    try:
        return count(text)
    except argparse.ArgumentTypeError as error:
        raise argparse.ArgumentTypeError(f"{error}, nor auto") from error


@dataclass(frozen=True, kw_only=True)
class Options(Command):
    """The options of every corpus; a corpus adds its own by inheriting.

    `pipelines.job.command` makes the command of a corpus of them, which can run.
    """

    USAGE = "%(prog)s --input PATH --tokenizer SPEC [--output DIR] [FLAG ...]"
    EPILOG = (
        "Flags of Apache Beam (--runner, --flink_master, ...) go to Beam;\n"
        "what follows -- goes to the runner word for word."
    )
    GROUPS = GROUPS
    OLD = FOREIGN_FLAGS
    FIRST = "--input"

    input: tuple[str, ...] = option((), metavar="PATH", action="extend", nargs="+", group=IN)
    """The input: folders, files or globs, as paths or URLs (s3://bucket/folder), or
    hf:OWNER/NAME[@REVISION][:CONFIG[:SPLIT]]; together they are one source. NAME=PATH names a
    source, and there may be several: --input a=PATH --input b=PATH; NAME=CORPUS:PATH reads one as
    pipelines.CORPUS would; CORPUS may be your own module (docs/own.md)."""
    output: AnyPath = option(Path(), metavar="DIR", type=any_path, group=OUT)
    """Folder of the dataset, a path or URL (s3://bucket/folder). Default: build/<corpus>."""
    tokenizer: str = option("", metavar="SPEC", decides=SEGMENTS, group=SHARDS)
    """sentencepiece:FILE.model, tiktoken:NAME or tiktoken:FILE, hf:tokenizer.json, hf:vocab.txt or
    hf:OWNER/NAME of the hub. Without --input: that of the built-in sample."""
    eos: str = option("", metavar="TOKEN", decides=SEGMENTS, newer=True)
    """Token of the tokenizer that ends each document. Default: the tokenizer's own end of text, as
    docs/pipelines.md says for each kind."""
    languages: tuple[str, ...] = option(
        ("zh", "en"), metavar="LIST", type=names, decides=SEGMENTS, group=LANGUAGES
    )
    """Languages to keep, as the model names them (zh, en, ja, ... by lid.176), or all;
    --language-threshold applies to each."""
    language_threshold: float = option(0.5, metavar="SCORE", type=fraction, decides=SEGMENTS)
    """Lowest score of the language (cc_net uses 0.5, FineWeb 0.65)."""
    lid_model: str = option("", metavar="FILE", decides=SEGMENTS)
    """fastText model: lid.176.bin or .ftz, or any other with its labels (docs/own.md). Default: the
    installed lid.176.ftz."""
    lid_chars: int | str = option(0, metavar="N|auto", type=count_or_auto, decides=SEGMENTS)
    """Identify the language by the first N characters of a document, which is faster. 0, the
    default: by the whole text; auto: by 256 characters, and by 1024 where these leave doubt."""
    quality: tuple[str, ...] = option(
        ("none",), metavar="LIST", type=names, decides=SEGMENTS, group=FILTERS
    )
    """Quality rules: PROFILE, or LANGUAGE=PROFILE+PROFILE for each language, as in
    zh=fineweb2-zh,en=gopher-repetition+gopher+c4 (docs/quality.md lists them); your own:
    MODULE:NAME (docs/own.md)."""
    threshold: tuple[str, ...] = option((), metavar="LIST", type=names, decides=SEGMENTS)
    """Override bounds of a profile: PROFILE.NAME=NUMBER, as in gopher.min_words=30; for one
    language zh:PROFILE.NAME=NUMBER; of a model classifier.min_hq=0.3, perplexity.max_value=800."""
    classifier: tuple[str, ...] = option(
        (), metavar="SPEC", action="append", decides=SEGMENTS, newer=True
    )
    """Drop texts by a fastText classifier: FILE:LABEL>=SCORE, as in quality.bin:hq>=0.4, or <=;
    LANGUAGE=FILE:LABEL>=SCORE for one language; without a bound texts are only measured. Repeat the
    flag for several (docs/quality.md)."""
    perplexity: tuple[str, ...] = option(
        (), metavar="SPEC", action="append", decides=SEGMENTS, newer=True
    )
    """Drop texts by their perplexity under a KenLM model, as cc_net:
    LANGUAGE=KENLM+SENTENCEPIECE<=NUMBER, or <=cutoff.csv:head or :middle; without a bound texts are
    only measured. Repeat the flag for several (docs/quality.md)."""
    clean: tuple[str, ...] = option((), metavar="LIST", type=names, decides=SEGMENTS, newer=True)
    """How much to clean. none: nothing; whitespace: put white space instead of control characters
    and terminal escapes; repair: also mojibake, and entities such as &amp; in texts without code.
    NAME=LEVEL for one input, as in repair,code=none. Default: repair; of the Pile's Github and
    StackExchange whitespace."""
    pii: str = option("keep", choices=("keep", "mask"), decides=SEGMENTS)
    """mask: replace e-mail and IP addresses, phone numbers and Chinese ID numbers."""
    decontaminate: tuple[str, ...] = option((), metavar="FILE", action="append", decides=SEGMENTS)
    """Texts of benchmarks: plain text with one per line, or JSON, JSON lines or Parquet with texts
    in any field (question, choices, answer). Drop documents that share 13 words in a row with one.
    Repeat the flag for several files."""
    url_blocklist: tuple[str, ...] = option((), metavar="FILE", action="append", decides=SEGMENTS)
    """Domains and URL prefixes, one a line: drop documents whose column url matches one. Repeat the
    flag for several files."""
    filter: tuple[str, ...] = option(
        (), metavar="SPEC", action="append", decides=SEGMENTS, newer=True
    )
    """Your own filter, [AFTER=]MODULE:NAME[?OPTION=VALUE&...], after the step AFTER (read,
    clean, langid, quality, decontaminate, mask; quality if none is named). Repeat the flag for
    several (docs/own.md)."""
    keep_dropped: bool = option(False, action="store_true", decides=SEGMENTS, group=OUT)
    """Write dropped documents as Parquet: text, reason, metrics."""
    sample: float = option(1.0, metavar="F", type=fraction, decides=SEGMENTS, group=IN)
    """Share of the records to take; a smaller sample is contained in every larger one."""
    seed: int = option(0, metavar="N", type=count, decides=SEGMENTS, group=SHARDS)
    """Seed of the three hashes: order, sample, validation."""
    split_bytes: int = option(
        128 << 20, metavar="N", type=positive, decides=SEGMENTS, group=RUNNING
    )
    """Bytes of input per map task; smaller ones keep more workers busy."""
    dedup: str = option(
        "exact", choices=("none", "exact", "minhash"), decides=SEGMENTS, group=DUPLICATES
    )
    """exact: leave out documents whose text, white space aside, occurs elsewhere in the run;
    minhash: also documents similar to another one (docs/dedup.md)."""
    minhash_threshold: float = option(0.7, metavar="S", type=fraction, decides=DATASET)
    """Lowest similarity (Jaccard, of 5-grams) at which a near-duplicate is left out; 0: one band in
    common is enough."""
    validation: float = option(0.001, metavar="F", type=fraction, decides=DATASET, group=SHARDS)
    """Share of each source's documents to hold out: at least 32 of them, at most 5 %; 0: none."""
    shards: int = option(0, metavar="N", type=count, decides=DATASET)
    """Shards per source. Default: the power of two that keeps shards within --shard-tokens."""
    shard_tokens: int = option(100_000_000, metavar="N", type=positive, decides=DATASET)
    """Most tokens of a shard, unless --shards is given."""
    workers: int = option(0, metavar="N", type=positive, group=RUNNING)
    """Worker processes of the DirectRunner. Default: one per core, fewer for small inputs."""
    part: tuple[str, ...] = option((), metavar="I/N", type=parse_part)
    """Map only this share of the splits, as in 2/4 or 2/4,3/4; merge: make the dataset once all
    parts are mapped (docs/large.md)."""
    max_reject_rate: float = option(0.01, metavar="F", type=fraction, group=IN)
    """Fail if more than this share of the records, or of their bytes, cannot be read."""
    bad_utf8: str = option(
        REJECT, choices=(REJECT, REPLACE), decides=SEGMENTS, newer=True, group=IN
    )
    """replace: bytes that are no UTF-8, and lone surrogates in JSON, become U+FFFD."""
    nul: str = option(REJECT, choices=(REJECT, REMOVE), decides=SEGMENTS, newer=True)
    """remove: take NUL characters out of records."""
    max_record_bytes: int = option(0, metavar="N", type=positive, decides=SEGMENTS, newer=True)
    """A longer record is rejected as too-long. Default: 32 MiB; a worker needs several times as
    much memory."""
    plan: bool = option(False, action="store_true", group=RUNNING)
    """Estimate the run from a timed sample of the input and stop: documents, tokens, time, disk."""
    skip_unreadable: bool = option(False, action="store_true", group=IN)
    """Continue without files and folders that match and cannot be read, and with the readable part
    of an archive that is cut off or an array that is not closed; the log counts them, report.json
    lists them. --append and --watch always skip files that cannot be opened."""
    keep_segments: bool = option(False, action="store_true", group=RUNNING)
    """Keep the intermediate files in <output>/.work."""
    overwrite: bool = option(
        False,
        "Replace a dataset made with other options: write new files next to the old ones, then the "
        f"manifest ({called('shards prune')} removes the old files).",
        action="store_true",
        group=OUT,
    )
    append: bool = option(False, action="store_true", group=GROWING)
    """Add the files that the dataset has not seen, as a new generation; nothing is rewritten
    (docs/growing.md)."""
    rehash: bool = option(False, action="store_true")
    """With --append: compare the content of all files seen before, not only size and time."""
    allow_changed: bool = option(False, action="store_true")
    """With --append: continue without files that are gone, and add the new records of changed
    files."""
    watch: bool = option(False, action="store_true")
    """Keep running and add files as they arrive, as --append does (docs/growing.md)."""
    every: float = option(3600.0, metavar="TIME", type=seconds)
    """With --watch: maximum time between commits of generations."""
    settle: float = option(10.0, metavar="TIME", type=seconds)
    """With --watch: add a file once it has not changed for this time."""
    until: datetime | None = option(None, metavar="TIME", type=moment)
    """With --watch: stop then, as in 2026-12-31T06:00 or 8h; what has arrived is committed."""

    engine: tuple[str, ...] = option(
        (), action="append", flag=REST, group=OWN
    )  # the options of a corpus follow
    """Flags for Beam; none: processes of this machine."""

    @classmethod
    def parse(cls, words: Sequence[str], program: str, *, behind: str = BEHIND) -> Self:
        """Return the options of a command line; words that are none of its flags are for Beam.

        Args:
            words: The command line.
            program: Its name.
            behind: Where flags go that only the runner knows.

        Raises:
            UserError: A value is invalid, or neither the corpus nor Beam has a flag.
        """
        end = words.index("--") if "--" in words else len(words)
        parser = cls.parser(program)
        refuse_unknown(parser, words[:end], behind=behind)
        known, rest = parser.parse_known_args(words[:end])
        engine = tuple(beam_flags([*rest, *words[end:]]))
        return cls(**options_of(cls, vars(known)), engine=engine)

    def __post_init__(self) -> None:
        if self.validation > MAX_VALIDATION:
            raise UserError(
                f"--validation {self.validation:g} holds out more than 5 % of the documents; "
                f"give at most {MAX_VALIDATION:g}"
            )
        if not self.languages:
            raise UserError("--languages names no language; give for example zh,en, or all")
        parse_levels(self.clean)
        if (self.rehash or self.allow_changed) and not self.append:
            raise UserError("--rehash and --allow-changed say how to --append: give that as well")
        if self.grows and self.overwrite:
            raise UserError("a dataset is either replaced (--overwrite) or grows: leave one out")

    @property
    def grows(self) -> bool:
        """Whether the run adds generations to the dataset."""
        return self.append or self.watch


def semantic(
    options: Options, fingerprints: Mapping[str, Any], *, decides: Sequence[str]
) -> dict[str, Any]:
    """Return the options that decide bytes, by field, JSON-able.

    Args:
        options: The options.
        fingerprints: Values that replace options: for paths, the fingerprints of their files.
        decides: Which levels to take, of SEGMENTS and DATASET.
    """
    chosen = {
        field.name: getattr(options, field.name)
        for field in fields(options)
        if field.metadata["decides"] in decides
        and not (field.metadata.get("newer") and getattr(options, field.name) == field.default)
    }
    plain = {
        name: sorted(value) if isinstance(value, tuple) else value for name, value in chosen.items()
    }
    return {**plain, **{name: fact for name, fact in fingerprints.items() if name in plain}}
