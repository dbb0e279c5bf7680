"""The options of a run, each defined once with type, default, meaning and the bytes it affects.

An option affects the bytes of segments, or only those of the dataset that is made from the
segments, or no bytes but how the work is done. The first two kinds are *semantic*: the manifest
records them, and a dataset is never continued with different values. The third kind is
*operational*.
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
from pipelines.execute.flags import ON_COMMAND_LINE, beam_flags, refuse_unknown
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
"""The largest share of a source's documents that can be held out for validation."""

GROUPS = (
    OWN := "options of this corpus",
    IN := "input",
    OUT := "output",
    LANGUAGES := "languages",
    FILTERS := "quality and filters",
    DUPLICATES := "duplicates",
    SHARDS := "tokens, validation and shards",
    RUNNING := "execution",
    GROWING := "appending",
)
"""The titles of the groups of flags in `--help`, in order."""

SEGMENTS, DATASET, NOTHING = "segments", "dataset", "nothing"


def option(
    default: Any,
    help: str = "",
    *,
    affects: str = NOTHING,
    omit_default: bool = False,
    group: str = "",
    **argument: Any,
) -> Any:
    """Return a dataclass field that becomes the flag of its name.

    Args:
        default: The default value.
        help: One or two sentences for `--help`, with the unit; "" means the text below the field.
        affects: The bytes that the option affects: SEGMENTS, DATASET or NOTHING.
        omit_default: Whether the manifest leaves the option out if it has its default, so that
            datasets that are older than the option can still be continued.
        group: The title above the option in `--help`, as in `shards.commands.flags.option`.
        argument: Further arguments of argparse's add_argument.
    """
    metadata = {"affects": affects, "omit_default": omit_default}
    return flags.option(default, help, group=group, metadata=metadata, **argument)


def count_or_auto(text: str) -> int | str:
    """Parse a whole number of at least 0, or "auto"."""
    if text == "auto":
        return text
    try:
        return count(text)
    except argparse.ArgumentTypeError as error:
        raise argparse.ArgumentTypeError(f"{error}, nor auto") from error


