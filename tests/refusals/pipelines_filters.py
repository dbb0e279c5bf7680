"""Custom filters, benchmarks and blocklists that cannot be used as they are given."""

from tests.refusals.refusal import mapped, opened, refused
from tests.refusals.scenes import LINES, TOKENIZER, Scene, holding, lines, together

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
"""
own = together(lines, holding("rules.py", MODULE), holding("broken.py", "import torchr\n"))

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


def benchmark(name: str, content: str | bytes) -> Scene:
    return together(lines, holding(name, content))


def blocked(content: str) -> Scene:
    fields = '{"url": "https://a.org/x", "text"'
    urls = LINES.replace('{"text"', fields)
    return together(holding("in/a.jsonl", urls), holding("domains", content))


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
"""By name the value of url in each record."""


def addressed(value: str) -> Scene:
    record = f'{{"url": {value}, "text": "words"}}\n'
    return together(holding("in/a.jsonl", record * 3), holding("domains", "a.org\n"))


ROWS = (
    *(opened(name, JSONL, scene=scene) for name, scene in BENCHMARKS.items()),
    *(opened(name, LIST, scene=scene) for name, scene in BLOCKLISTS.items()),
    *(
        mapped(f"blocklist: a url that is {name}", LIST, scene=addressed(value))
        for name, value in UNREADABLE.items()
    ),
    *(opened(f"filter {x}", f"{RUN} --filter {x}", scene=own) for x in SPECS),
    *(mapped(f"filter rules:{x}", f"{TEXT} --filter rules:{x}", scene=own) for x in ANSWERS),
    refused("clean: an input that is not there", f"{TEXT} --clean code=none", scene=lines),
    refused("benchmark: not there", JSONL, scene=lines),
    opened("benchmark: seven words", TXT, scene=benchmark("a.txt", " ".join(WORDS.split()[:7]))),
    refused("blocklist: not there", f"{TEXT} --url-blocklist none.txt", scene=lines),
    refused(
        "blocklist: documents without a url",
        f"{TEXT} --url-blocklist domains",
        scene=blocked("a.org\n"),
    ),
)
