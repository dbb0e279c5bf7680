"""The command of a corpus: parses flags and returns an exit code."""

import shlex
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path

from pipelines.corpus.options import Options
from pipelines.corpus.part import is_share
from pipelines.corpus.spec import CORPORA, CorpusSpec, load_spec
from pipelines.execute.imports import block_pandas_import
from shards.commands.command import log_plainly
from shards.commands.flags import flag_of
from shards.commands.output import print_lines
from shards.commands.table import called
from shards.console import run_module
from shards.errors import UserError
from shards.manifest import Manifest


def main(module: str, argv: Sequence[str]) -> int:
    """Run the corpus of a module from its command line and return the exit code."""
    return run_module(module, argv)


def corpus_command(module: str, _words: Sequence[str] = ()) -> type[Options]:
    """Return the command of the corpus in a module: its options class with a method `run`.

    Raises:
        UserError: The module cannot be imported, or does not contain a corpus.
    """
    spec = load_spec(module)

    def run(options: Options) -> None:
        block_pandas_import()
        log_plainly()
        # Workers know the corpus's options class by its name, but not the class defined below.
        values = {field.name: getattr(options, field.name) for field in fields(options)}
        run_corpus(module, checked(spec.options(**values), spec))

    return type("CorpusCommand", (spec.options,), {"__doc__": spec.about, "run": run})


def run_corpus(module: str, options: Options) -> Manifest | None:
    """Make, extend or verify a dataset, estimate a run, watch the inputs, or process a part.

    Args:
        module: The module that holds the corpus as CORPUS.
        options: Options as `checked` returns them.

    Returns:
        The manifest; None for estimates, watches and parts, and for --append if there is neither a
        dataset nor a file.

    Raises:
        UserError: The run is not possible; the message says why and what to do.
    """
    # Each branch imports only the modules it needs: imports take a second, and --help needs none.
    if options.plan:
        from pipelines.job.estimate import estimate_lines, estimate_run  # noqa: PLC0415 - see above

        print_lines(estimate_lines(estimate_run(module, options), options))
    elif options.watch:
        from pipelines.job.watch import watch  # noqa: PLC0415 - see above

        watch(module, options)
    elif is_share(options.part):
        from pipelines.job.build import process_part  # noqa: PLC0415 - see above

        process_part(module, options)
    elif options.append:
        from pipelines.job.append import append  # noqa: PLC0415 - see above

        return append(module, options)
    else:
        from pipelines.job.build import build  # noqa: PLC0415 - see above

        return build(module, options)
    return None


def checked(options: Options, spec: CorpusSpec) -> Options:
    """Return the completed options, after checking that they are compatible.

    Raises:
        UserError: As for `completed`; or options contradict each other, or the output overlaps an
            input.
    """
    options = completed(options, spec)
    if options.plan and (options.part or options.grows):
        odd = "--part" if options.part else "--append and --watch"
        raise UserError(f"--plan estimates a whole run: leave {odd} out")
    if options.part and options.grows:
        raise UserError(
            "--part does not work with --append and --watch: leave it out, or leave them out"
        )
    from pipelines.job.output import check_output  # noqa: PLC0415 - see run_corpus

    check_output(options, spec)
    return options


def _same_text(options: Options, spec: CorpusSpec) -> str:
    """Return the flags that make a different command read the same texts."""
    name = spec.name if spec.name in CORPORA else spec.documents.__module__
    words = ["--input", *options.input, "--corpus", name]
    for flag in ("text_field", "format"):
        value = getattr(options, flag, "")
        if value != getattr(spec.options, flag, ""):
            words += [flag_of(flag), value]
    return shlex.join(words)


def completed(options: Options, spec: CorpusSpec) -> Options:
    """Return the options with input, tokenizer and output filled in.

    Raises:
        UserError: There is no input, or there is an input but no tokenizer.
    """
    if not options.input and spec.sample is None:
        raise UserError(
            f"--input is missing: name the files of {spec.name}, a folder, a glob or a URL. "
            f"({called('wudao')} runs on a bundled sample.)"
        )
    if options.input and not options.tokenizer:
        raise UserError(
            "--tokenizer is missing: give sentencepiece:FILE.model, tiktoken:NAME or "
            f"hf:tokenizer.json. To train one on this text: {called('train-tokenizer')} "
            f"{_same_text(options, spec)} --vocab-size 50000 --output tokenizer.model"
        )
    output = Path("build") / spec.name if options.output == Path() else options.output
    return replace(
        options,
        input=options.input or (str(spec.sample),),
        tokenizer=options.tokenizer or spec.sample_tokenizer,
        output=output.absolute(),
    )
