"""What a task makes of a file: `python -m trainer.tasks TASK FILE --tokenizer SPEC`.

For a look at one's data, or at a task of one's own, before a model is asked.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from shards.command import Parser, add_flags, print_text
from shards.flags import count, local_path, options_of
from trainer.tasks.catalogue import TASKS, find_task
from trainer.tasks.question import Question
from trainer.tasks.rows import Row
from trainer.tasks.task import SPLITS, VALIDATION, Asking
from trainer.tokenizer import TextTokenizer


def main(argv: Sequence[str]) -> int:
    """Print what the command line asks for and return the exit code."""
    return print_text("trainer.tasks", lambda: _run(argv), stopped="nothing was changed")


def _run(argv: Sequence[str]) -> str:
    options = _parser().parse_args(argv)
    tokenizer = TextTokenizer(options.tokenizer)
    asking = Asking(**options_of(Asking, vars(options)))
    path: Path = options.data
    questions = find_task(options.task).questions(
        path, split=options.split, tokenizer=tokenizer, asking=asking, is_causal=options.causal
    )
    rows = [len(row) for question in questions for row in question.rows]
    cut = sum(question.num_shortened for question in questions)
    summary = (
        f"{len(questions):,} questions of {len(rows):,} rows; the longest has {max(rows):,} "
        f"tokens, {cut:,} were cut"
    )
    shown = (line for question in questions[: options.show] for line in _lines(question, tokenizer))
    return "\n".join([summary, *shown])


def _parser() -> Parser:
    parser = Parser(
        prog="python -m trainer.tasks",
        description="Shows what a task makes of a file, without a model.",
        argument_default=argparse.SUPPRESS,
    )
    known = f"one of {', '.join(TASKS)}; or FILE.json of one's own"
    parser.add_argument("task", metavar="TASK", help=known)
    parser.add_argument(
        "data", type=local_path, metavar="PATH", help="a file, or a folder with the split's"
    )
    parser.add_argument(
        "--tokenizer", required=True, metavar="SPEC", help="as of the pipelines: tiktoken:gpt2"
    )
    parser.add_argument(
        "--split", choices=SPLITS, default=VALIDATION, help=f"Default: {VALIDATION}."
    )
    parser.add_argument(
        "--show", type=count, default=3, metavar="N", help="questions to show. Default: 3."
    )
    parser.add_argument(
        "--causal", action="store_true", default=False, help="as a causal model is asked"
    )
    add_flags(parser, Asking)
    return parser


def _lines(question: Question, tokenizer: TextTokenizer) -> Iterator[str]:
    """Yield a question: what is seen of each row, and what is to be predicted there."""
    label = "" if question.label is None else f"  label {question.label}"
    yield f"\n{question.guid}{label}"
    before = ""
    for row in question.rows:
        seen = tokenizer.decode(row.tokens[: _num_seen(row)].tolist())
        if seen != before:
            yield f"  {seen}"
        before = seen
        if row.loss_mask.any():
            yield f"    → {tokenizer.decode(row.targets[row.loss_mask].tolist())}"
    if question.words:
        words = (repr(tokenizer.decode([word])) for word in question.words)
        yield f"    → {' or '.join(words)}"


def _num_seen(row: Row) -> int:
    """Return how many tokens there are before the first that is to be predicted."""
    return int(row.loss_mask.argmax()) + 1 if row.loss_mask.any() else len(row)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
