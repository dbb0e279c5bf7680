"""The command of a corpus: flags in, exit code out; what calls from Python do as well."""

import shlex
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path

from pipelines.corpus.options import Options
from pipelines.corpus.part import is_share
from pipelines.corpus.recipe import CORPORA, Recipe, load_recipe
from pipelines.execute.imports import keep_pandas_out
from shards.command import log_plainly, run_command
from shards.errors import UserError
from shards.flags import flag_of
from shards.manifest import Manifest
from shards.program import called
from shards.shown import print_lines


def main(module: str, argv: Sequence[str]) -> int:
    """Run the corpus of a module from its command line and return the exit code."""
    return run_command(lambda: corpus_command(module), argv, program=f"python -m {module}")


def corpus_command(module: str, _words: Sequence[str] = ()) -> type[Options]:
    """Return the command of the corpus that a module holds: its options, which can run.

    Raises:
        UserError: The module cannot be imported, or holds none.
    """
    recipe = load_recipe(module)

    def run(options: Options) -> None:
        # Workers know the class of the recipe by its name, but not the one below.
        values = {field.name: getattr(options, field.name) for field in fields(options)}
        run_corpus(module, recipe.options(**values))

    return type("CorpusCommand", (recipe.options,), {"__doc__": recipe.about, "run": run})


def run_corpus(module: str, options: Options) -> None:
    """Do what a command line asks of a corpus.

    Args:
        module: The module that holds the corpus's RECIPE.
        options: As they were given.

    Raises:
        UserError: It cannot be done; the message says why and what to do.
    """
    keep_pandas_out()
    log_plainly()
    options = checked(options, load_recipe(module))
    if options.plan:
        from pipelines.job.estimate import plan, plan_lines  # noqa: PLC0415 - see make

        print_lines(plan_lines(plan(module, options), options))
    elif options.watch:
        from pipelines.job.watch import watch  # noqa: PLC0415 - see make

        watch(module, options)
    elif is_share(options.part):
        from pipelines.job.build import map_part  # noqa: PLC0415 - see make

        map_part(module, options)
    else:
        make(module, options)


def make(module: str, options: Options) -> Manifest | None:
    """Make the dataset, add to it, or find it complete.

    Args:
        module: The module that holds the corpus's RECIPE.
        options: As `checked` returns them.

    Returns:
        The manifest; None if a dataset is to grow that does not exist, by files that do not yet.

    Raises:
        UserError: It cannot be made; the message says why and what to do.
    """
    # What runs take a second to load, --help takes none.
    if options.grows:
        from pipelines.job.append import append  # noqa: PLC0415 - see above

        return append(module, options)
    from pipelines.job.build import build  # noqa: PLC0415 - see above

    return build(module, options)


def checked(options: Options, recipe: Recipe) -> Options:
    """Return the options completed, after checking that they go together and where they write.

    Raises:
        UserError: As `completed`; or they contradict each other, or the output lies in an input.
    """
    options = completed(options, recipe)
    if options.plan and (options.part or options.grows):
        odd = "--part" if options.part else "--append and --watch"
        raise UserError(f"--plan estimates whole runs: leave {odd} out")
    if options.part and options.grows:
        raise UserError(
            "--part is for a dataset that is made at once: leave it out, or leave --append "
            "and --watch out"
        )
    from pipelines.job.output import check_output  # noqa: PLC0415 - see make

    check_output(options, recipe)
    return options


def _same_text(options: Options, recipe: Recipe) -> str:
    """Return the flags by which another command reads the text that these options name."""
    name = recipe.name if recipe.name in CORPORA else recipe.documents.__module__
    words = ["--input", *options.input, "--corpus", name]
    for flag in ("text_field", "format"):
        value = getattr(options, flag, "")
        if value != getattr(recipe.options, flag, ""):
            words += [flag_of(flag), value]
    return shlex.join(words)


def completed(options: Options, recipe: Recipe) -> Options:
    """Return the options with input, tokenizer and output filled in.

    Raises:
        UserError: There is no input, or an input without a tokenizer.
    """
    if not options.input and recipe.sample is None:
        raise UserError(
            f"--input is missing: name the files of {recipe.name}, a folder, a glob or a URL. "
            f"({called('wudao')} runs on a built-in sample.)"
        )
    if options.input and not options.tokenizer:
        raise UserError(
            "--tokenizer is missing: give sentencepiece:FILE.model, tiktoken:NAME or "
            f"hf:tokenizer.json. To train one on this text: {called('train-tokenizer')} "
            f"{_same_text(options, recipe)} --vocab-size 50000 --output tokenizer.model"
        )
    output = Path("build") / recipe.name if options.output == Path() else options.output
    return replace(
        options,
        input=options.input or (str(recipe.sample),),
        tokenizer=options.tokenizer or recipe.sample_tokenizer,
        output=output.absolute(),
    )
