"""Invalid custom filters, benchmarks and blocklists."""

from tests.refusals.refusal import after_reading, at_start, refused
from tests.refusals.setups import LINES, TOKENIZER, Setup, all_of, lines, with_file

RUN = "pipelines.wudao --output out"
TEXT = f"pipelines.text --input in {TOKENIZER} --output out"
MODULE = """
def long_ones(batch): return [None] * len(batch)
def nothing(batch): return None
def leaves(batch): raise SystemExit(3)
def fewer(batch): return [None]
def one_word(batch): return "bad"
def blank(batch): return [""] * len(batch)
def texts(batch): return {"text": batch["text"]}
def unnamed(batch): return {"x": [1.0] * len(batch)}
gopher = pii = clean = long_ones
number = 3


class Nulls:
    changes_text = True
    said = None

    def __call__(self, batch):
        return {"text": [self.said] * len(batch)}


class Numbers(Nulls):
    said = 3


class Halves(Nulls):
    said = "a\\ud800"


class Class:
    def __init__(self, least=3):
        self.least = least

    def __call__(self, batch):
        return [None] * len(batch)


class Uncallable:
    pass


class Fails:
    def __init__(self):
        1 / 0


class Measured:
    metrics = ("chars",)
    bounds = {"min_chars": 3.0, "max_chars": 100.0}

    def __call__(self, batch):
        return {"chars": [len(text) for text in batch["text"].to_pylist()]}


class Both(Measured):
    def __call__(self, batch):
        return {"reason": ["x"] * len(batch)}


class Unmeasured(Measured):
    metrics = ()


class Misnamed(Measured):
    bounds = {"least": 3.0}


class NoBound(Measured):
    bounds = {"min_chars": None}


class ListOfBounds(Measured):
    bounds = ["min_chars"]


class OneMetric(Measured):
    metrics = 5


import os


def dies(batch):
    os._exit(3)
"""
own = all_of(lines, with_file("rules.py", MODULE), with_file("broken.py", "import torchr\n"))

SPECS = (
    "bad=rules:fewer",
    "quality=rules",
    "rules:clean:more",
    "rules:Class?least=1\\&least=2",
    "rule:one",
    "rules.py:one",
    "broken:one",
    "rules:none",
    "rules:fewer?least=2",
    "rules:Class?most=2",
    "rules:Uncallable",
    "rules:Fails",
    "rules:gopher",
    "rules:pii",
    "rules:long_ones --filter clean=rules:long_ones",
    "rules:Measured?max_chars=many",
    "rules:Measured?min_chars=inf",
    "clean=rules:Measured",
    "rules:Misnamed",
    "rules:NoBound",
    "rules:ListOfBounds",
    "rules:OneMetric",
)
ANSWERS = (
    "nothing",
    "leaves",
    "fewer",
    "one_word",
    "blank",
    "unnamed",
    "Nulls",
    "Halves",
    "Both",
    "texts",
)

WORDS = "one two three four five six seven eight nine ten eleven twelve thirteen"


def benchmark(name: str, content: str | bytes) -> Setup:
    return all_of(lines, with_file(name, content))


def blocked(content: str) -> Setup:
    fields = '{"url": "https://a.org/x", "text"'
    urls = LINES.replace('{"text"', fields)
    return all_of(with_file("in/a.jsonl", urls), with_file("domains", content))


JSONL = f"{TEXT} --decontaminate a.jsonl"
TXT = f"{TEXT} --decontaminate a.txt"
LIST = f"{TEXT} --provenance url=url --url-blocklist domains"

BENCHMARKS = {
    "benchmark: no text": benchmark("a.jsonl", '{"text": 7}\n'),
    "benchmark: not an object": benchmark("a.jsonl", '{"text": "x"}\n[1]\n'),
}

BLOCKLISTS = {
    "blocklist: hosts": blocked("good.org\n0.0.0.0 example.com\n"),
    "blocklist: wildcard": blocked("exam*ple.com\n"),
    "blocklist: a path alone": blocked("/path\n"),
    "blocklist: comments alone": blocked("# nothing\n\n"),
}

UNREADABLE = {
    "null": "null",
    "a list": '["https://a.org/x"]',
    "an object": '{"host": "a.org"}',
    "no address": '"page 7"',
}
"""The value of `url` in each record, by row name."""


def addressed(value: str) -> Setup:
    record = f'{{"url": {value}, "text": "words"}}\n'
    return all_of(with_file("in/a.jsonl", record * 3), with_file("domains", "a.org\n"))


ROWS = (
    *(at_start(name, JSONL, setup=setup) for name, setup in BENCHMARKS.items()),
    *(at_start(name, LIST, setup=setup) for name, setup in BLOCKLISTS.items()),
    *(
        after_reading(f"blocklist: a url that is {name}", LIST, setup=addressed(value))
        for name, value in UNREADABLE.items()
    ),
    *(at_start(f"filter {x}", f"{RUN} --filter {x}", setup=own) for x in SPECS),
    *(after_reading(f"filter rules:{x}", f"{TEXT} --filter rules:{x}", setup=own) for x in ANSWERS),
    after_reading(
        "filter that ends its process", f"{TEXT} --workers 1 --filter rules:dies", setup=own
    ),
    refused("clean: an input that is not there", f"{TEXT} --clean code=none", setup=lines),
    refused("benchmark: not there", JSONL, setup=lines),
    at_start("benchmark: seven words", TXT, setup=benchmark("a.txt", " ".join(WORDS.split()[:7]))),
    refused("blocklist: not there", f"{TEXT} --url-blocklist none.txt", setup=lines),
    refused(
        "blocklist: documents without a url",
        f"{TEXT} --url-blocklist domains",
        setup=blocked("a.org\n"),
    ),
)
