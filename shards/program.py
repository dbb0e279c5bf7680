"""The commands by name: `corpusmill wudao` is `python -m pipelines.wudao`, and says so of itself.

Messages and help name commands as `python -m` runs them. That command line is of no use to people
who have installed corpusmill with pipx or uv, where `python` is another one: so `called` puts the
names of this table in, once, where such a text leaves the program, if it was started by them.
"""

import os
import re
import sys
from itertools import pairwise
from typing import NamedTuple

PROGRAM = "corpusmill"

STARTED = "CORPUSMILL_STARTED"
"""The environment variable that the console script sets for all processes below it."""


class Command(NamedTuple):
    """A command."""

    name: str
    module: str
    about: str
    """What it does, in a few words."""


GROUPS = {
    "make a dataset": (
        Command("look", "pipelines.look", "what lies at a path, and which of these reads it"),
        Command("text", "pipelines.text", "any texts: JSON, JSON lines, parquet, plain lines"),
        Command("wudao", "pipelines.wudao", "WuDaoCorpora; without flags the built-in sample"),
        Command("pile", "pipelines.pile", "the Pile"),
        Command("fineweb", "pipelines.fineweb", "FineWeb, FineWeb-Edu, FineWeb-2"),
        Command("cc-news", "pipelines.cc_news", "CC-News"),
        Command("openwebtext", "pipelines.openwebtext", "OpenWebText"),
        Command("zhihu", "pipelines.zhihu", "questions and answers of Zhihu"),
        Command("zhidao", "pipelines.zhidao", "questions and answers of Baidu Zhidao"),
        Command("baike", "pipelines.baike", "articles of Baidu Baike"),
        Command("cp-wudao", "pipelines.cp_wudao", "a toy corpus out of WuDao"),
        Command("train-tokenizer", "pipelines.train_tokenizer", "a tokenizer of one's own"),
        Command("train-classifier", "pipelines.train_classifier", "a quality model of one's own"),
        Command("compile", "pipelines.map.compile", "compile the native loops now, once"),
    ),
    "look after a dataset": (
        Command("shards", "shards", "inspect, verify, place, trace, export, remove, compact …"),
        Command("report", "pipelines.report", "write the page of a dataset again"),
        Command("rethreshold", "pipelines.rethreshold", "what other thresholds would keep"),
        Command("replay", "pipelines.replay", "read rejected records again"),
    ),
    "train": (
        Command("train", "trainer.train", "train GLM on datasets"),
        Command("finetune", "trainer.finetune", "tune a model on a task"),
        Command("evaluate", "trainer.evaluate", "held-out loss, and tasks"),
        Command("tasks", "trainer.tasks", "what a task makes of a file"),
        Command("generate", "trainer.generate", "let a model write"),
        Command("export", "trainer.export", "a model as files that other programs read"),
        Command("plot", "trainer.plot", "draw the curves of runs"),
    ),
}

COMMANDS = {command.name: command for group in GROUPS.values() for command in group}

CORPUS_GROUP = "corpusmill.corpora"
"""Entry points of installed packages: the short name of a corpus, which is a command as well, and
the module that holds it."""

_NAMES = {command.module: command.name for command in COMMANDS.values()}
_PLACEHOLDER = {"pipelines.CORPUS": "CORPUS"}
"""Modules that only stand for others, in texts."""

_NAMED = re.compile(r"(?<!-m )(?<!--module )\b(?:pipelines|trainer)(?:\.\w+)+")
_AS_MODULE = re.compile(r"\bpython\s+-m\s+(\w+(?:\.\w+)*)")


def called(text: str) -> str:
    """Return a text of ours with its commands as they are called here."""
    return _by_name(text) if _is_started() else text


def called_help(text: str, *, by_name: bool = False) -> str:
    """Return a text of `--help` like `called`, with modules that it only names, too.

    Args:
        text: The text.
        by_name: However this process was started.
    """
    if not (by_name or _is_started()):
        return text
    return _NAMED.sub(lambda found: _known_name(found[0]), _by_name(text))


def called_program(program: str) -> str:
    """Return the name of a command, such as pipelines.wudao, as it is called here."""
    return _known_name(program) if _is_started() else program


def started_module() -> str:
    """Return what the command line gives to -m, which other short options may precede."""
    words = [*sys.orig_argv, ""]
    for word, following in pairwise(words):
        if found := re.fullmatch("-[bBdEhiIOPqsSuvVx]*m(.*)", word):
            return found[1] or following
    return ""


def _by_name(text: str) -> str:
    return _AS_MODULE.sub(lambda found: _name(found[1]), text)


def _name(module: str) -> str:
    known = _known_name(module)
    return f"{PROGRAM} run {module}" if known == module else known


def _known_name(module: str) -> str:
    name = {**_NAMES, **_PLACEHOLDER}.get(module)
    return module if name is None else f"{PROGRAM} {name}"


def _is_started() -> bool:
    return STARTED in os.environ
