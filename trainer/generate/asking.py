"""What is asked of a model that writes: the flags of `trainer.generate`."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from shards.command import Parser, add_flags
from shards.errors import UserError
from shards.flags import local_path, option, options_of, positive
from trainer.decode.decoding import Decoding
from trainer.decode.prompt_file import read_prompts
from trainer.foreign_flags import FOREIGN_FLAGS
from trainer.opening import Opening


@dataclass(frozen=True, kw_only=True)
class Asking:
    """What is asked of a model, and how the answers are printed."""

    prompt: tuple[str, ...] = option(
        (),
        "A prompt, as the words after the model; may be repeated.",
        metavar="TEXT",
        action="append",
    )
    prompts: Path | None = option(
        None,
        "A file of prompts: one a line, or .jsonl with objects that have a prompt.",
        metavar="FILE",
        type=local_path,
    )
    samples: int = option(1, "Texts of each prompt.", metavar="N", type=positive)
    batch_size: int = option(8, "Texts that are written at once.", metavar="N", type=positive)
    json: bool = option(
        False, "Print JSON lines, with the tokens of every blank.", action="store_true"
    )


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What a command line asks for."""

    path: Path
    """Of the model."""
    texts: tuple[str, ...]
    """Prompts; none: they are read from the standard input."""
    asking: Asking
    decoding: Decoding
    opening: Opening


def parse_asked(argv: Sequence[str]) -> Asked:
    """Return what a command line asks for.

    Raises:
        UserError: it is not understood, or the file of prompts cannot be read.
    """
    parser = Parser(
        prog="python -m trainer.generate",
        usage="%(prog)s MODEL [PROMPT ...] [FLAG ...]",
        description="Fills the blanks of prompts, or goes on with texts.\n"
        "Without prompts they are read from the standard input, one a line.",
        argument_default=argparse.SUPPRESS,
        old=FOREIGN_FLAGS,
    )
    parser.add_argument(
        "model_path", type=local_path, metavar="MODEL", help="a run, a checkpoint, a published one"
    )
    parser.add_argument("texts", nargs="*", metavar="PROMPT", help="with [MASK], [sMASK], [gMASK]")
    add_flags(parser, Asking, group="prompts and answers")
    add_flags(parser, Decoding, group="how tokens are chosen")
    add_flags(parser, Opening, group="how the model is opened")
    given = vars(parser.parse_intermixed_args(argv))
    asking = Asking(**options_of(Asking, given))
    decoding = Decoding(**options_of(Decoding, given))
    texts = [*given.get("texts", []), *asking.prompt]
    if asking.prompts is not None:
        texts += read_prompts(asking.prompts)
    if asking.samples > 1 and not decoding.draws:
        raise UserError(
            f"--samples {asking.samples}: they would all be the same, as the most probable text is "
            "taken. Give --temperature, --top-k or --top-p."
        )
    return Asked(
        path=given["model_path"],
        texts=tuple(texts),
        asking=asking,
        decoding=decoding,
        opening=Opening(**options_of(Opening, given)),
    )
