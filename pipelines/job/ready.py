"""Checks everything that a run needs except its input, before the run lists the input.

Listing a bucket or a folder of 10⁵ files takes long, whereas an unreachable engine, a read-only
output or a missing model is found at once.
"""

import tempfile
from collections.abc import Iterator
from glob import has_magic
from pathlib import Path

from pipelines.commit import existing
from pipelines.corpus.options import Options
from pipelines.execute.runner import check_engine
from pipelines.read.local_files import absence
from pipelines.steps.rule_files import log_remarks
from pipelines.steps.scorer import parse_spec
from pipelines.tokenizers.tokenizer import check_spec
from shards.errors import UserError
from shards.manifest import NAME, read_manifest
from shards.storage.address import is_url
from shards.storage.disk import disk_errors_explained
from shards.storage.files import size_if_there

_PROBE_BYTES = 4096
_LID = "https://fasttext.cc/docs/en/language-identification.html"


def check_ready(options: Options, *, corpus: str) -> None:
    """Check that a run can start, as far as this is possible without its input.

    Args:
        options: Complete options.
        corpus: The name of the corpus whose command this is.

    Raises:
        UserError: The engine does not answer; the output is not a folder, cannot be written, or has
            a dataset of a different corpus; or the file of a model or list is missing.
    """
    check_engine(options.beam_args)
    _check_output(options, corpus)
    check_spec(options.tokenizer)
    for name, what in _named_files(options):
        if not (is_url(name) or has_magic(name)) and (why := absence(Path(name))):
            raise UserError(f"{what}: {name} {why}")
    log_remarks((*options.decontaminate, *options.url_blocklist))


def _check_output(options: Options, corpus: str) -> None:
    output, there = options.output, size_if_there(options.output / NAME) >= 0
    if there and not options.overwrite:
        manifest = read_manifest(output)
        existing.check_corpus(manifest, corpus, output=output, advice=existing.REPLACE)
    if isinstance(output, Path) and not there:  # a complete dataset is only read
        _check_writable(output)


def _check_writable(output: Path) -> None:
    """Check that files can be created in the output; no test file remains."""
    with disk_errors_explained(output):
        above = next(folder for folder in (output, *output.parents) if _is_there(folder))
        if not above.is_dir():
            raise UserError(
                f"the output {output} cannot be created, because {above} is a file. Give another "
                "--output, or move the file away"
            )
        with tempfile.TemporaryFile(dir=above, buffering=0) as file:
            file.write(bytes(_PROBE_BYTES))


def _is_there(path: Path) -> bool:
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def _named_files(options: Options) -> Iterator[tuple[str, str]]:
    """Yield the files of models and lists, each with a description of its flag."""
    if options.lid_model:
        yield options.lid_model, f"--lid-model names fastText's lid.176.bin or .ftz, from {_LID}"
    for name in options.decontaminate:
        yield name, "--decontaminate names files with texts of benchmarks"
    for name in options.url_blocklist:
        yield name, "--url-blocklist names a list of domains"
    for text in options.classifier:
        name, colon, _ = parse_spec(text).source.rpartition(":")
        if colon:  # if there is no colon, loading the model reports the error
            yield name, "--classifier names a fastText classifier, FILE:LABEL>=SCORE"
    for text in options.perplexity:
        spec = parse_spec(text)
        files = (*spec.source.split("+"), spec.bound.rpartition(":")[0])
        what = "--perplexity names files, LANG=KENLM+SENTENCEPIECE<=NUMBER or <=CUTOFFS.csv:PART"
        yield from ((name, what) for name in files if name)
