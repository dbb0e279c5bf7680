"""Shows the prompts of a task: `python -m trainer.tasks TASK FILE --tokenizer SPEC`."""

from collections.abc import Iterator
from dataclasses import MISSING, dataclass
from pathlib import Path

from shards.commands.command import Command
from shards.commands.flags import WORD, count, local_path, option, options_of
from shards.commands.output import print_lines, quantity
from trainer.tasks.catalogue import TASKS, find_task
from trainer.tasks.rows import Example
from trainer.tasks.task import SPLITS, VALIDATION, PromptOptions
from trainer.tokenizer import PromptFormat, TextTokenizer


@dataclass(frozen=True, kw_only=True)
class ShowTask(Command, PromptOptions):
    """Show the prompts that a task makes from a file; no model is needed.

    To check your data, or a task that you have written, before you train on it.
    """

    STOPPED = "nothing was changed"

    task: str = option(
        MISSING,
        f"Task: one of {', '.join(TASKS)}; or FILE.json with your own.",
        flag=WORD,
        metavar="TASK",
    )
    data: Path = option(MISSING, flag=WORD, type=local_path, metavar="PATH")
    """File, or folder with a file per split."""
    tokenizer: str = option(MISSING, metavar="SPEC", required=True)
    """Tokenizer, as for the pipelines, such as tiktoken:gpt2."""
    split: str = option(VALIDATION, choices=SPLITS)
    """Split to read in a folder."""
    show: int = option(3, type=count, metavar="N")
    """Number of questions to show."""
    causal: bool = option(False)
    """Show the prompts for a causal model."""

    def run(self) -> None:
        """Print the numbers of questions and rows, and the first questions."""
        tokenizer = TextTokenizer(self.tokenizer)
        examples = find_task(self.task).examples(
            self.data,
            split=self.split,
            tokenizer=tokenizer,
            options=PromptOptions(**options_of(PromptOptions, vars(self))),
            prompt_format=PromptFormat(causal=self.causal),
        )
        rows = [len(row) for example in examples for row in example.rows]
        cut = sum(example.num_cut for example in examples)
        summary = (
            f"{quantity(len(examples), 'question')} of {quantity(len(rows), 'row')}; the longest "
            f"has {max(rows):,} tokens, {cut:,} were cut"
        )
        shown = (line for one in examples[: self.show] for line in _lines(one, tokenizer))
        print_lines("\n".join([summary, *shown]).split("\n"))


def _lines(example: Example, tokenizer: TextTokenizer) -> Iterator[str]:
    """Yield the lines for a question: the prompt of each row, and the tokens to predict."""
    label = "" if example.label is None else f"  label {example.label}"
    yield ""
    yield f"{example.guid}{label}"
    before = ""
    for row in example.rows:
        seen = tokenizer.decode(row.prompt)
        if seen != before:
            yield f"  {seen}"
        before = seen
        if len(row.answer):
            yield f"    → {tokenizer.decode(row.answer.tolist())}"
    if example.words:
        words = (repr(tokenizer.decode([word])) for word in example.words)
        yield f"    → {' or '.join(words)}"