@dataclass(frozen=True, kw_only=True)
class Options(Command):
    """The options that all corpora share; the options of a corpus inherit them.

    `pipelines.job.command` makes the command of a corpus from its options.
    """

    USAGE = "%(prog)s --input PATH --tokenizer SPEC [--output DIR] [FLAG ...]"
    EPILOG = (
        "Flags of Apache Beam (--runner, --flink_master, ...) are passed to Beam;\n"
        "words after -- are passed to the runner unchanged."
    )
    GROUPS = GROUPS
    FOREIGN = FOREIGN_FLAGS
    LEADING_FLAG = "--input"

    input: tuple[str, ...] = option((), metavar="PATH", action="extend", nargs="+", group=IN)
    """Folders, files or globs to read, as paths or URLs (s3://bucket/folder), or
    hf:OWNER/NAME[@REVISION][:CONFIG[:SPLIT]]. Together they are one source. For several sources,
    name each: --input a=PATH --input b=PATH. NAME=CORPUS:PATH reads a source as pipelines.CORPUS
    does; CORPUS may be your own module (docs/own.md)."""
    output: AnyPath = option(Path(), metavar="DIR", type=any_path, group=OUT)
    """Folder of the dataset, as a path or URL (s3://bucket/folder). Default: build/<corpus>."""
    tokenizer: str = option("", metavar="SPEC", affects=SEGMENTS, group=SHARDS)
    """Tokenizer: sentencepiece:FILE.model, tiktoken:NAME, tiktoken:FILE, hf:tokenizer.json,
    hf:vocab.txt, or hf:OWNER/NAME for one on the hub. Default without --input: the tokenizer of the
    bundled sample."""
    eos: str = option("", metavar="TOKEN", affects=SEGMENTS, omit_default=True)
    """Token that ends each document. Default: the tokenizer's end-of-text token
    (docs/pipelines.md)."""
    languages: tuple[str, ...] = option(
        ("zh", "en"), metavar="LIST", type=names, affects=SEGMENTS, group=LANGUAGES
    )
    """Languages to keep, by the labels of the language model (zh, en, ja, ... for lid.176), or all.
    --language-threshold applies to each."""
    language_threshold: float = option(0.5, metavar="SCORE", type=fraction, affects=SEGMENTS)
    """Minimum score of the identified language (cc_net uses 0.5, FineWeb 0.65)."""
    lid_model: str = option("", metavar="FILE", affects=SEGMENTS)
    """fastText model that identifies languages: lid.176.bin, lid.176.ftz, or another with its own
    labels (docs/own.md). Default: the installed lid.176.ftz."""
    lid_chars: int | str = option(0, metavar="N|auto", type=count_or_auto, affects=SEGMENTS)
    """Identify the language from the first N characters of a document only, which is faster. 0 (the
    default) uses the whole text; auto uses 256 characters, and 1024 where the result is
    uncertain."""
    quality: tuple[str, ...] = option(
        ("none",), metavar="LIST", type=names, affects=SEGMENTS, group=FILTERS
    )
    """Quality rules: PROFILE, or LANGUAGE=PROFILE+PROFILE for each language, as in
    zh=fineweb2-zh,en=gopher-repetition+gopher+c4. docs/quality.md lists the profiles; MODULE:NAME
    is your own (docs/own.md)."""
    threshold: tuple[str, ...] = option((), metavar="LIST", type=names, affects=SEGMENTS)
    """Override thresholds: PROFILE.NAME=NUMBER, as in gopher.min_words=30, or
    zh:PROFILE.NAME=NUMBER for one language; for models, classifier.min_hq=0.3 or
    perplexity.max_value=800."""
    classifier: tuple[str, ...] = option(
        (), metavar="SPEC", action="append", affects=SEGMENTS, omit_default=True
    )
    """Drop texts by the score of a fastText classifier: FILE:LABEL>=SCORE, as in
    quality.bin:hq>=0.4, or <=SCORE; LANGUAGE=FILE:LABEL>=SCORE for one language. Without a bound,
    texts are only measured. Repeat the flag for several classifiers (docs/quality.md)."""
    perplexity: tuple[str, ...] = option(
        (), metavar="SPEC", action="append", affects=SEGMENTS, omit_default=True
    )
    """Drop texts by their perplexity under a KenLM model, as cc_net does:
    LANGUAGE=KENLM+SENTENCEPIECE<=NUMBER, or <=cutoff.csv:head or <=cutoff.csv:middle. Without a
    bound, texts are only measured. Repeat the flag for several models (docs/quality.md)."""
    clean: tuple[str, ...] = option(
        (), metavar="LIST", type=names, affects=SEGMENTS, omit_default=True
    )
    """How much to clean. none: nothing. whitespace: replace control characters and terminal escapes
    with white space. repair: also fix mojibake, and entities such as &amp; in texts without code.
    NAME=LEVEL sets the level of one source, as in repair,code=none. Default: repair, but whitespace
    for the Pile's Github and StackExchange."""
    pii: str = option("keep", choices=("keep", "mask"), affects=SEGMENTS)
    """mask: replace e-mail and IP addresses, phone numbers and Chinese ID numbers."""
    decontaminate: tuple[str, ...] = option((), metavar="FILE", action="append", affects=SEGMENTS)
    """File of benchmark texts: plain text with one text per line, or JSON, JSON lines or Parquet
    with texts in any field (question, choices, answer). Documents that share 13 consecutive words
    with one of them are dropped. Repeat the flag for several files."""
    url_blocklist: tuple[str, ...] = option((), metavar="FILE", action="append", affects=SEGMENTS)
    """File of domains and URL prefixes, one per line. Documents whose url column matches one are
    dropped. Repeat the flag for several files."""
    filter: tuple[str, ...] = option(
        (), metavar="SPEC", action="append", affects=SEGMENTS, omit_default=True
    )
    """Your own filter: [AFTER=]MODULE:NAME[?OPTION=VALUE&...]. It runs after the step AFTER: read,
    clean, langid, quality (the default), decontaminate or mask. Repeat the flag for several filters
    (docs/own.md)."""
    keep_dropped: bool = option(False, action="store_true", affects=SEGMENTS, group=OUT)
    """Write the dropped documents as Parquet, with text, reason and metrics."""
    sample: float = option(1.0, metavar="F", type=fraction, affects=SEGMENTS, group=IN)
    """Share of the records to use. A smaller sample is contained in every larger one."""
    seed: int = option(0, metavar="N", type=count, affects=SEGMENTS, group=SHARDS)
    """Seed of the hashes that order documents, choose the sample and choose validation
    documents."""
    split_bytes: int = option(
        128 << 20, metavar="N", type=positive, affects=SEGMENTS, group=RUNNING
    )
    """Input bytes per work item. Smaller items keep more workers busy."""
    dedup: str = option(
        "exact", choices=("none", "exact", "minhash"), affects=SEGMENTS, group=DUPLICATES
    )
    """exact: drop repeated documents, ignoring white space. minhash: also drop near-duplicates
    (docs/dedup.md)."""
    minhash_threshold: float = option(0.7, metavar="S", type=fraction, affects=DATASET)
    """Minimum similarity (Jaccard index of 5-grams) at which a document is a near-duplicate. 0: one
    common band is enough."""
    validation: float = option(0.001, metavar="F", type=fraction, affects=DATASET, group=SHARDS)
    """Share of each source's documents to hold out for validation: at least 32 documents, at most 5
    %; 0: none."""
    shards: int = option(0, metavar="N", type=count, affects=DATASET)
    """Number of shards per source. Default: the power of two that keeps shards within
    --shard-tokens."""
    shard_tokens: int = option(100_000_000, metavar="N", type=positive, affects=DATASET)
    """Maximum number of tokens per shard, unless --shards is given."""
    workers: int = option(0, metavar="N", type=positive, group=RUNNING)
    """Number of worker processes on this machine. Default: one per core, fewer for small inputs."""
    part: tuple[str, ...] = option((), metavar="I/N", type=parse_part)
    """Process only this share of the splits, as in 2/4 or 2/4,3/4. merge: make the dataset once all
    parts are processed (docs/large.md)."""
    max_reject_rate: float = option(0.01, metavar="F", type=fraction, group=IN)
    """Fail if more than this share of the records, or of their bytes, cannot be read."""
    bad_utf8: str = option(
        REJECT, choices=(REJECT, REPLACE), affects=SEGMENTS, omit_default=True, group=IN
    )
    """How to treat bytes that are not UTF-8, and lone surrogates in JSON: reject the record, or
    replace them with U+FFFD."""
    nul: str = option(REJECT, choices=(REJECT, REMOVE), affects=SEGMENTS, omit_default=True)
    """How to treat NUL characters: reject the record, or remove them."""
    max_record_bytes: int = option(
        0, metavar="N", type=positive, affects=SEGMENTS, omit_default=True
    )
    """Maximum size of a record; longer ones are rejected as too-long. Default: 32 MiB. A worker
    needs several times as much memory."""
    plan: bool = option(False, action="store_true", group=RUNNING)
    """Estimate documents, tokens, time and disk from a timed sample of the input, then stop."""
    skip_unreadable: bool = option(False, action="store_true", group=IN)
    """Continue without files and folders that cannot be read, and use the readable part of a
    truncated archive or an unclosed array. The log counts them, and report.json lists them.
    --append and --watch always skip files that cannot be opened."""
    keep_segments: bool = option(False, action="store_true", group=RUNNING)
    """Keep the intermediate files in <output>/.work."""
    overwrite: bool = option(
        False,
        "Replace a dataset that was made with other options. Its old files stay until "
        f"{called('shards prune')} deletes them.",
        action="store_true",
        group=OUT,
    )
    append: bool = option(False, action="store_true", group=GROWING)
    """Add files that the dataset does not contain yet, as a new generation. Existing files are not
    rewritten (docs/growing.md)."""
    rehash: bool = option(False, action="store_true")
    """With --append: compare known files by content, not only by size and modification time."""
    allow_changed: bool = option(False, action="store_true")
    """With --append: continue if files have disappeared, and add the new records of changed
    files."""
    watch: bool = option(False, action="store_true")
    """Keep running, and append files as they arrive (docs/growing.md)."""
    every: float = option(3600.0, metavar="TIME", type=seconds)
    """With --watch: maximum time between commits."""
    settle: float = option(10.0, metavar="TIME", type=seconds)
    """With --watch: add a file once it has not changed for this time."""
    until: datetime | None = option(None, metavar="TIME", type=moment)
    """With --watch: when to stop, as in 2026-12-31T06:00 or 8h. Files that have arrived by then are
    committed."""

    beam_args: tuple[str, ...] = option(
        (), action="append", flag=REST, group=OWN
    )  # the options of a corpus follow
    """Flags for Beam; without any, processes of this machine do the work."""

    @classmethod
    def parse(cls, words: Sequence[str], program: str, *, place: str = ON_COMMAND_LINE) -> Self:
        """Return the options of a command line; unknown flags are passed to Beam.

        Args:
            words: The command line.
            program: The name of the command.
            place: Where to write flags that only the runner knows, for messages.

        Raises:
            UserError: A value is invalid, or a flag is unknown to the corpus and to Beam.
        """
        end = words.index("--") if "--" in words else len(words)
        parser = cls.parser(program)
        refuse_unknown(parser, words[:end], place=place)
        known, rest = parser.parse_known_args(words[:end])
        beam_args = tuple(beam_flags([*rest, *words[end:]]))
        return cls(**options_of(cls, vars(known)), beam_args=beam_args)

    def __post_init__(self) -> None:
        if self.validation > MAX_VALIDATION:
            raise UserError(
                f"--validation {self.validation:g} holds out more than 5 % of the documents; "
                f"give at most {MAX_VALIDATION:g}"
            )
        if not self.languages:
            raise UserError("--languages is empty; give languages, for example zh,en, or all")
        parse_levels(self.clean)
        if (self.rehash or self.allow_changed) and not self.append:
            raise UserError("--rehash and --allow-changed need --append: add it, or leave them out")
        if self.grows and self.overwrite:
            raise UserError(
                "--overwrite replaces a dataset, --append and --watch add to it: leave one out"
            )

    @property
    def grows(self) -> bool:
        """Whether the run adds generations to the dataset."""
        return self.append or self.watch


def semantic_options(
    options: Options, fingerprints: Mapping[str, Any], *, affects: Sequence[str]
) -> dict[str, Any]:
    """Return the options that affect bytes, by name, as values for JSON.

    Args:
        options: The options.
        fingerprints: Values that replace those of options: if an option names files, the
            fingerprints of the files.
        affects: The kinds of options to return: SEGMENTS, DATASET or both.
    """
    chosen = {
        field.name: getattr(options, field.name)
        for field in fields(options)
        if field.metadata["affects"] in affects
        and not (
            field.metadata.get("omit_default") and getattr(options, field.name) == field.default
        )
    }
    plain = {
        name: sorted(value) if isinstance(value, tuple) else value for name, value in chosen.items()
    }
    return {**plain, **{name: fact for name, fact in fingerprints.items() if name in plain}}
