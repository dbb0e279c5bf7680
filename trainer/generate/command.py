"""Generates text with a trained model, which fills the blanks of prompts or continues texts.

The command, and the same from Python:

    python -m trainer.generate build/run "Bread is [MASK] in the oven." --top-k 40

    trained = open_model("build/run")
    texts = ["Bread is [MASK] in the oven."]
    how = trained.source.prompt_format
    for found in generate_texts(trained.model, trained.tokenizer, texts, prompt_format=how):
        print(found.text)
"""

import sys
from collections.abc import Sequence
from dataclasses import MISSING, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from shards.commands.command import Command, log_plainly
from shards.commands.flags import WORD, local_path, option, options_of, positive
from shards.commands.output import json_text, print_line, print_lines
from shards.errors import UserError
from trainer.foreign_flags import FOREIGN_FLAGS
from trainer.generate.decoding import Decoding
from trainer.load_options import OPENED, LoadOptions

if TYPE_CHECKING:
    from trainer.generate.text_generator import GeneratedText


@dataclass(frozen=True, kw_only=True)
class Generate(Command, Decoding, LoadOptions):
    """Fill the blanks of prompts, or continue texts."""

    STOPPED = "the text is not whole"
    USAGE = "%(prog)s MODEL [PROMPT ...] [FLAG ...]"
    GROUPS = ("prompts and answers", "decoding", OPENED)
    FOREIGN = FOREIGN_FLAGS

    path: Path = option(
        MISSING, flag=WORD, group="prompts and answers", metavar="MODEL", type=local_path
    )
    """Run, one of its checkpoints, or a published checkpoint."""
    texts: tuple[str, ...] = option((), flag=WORD, metavar="PROMPT", nargs="*")
    """Prompts, which may contain [MASK], [sMASK] or [gMASK]."""
    prompt: tuple[str, ...] = option((), metavar="TEXT", action="append")
    """Prompt, in addition to those after the model; may be repeated."""
    prompts: Path | None = option(None, metavar="FILE", type=local_path)
    """File of prompts: one per line, or .jsonl with objects that have a prompt."""
    samples: int = option(1, metavar="N", type=positive)
    """Number of texts per prompt."""
    batch_size: int = option(8, metavar="N", type=positive)
    """Number of texts to generate at once."""
    json: bool = option(False)
    """Print JSON lines, with the tokens of every blank."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.samples > 1 and not self.draws:
            raise UserError(
                f"--samples {self.samples}: they would all be the same, as the most probable text "
                "is taken. Give --temperature, --top-k or --top-p."
            )
        if not self.texts and not self.prompt and self.prompts is None:
            raise UserError(
                "there is no prompt: write one after the model, or give --prompts FILE (--prompts "
                "/dev/stdin reads the standard input)."
            )

    @classmethod
    def parse(cls, words: Sequence[str], program: str) -> "Generate":
        """Parse a command line, in which flags may come between prompts."""
        parsed = cls.parser(program).parse_intermixed_args(words)
        return cls(**options_of(cls, vars(parsed)))

    def run(self) -> None:
        """Generate texts and print them."""
        log_plainly()
        from trainer.generate.prompt import make_prompt, read_prompts  # noqa: PLC0415  loads numpy

        given = [*self.texts, *self.prompt]
        if self.prompts is not None:
            given += read_prompts(self.prompts)
        from trainer.generate.text_generator import TextGenerator  # noqa: PLC0415  loads torch
        from trainer.import_weights.loaded_model import open_model  # noqa: PLC0415  as above

        trained = open_model(self.path, self)
        generator = TextGenerator(model=trained.model, tokenizer=trained.tokenizer, decoding=self)
        make = partial(
            make_prompt, tokenizer=trained.tokenizer, prompt_format=trained.source.prompt_format
        )
        ready = [make(text) for text in given for _ in range(self.samples)]
        for found in generator.generate(ready, batch_size=self.batch_size):
            self._print(found, is_only=len(ready) == 1)

    def _print(self, found: "GeneratedText", *, is_only: bool) -> None:
        if self.json:
            print_line(json_text(found.json(), stream=sys.stdout), flush=True)
        else:
            print_lines([*found.text.split("\n"), *([] if is_only else [""])])
            sys.stdout.flush()
