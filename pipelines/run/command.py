"""The command of a corpus: flags in, exit code out."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from pipelines.corpus.flags import parse
from pipelines.corpus.options import Options
from pipelines.corpus.part import is_share
from pipelines.corpus.recipe import Recipe, load_recipe
from pipelines.engine.flags import beam_flags
from pipelines.engine.imports import keep_pandas_out
from shards.command import exit_code, log_plainly
from shards.errors import UserError
from shards.shown import print_lines


def main(module: str, argv: Sequence[str]) -> int:
    """Run the corpus of a module from its command line and return the exit code."""

    def run() -> None:
        recipe = load_recipe(module)
        options, words = parse(recipe.options, argv, program=module, about=recipe.about)
        flags = beam_flags(words)
        options = completed(options, recipe)
        if options.plan and (options.part or options.grows):
            odd = "--part" if options.part else "--append, --every-tokens and --watch"
            raise UserError(f"--plan estimates whole runs: leave {odd} out")
        if options.part and options.grows:
            raise UserError(
                "--part is for a dataset that is made at once: leave it out, or leave --append, "
                "--every-tokens and --watch out"
            )
        # What runs take a second to load, --help takes none.
        from pipelines.run.output import check_output  # noqa: PLC0415 - see above

        check_output(options, recipe)
        if options.plan:
            from pipelines.planning.run import plan  # noqa: PLC0415 - see above

            print_lines(plan(module, options).split("\n"))
            return
        if options.watch:
            from pipelines.run.watch import watch  # noqa: PLC0415 - see above

            watch(module, options, flags=flags)
            return
        if options.grows:
            from pipelines.run.append import append  # noqa: PLC0415 - see above

            append(module, options, flags=flags)
            return
        from pipelines.run.build import build, map_part  # noqa: PLC0415 - see above

        (map_part if is_share(options.part) else build)(module, options, flags=flags)

    keep_pandas_out()
    log_plainly()
    return exit_code(module, run, stopped="the same command goes on from here")


def completed(options: Options, recipe: Recipe) -> Options:
    """Return the options with input, tokenizer and output filled in.

    Raises:
        UserError: There is no input, or an input without a tokenizer.
    """
    if not options.input and recipe.sample is None:
        raise UserError(
            f"--input is missing: name the files of {recipe.name}, a folder, a glob or a URL. "
            "(python -m pipelines.wudao runs on a built-in sample.)"
        )
    if options.input and not options.tokenizer:
        raise UserError(
            "--tokenizer is missing: give sentencepiece:FILE.model, tiktoken:NAME or "
            "hf:tokenizer.json. To train one on this text: python -m pipelines.train_tokenizer "
            f"--input {options.input[0]} --vocab-size 50000 --output tokenizer.model"
        )
    output = Path("build") / recipe.name if options.output == Path() else options.output
    return replace(
        options,
        input=options.input or (str(recipe.sample),),
        tokenizer=options.tokenizer or recipe.sample_tokenizer,
        output=output.absolute(),
    )
