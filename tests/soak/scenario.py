"""The scenario of a case: random inputs, and the options of the run."""

import os
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.soak.files import COMPRESSIONS, FileWriter, Row, endings
from tests.soak.records import CORPORA, SUBSETS
from tests.soak.texts import PLANTED, Texts

MODEL = Path(__file__).parents[2] / "pipelines" / "sample" / "sample.model"
_STEMS = (
    *("a", "part", "数据", "b c", "é", "it's", "50%", "x#y", "q?z", "[1]", "k=v", "-n", "c.."),
    *("@2", "a,b", "emoji😀", "tab\there", "UPPER", "a" * 120, "%41", "a;b", "$HOME", "~", "{x}"),
)
_FOLDERS = ("", "", "", "sub", "深い", "a b", "hid.den", "x=y", "[z]")


@dataclass(frozen=True)
class Input:
    """A file of an input, with the records in it."""

    source: str
    relative: str
    """The path relative to the input."""
    path: Path
    """The path on disk."""
    rows: tuple[Row, ...]


@dataclass
class Source:
    """An input of a run."""

    name: str
    corpus: str
    folder: Path
    """The path that --input gives."""
    writer: FileWriter
    given: dict[str, Path] = field(default_factory=dict)
    """The folders of files, by the start of their relative paths; some are links."""
    inputs: list[Input] = field(default_factory=list)
    unreadable: int = 0
    """The number of broken links and pipes, which --skip-unreadable leaves out."""


@dataclass
class Options:
    """The options of a run, and their values for the oracle."""

    values: dict[str, Any] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Any:
        return {**DEFAULTS, **self.values}[name]

    def flags(self) -> list[str]:
        """Return the options as flags."""
        words = []
        for name, value in self.values.items():
            if name in ("deny", "glm_chars", "blocked"):
                continue
            flag = "--" + name.replace("_", "-")
            words += [flag] if value is True else [flag, str(value)]
        if "deny" in self.values:
            words += ["--deny", ",".join(self.values["deny"])]
        if "glm_chars" in self.values:
            words += ["--quality", "glm", "--threshold", f"glm.min_chars={self['glm_chars']}"]
        return words


DEFAULTS: Mapping[str, Any] = {
    "languages": "zh,en",
    "language_threshold": 0.5,
    "dedup": "exact",
    "sample": 1.0,
    "seed": 0,
    "validation": 0.001,
    "shards": 0,
    "keep_dropped": False,
    "deny": (),
    "glm_chars": 0,
    "decontaminate": "",
    "blocked": (),
}


@dataclass
class Scenario:
    """The inputs and options of a case."""

    rng: random.Random
    folder: Path
    sources: list[Source] = field(default_factory=list)
    options: Options = field(default_factory=Options)

    @property
    def module(self) -> str:
        """The module of the first source's corpus."""
        return f"pipelines.{self.sources[0].corpus}"

    @property
    def inputs(self) -> list[Input]:
        return [file for source in self.sources for file in source.inputs]

    def command(self) -> list[str]:
        """Return the command line of a run, except --output and the flags of the engine."""
        words = []
        own = self.sources[0].corpus
        for source in self.sources:
            corpus = "" if source.corpus == own else f"{source.corpus}:"
            words += ["--input", f"{source.name}={corpus}{source.folder}"]
        return [*words, "--tokenizer", f"sentencepiece:{MODEL}", *self.options.flags()]

    def add_files(self, source: Source, number: int, *, records: int) -> list[Input]:
        """Write further files of a source."""
        added = []
        for _ in range(number):
            corpus = CORPORA[source.corpus]
            form = self.rng.choice(corpus.forms)
            packed = self.rng.choice(COMPRESSIONS) if form not in ("parquet", "arrow") else ""
            if source.corpus == "wudao":
                packed = ""
            if source.corpus == "pile" and packed in (".bz2", ".xz"):
                packed = ".gz"
            above = self.rng.choice([*source.given])
            relative = above + self._name(source, form) + packed
            if any(file.relative == relative for file in source.inputs):
                continue
            path = source.given[above] / relative.removeprefix(above)
            content = source.writer.file(form, self.rng.randint(1, records), packed)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.data)
            file = Input(source.name, relative, path, content.rows)
            added.append(file)
            source.inputs.append(file)
        return added

    def _name(self, source: Source, form: str) -> str:
        rng = self.rng
        folder = rng.choice(_FOLDERS)
        stem = rng.choice(_STEMS) + str(rng.randrange(100))
        if source.corpus == "wudao":
            stem = f"part-2021{rng.randrange(10**6):06}{rng.choice(('', 'a', ' b', '中'))}"
        if source.corpus == "pile":
            stem = f"{rng.randrange(98):02}"
            return f"{folder}/{stem}.jsonl".removeprefix("/")
        return f"{folder}/{stem}{rng.choice(endings(form))}".removeprefix("/")


