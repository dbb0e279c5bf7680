"""The commands by name: `corpusmill wudao` is `python -m pipelines.wudao`."""

import sys
from typing import NamedTuple

PROGRAM = "corpusmill"

CORPUS = "pipelines.job.command:corpus_command"
"""The function that makes the command of a corpus."""

CORPUS_GROUP = "corpusmill.corpora"
"""The group of entry points by which packages add corpora. Each has the short name of a corpus,
which is also the name of its command, and the module that defines the corpus."""


class Entry(NamedTuple):
    """A command of the table."""

    name: str
    """The words after `corpusmill`."""
    module: str
    """The argument of `python -m`."""
    about: str
    """The purpose of the command in a few words."""
    made_by: str
    """MODULE:NAME of a `Command`, or of a function that takes `module` and words and returns a
    `Command`."""

    @property
    def program(self) -> str:
        """The words that start the command with Python."""
        word = "" if "." in self.module else f" {self.name.split()[-1]}"
        return f"python -m {self.module}{word}"


MAKE, KEEP, TRAIN, MORE = "make a dataset", "inspect and maintain a dataset", "train", "more"


def _corpus(name: str, about: str) -> Entry:
    return Entry(name, f"pipelines.{name.replace('-', '_')}", about, CORPUS)


def _command(name: str, options: str, about: str, *, package: str = "pipelines") -> Entry:
    """Return the entry of a command whose class is in its module or its folder."""
    module = f"{package}.{name.replace('-', '_')}"
    return Entry(name, module, about, f"{module}{options}")


def _of_trainer(name: str, options: str, about: str) -> Entry:
    return _command(name, options, about, package="trainer")


def _on_datasets(name: str, options: str, about: str) -> Entry:
    home = options if ":" in options else f"dataset_commands:{options}"
    return Entry(f"shards {name}", "shards", about, f"shards.{home}")


GROUPS = {
    MAKE: (
        _command("look", ".command:Look", "inspect files and suggest a command"),
        _corpus("text", "any texts: JSON, JSON lines, Parquet, plain lines"),
        _corpus("wudao", "WuDaoCorpora; without flags, the bundled sample"),
        _corpus("pile", "the Pile"),
        _corpus("fineweb", "FineWeb, FineWeb-Edu, FineWeb-2"),
        _corpus("cc-news", "CC-News"),
        _corpus("openwebtext", "OpenWebText"),
        _corpus("zhihu", "questions and answers of Zhihu"),
        _corpus("zhidao", "questions and answers of Baidu Zhidao"),
        _corpus("baike", "articles of Baidu Baike"),
        _command("cp-wudao", ":CopyWudao", "copy a small corpus out of WuDao"),
        _command("train-tokenizer", ":TrainTokenizer", "train a tokenizer"),
        _command("train-classifier", ":TrainClassifier", "train a quality classifier"),
        Entry(
            "compile",
            "pipelines.steps.compile",
            "compile all kernels in advance",
            "pipelines.steps.compile:Compile",
        ),
    ),
    KEEP: (
        _on_datasets("inspect", "Inspect", "show a dataset, or one of its documents"),
        _on_datasets("view", "view.command:View", "search and browse documents in a browser"),
        _on_datasets("verify", "Verify", "read every file and check it against the manifest"),
        _on_datasets("stats", "Stats", "show statistics of every source"),
        _on_datasets("remove", "Remove", "remove documents from training"),
        _on_datasets("compact", "Compact", "merge all generations into one"),
        _on_datasets("prune", "Prune", "delete files that the manifest does not list"),
        _on_datasets("place", "Place", "copy the files that one node needs to its disk"),
        _on_datasets(
            "export", "exports.command:ExportFiles", "export to llm.c, datatrove, OLMo or NumPy"
        ),
        _on_datasets("megatron", "Megatron", "print the flags for Megatron-LM"),
        _on_datasets("trace", "Trace", "show the documents of a step, or the steps of a document"),
        _command("report", ".command:DrawReport", "draw the report of a dataset again"),
        _command("rethreshold", ":Rethreshold", "count what other thresholds would keep"),
    ),
    TRAIN: (
        _of_trainer("train", ":Train", "train GLM on datasets"),
        _of_trainer("finetune", ".command:Finetune", "fine-tune a model on a task"),
        _of_trainer("evaluate", ".command:Evaluate", "measure held-out loss, and run benchmarks"),
        _of_trainer("tasks", ".command:ShowTask", "show the prompts that a task makes from a file"),
        _of_trainer("generate", ".command:Generate", "generate text with a model"),
        _of_trainer("export", ".command:Export", "export a model for other programs"),
        _of_trainer("plot", ":Plot", "plot the curves of training runs"),
    ),
    MORE: (
        Entry(
            "completion",
            "shards",
            "print the completion script of bash, zsh, fish or tcsh",
            "shards.commands.completion:PrintCompletion",
        ),
    ),
}

COMMANDS = {command.name: command for group in GROUPS.values() for command in group}


def called_program(program: str) -> str:
    """Return `corpusmill wudao` if the program was started with that name, else `program`."""
    started = sys.argv[0]
    return started if started.startswith(f"{PROGRAM} ") else program


def called(name: str) -> str:
    """Return the words that start a command, with `corpusmill` or `python -m` as in this process.

    Args:
        name: The name of a command of the table, or of a corpus that the table lacks.
    """
    if sys.argv[0].startswith(f"{PROGRAM} "):
        return f"{PROGRAM} {name}"
    return COMMANDS.get(name, _corpus(name, "")).program