def make_scenario(rng: random.Random, folder: Path, *, small: bool = False) -> Scenario:
    """Return random inputs and options.

    Args:
        rng: The source of all random decisions.
        folder: The folder for the inputs.
        small: Whether to write only a few files, of one or two sources.
    """
    scenario = Scenario(rng, folder)
    scenario.options = random_options(rng)
    damage = rng.choice((0.0, 0.0, 0.03, 0.15))
    names = rng.sample(("a", "b2", "web-1", "notes", "zh", "x.y", "a-b_c"), 3)
    corpora = rng.choices([*CORPORA], weights=(5, 2, 2, 2, 1), k=rng.choice((1, 1, 2, 2, 3)))
    if small:
        corpora = corpora[:2]
    texts = Texts(
        rng,
        dirty=rng.choice((0.0, 0.1, 0.3)),
        copies=rng.choice((0.0, 0.2, 0.2, 0.6)),
        disjoint="zhidao" not in corpora,  # its prompts contain the texts of other families
    )
    if corpora[0] == "pile" and rng.random() < 0.4:
        scenario.options.values["deny"] = tuple(rng.sample(SUBSETS, 1))
    if corpora[0] in ("text", "fineweb") and rng.random() < 0.3:
        scenario.options.values["min_chars"] = rng.choice((0, 5, 60))
    _choose_lists(scenario, texts, corpora)
    for name, corpus in zip(names, corpora, strict=False):
        own = scenario.options.values if corpus == corpora[0] else {}
        result: dict[str, object] = {key: own[key] for key in own if key in ("min_chars", "deny")}
        writer = FileWriter(rng, texts, CORPORA[corpus], damage, result)
        source = _source(rng, folder, name, corpus, writer)
        scenario.sources.append(source)
        sizes = (3, 20, 60) if small else (3, 20, 60, 150)
        files = rng.choice((1, 2, 3) if small else (1, 2, 3, 6))
        while not source.inputs:
            scenario.add_files(source, files, records=rng.choice(sizes))
    if rng.random() < 0.6:
        size = sum(file.path.stat().st_size for file in scenario.inputs)
        scenario.options.values["split_bytes"] = max(500, size // rng.choice((2, 8, 30)))
    return scenario


def _choose_lists(scenario: Scenario, texts: Texts, corpora: Sequence[str]) -> None:
    """Choose a benchmark, a blocklist, both or neither."""
    rng, values = scenario.rng, scenario.options.values
    if rng.random() < 0.2:
        texts.planted = 0.2
        benchmark = scenario.folder / "bench mark.txt"
        benchmark.write_text(f"{PLANTED}\n")
        values["decontaminate"] = benchmark
    if {*corpora} == {"fineweb"} and rng.random() < 0.5:
        blocked = [f"w{rng.randrange(60)}.example" for _ in range(20)]
        values["blocked"] = tuple(blocked)
        values["url_blocklist"] = scenario.folder / "blocked.txt"
        values["url_blocklist"].write_text("".join(f"{name}\n" for name in blocked))


def _source(rng: random.Random, folder: Path, name: str, corpus: str, writer: FileWriter) -> Source:
    """Return a source without files: a folder that may be behind a link and may contain links."""
    real = folder / rng.choice(("in", "入力", "in put", "in=1", "[in]")) / name
    real.mkdir(parents=True)
    given = real
    if rng.random() < 0.2:
        given = folder / f"link to {name}"
        given.symlink_to(real)
    source = Source(name, corpus, given, writer, {"": real})
    if rng.random() < 0.25:
        elsewhere = folder / "elsewhere" / name
        elsewhere.mkdir(parents=True)
        links = rng.sample(("linked", "also", "zz", "Z"), rng.choice((1, 1, 2, 3)))
        for link in links:
            (real / link).symlink_to(elsewhere)
        source.given[f"{min(links)}/"] = elsewhere
    if rng.random() < 0.1:
        (real / "loop").symlink_to(real)
    if rng.random() < 0.1:
        source.unreadable = rng.choice((1, 2))
        stems = {"wudao": ("part-x", "part-y"), "pile": ("98", "99")}.get(corpus, ("x", "y"))
        ending = {"wudao": ".json", "fineweb": ".parquet"}.get(corpus, ".jsonl")
        (real / f"{stems[0]}{ending}").symlink_to("nowhere")
        if source.unreadable > 1:
            os.mkfifo(real / f"{stems[1]}{ending}")
    return source


def random_options(rng: random.Random) -> Options:
    """Return random options that apply to any corpus."""
    values: dict[str, Any] = {}

    def perhaps(share: float, name: str, choices: Sequence[Any]) -> None:
        if rng.random() < share:
            values[name] = rng.choice(choices)

    values["languages"], values["language_threshold"] = rng.choice(
        (("all", 0), ("all", 0), ("all", 0.3), ("zh,en", 0.3))
    )
    values["max_reject_rate"] = 1
    values["skip_unreadable"] = True
    perhaps(0.6, "dedup", ("none", "exact", "minhash", "minhash"))
    perhaps(0.3, "seed", (1, 7, 123456))
    perhaps(0.2, "sample", (0.5, 0.9, 0.05))
    perhaps(0.6, "validation", (0, 0.01, 0.05))
    perhaps(0.5, "shards", (1, 2, 3, 8))
    if "shards" not in values:
        perhaps(0.5, "shard_tokens", (5000, 20_000, 50_000))
    perhaps(0.4, "keep_dropped", (True,))
    perhaps(0.15, "glm_chars", (20, 101))
    return Options(values)


def case_random(seed: int, number: int) -> random.Random:
    """Return the random generator that makes all decisions of a case."""
    return random.Random(f"{seed}:{number}")
