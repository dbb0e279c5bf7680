"""Filters of one's own, benchmarks and blocklists that cannot be used as they are given."""

from tests.refusals.refusal import mapped, opened, refused
from tests.refusals.scenes import LINES, TOKENIZER, Scene, holding, lines, together

RUN = "pipelines.wudao --output out"
TEXT = f"pipelines.text --input in {TOKENIZER} --output out"
MODULE = """
def long_ones(batch): return [None] * len(batch)
def nothing(batch): return None
def leaves(batch): raise SystemExit(3)
def fewer(batch): return [None]
def truths(batch): return [True] * len(batch)
def one_word(batch): return "bad"
def blank(batch): return [""] * len(batch)
def texts(batch): return {"text": batch["text"]}
def unnamed(batch): return {"x": [1.0] * len(batch)}
def breaks(batch): return 1 / 0
gopher = classifier = clean = long_ones
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

SPECS = {
    "bad=rules:fewer": (
        "--filter \"bad=rules:fewer\": no step 'bad' for a filter to stand after: give one of"
        " read, clean, langid, quality, decontaminate, mask"
    ),
    "quality=rules": (
        "--filter rules: no installed package offers a filter of that name (none is installed)."
        " Write [AFTER=]MODULE:NAME[?OPTION=VALUE&…], as in quality=my_rules:no_ads"
    ),
    "rules:clean:more": '--filter "rules:clean:more" names no filter.…',
    "rules:Class?least=1\\&least=2": '--filter "rules:Class?least=1&least=2" gives an option twice',
    "rule:one": (
        "--filter rule:one: there is no module 'rule' where Python looks for modules: start in its"
        " folder, install it, or put its folder into PYTHONPATH"
    ),
    "rules.py:one": (
        "--filter rules.py:one: there is no module 'rules.py' where Python looks for modules:"
        " start in its folder, install it, or put its folder into PYTHONPATH, and leave .py out of"
        " its name"
    ),
    "broken:one": (
        "the filter broken:one: it cannot be imported: ModuleNotFoundError: No module named"
        " 'torchr' (…/broken.py:1). Correct its code"
    ),
    "rules:none": "--filter rules:none: rules holds no 'none'",
    "rules:fewer?least=2": (
        "--filter rules:fewer is given options (least), but it is a function: make it a class,"
        " whose constructor takes them"
    ),
    "rules:Class?most=2": (
        "--filter rules:Class: got an unexpected keyword argument 'most'; it takes (least=3)"
    ),
    "rules:Uncallable": "--filter rules:Uncallable is no filter: it cannot be called with a batch",
    "rules:Fails": (
        "the filter rules:Fails: it cannot be made: ZeroDivisionError: division by zero"
        " (…/rules.py:46). Correct its code"
    ),
    "rules:gopher": (
        "a filter cannot be called 'gopher': a step, rule or model of corpusmill is called so, and"
        " figures and reasons go by these names"
    ),
    "rules:long_ones --filter clean=rules:long_ones": (
        "two filters are called 'long_ones': give each one its own name"
    ),
    "rules:Measured?max_chars=many": "--filter rules:Measured: max_chars=many is no number",
    "rules:Measured?min_chars=inf": (
        "--filter rules:Measured: min_chars=inf is not finite: nan is a bound that is off"
    ),
    "clean=rules:Measured": (
        "--filter rules:Measured has bounds (min_chars, max_chars): each is min_ or max_ and one"
        " of its metrics (chars), and such a filter changes no texts and stands after quality"
    ),
    "rules:Misnamed": (
        "--filter rules:Misnamed has bounds (least): each is min_ or max_ and one of its metrics"
        " (chars), and such a filter changes no texts and stands after quality"
    ),
    "rules:NoBound": (
        "--filter rules:NoBound: its `bounds` has None for 'min_chars': give a finite number, or"
        " nan for a bound that is off"
    ),
    "rules:ListOfBounds": (
        "--filter rules:ListOfBounds: its `bounds` is ['min_chars'], not a dict such as"
        ' {"min_score": 0.5}'
    ),
    "rules:OneMetric": "--filter rules:OneMetric: its `metrics` is 5, not a list of names",
}
ANSWERS = {
    "nothing": (
        "--filter rules:nothing returned None for a batch of 6 texts: it returns a list with None"
        " or a reason for each (is there a `return`?)"
    ),
    "leaves": (
        "the filter rules:leaves: it fails on a batch of 6 texts, of records at 0 on: SystemExit:"
        " 3 (…/rules.py:4). Correct its code"
    ),
    "fewer": "--filter rules:fewer returned 1 reasons for 6 texts",
    "truths": (
        "--filter rules:truths returned True: it returns, for each text, None to keep it or a"
        " reason to leave it out, a string that is not empty"
    ),
    "one_word": (
        "--filter rules:one_word returned 'bad': it returns, for each text, None to keep it or a"
        " reason to leave it out, a string that is not empty"
    ),
    "blank": (
        "--filter rules:blank returned '': it returns, for each text, None to keep it or a reason"
        " to leave it out, a string that is not empty"
    ),
    "unnamed": "--filter rules:unnamed returned x, which its `metrics` does not name (it has none)",
    "Nulls": (
        "--filter rules:Nulls returned None as a text: it returns, for each text, a string of"
        " valid Unicode; an unchanged one if it is to stay, an empty one if it is to go"
    ),
    "Halves": (
        "--filter rules:Halves returned 'a\\ud800' as a text: it returns, for each text, a string"
        " of valid Unicode; an unchanged one if it is to stay, an empty one if it is to go"
    ),
    "Both": (
        "--filter rules:Both has bounds and returned a reason: it returns metrics alone, so that"
        " other bounds can be tried on them"
    ),
    "texts": (
        "--filter rules:texts returned texts: a class that changes them says so with `changes_text"
        " = True`, so that the audit table has a column for it"
    ),
    "breaks": (
        "the filter rules:breaks: it fails on a batch of 6 texts, of records at 0 on:"
        " ZeroDivisionError: division by zero (…/rules.py:11). Correct its code"
    ),
}

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
    "benchmark: no text": (
        benchmark("a.jsonl", '{"text": 7}\n'),
        "…/a.jsonl: no text in the item at 0: b'{\"text\": 7}'. Expected a field text, or other"
        " fields that are strings.",
    ),
    "benchmark: not an object": (
        benchmark("a.jsonl", '{"text": "x"}\n[1]\n'),
        "…/a.jsonl: the benchmark is damaged at byte 14 (not-an-object): b'[1]'. Fetch the file"
        " again, or leave it out.",
    ),
}

BLOCKLISTS = {
    "blocklist: hosts": (
        blocked("good.org\n0.0.0.0 example.com\n"),
        "…/domains: '0.0.0.0 example.com' at byte 9 is no entry of a blocklist. Each line should"
        " hold a domain (example.com) or the beginning of a URL (example.com/shop) and nothing"
        " else; rules of ad blockers and hosts files have to be rewritten.",
    ),
    "blocklist: wildcard": (
        blocked("exam*ple.com\n"),
        "…/domains: 'exam*ple.com' at byte 0 is no entry of a blocklist.…",
    ),
    "blocklist: a path alone": (
        blocked("/path\n"),
        "…/domains: '/path' at byte 0 is no entry of a blocklist.…",
    ),
    "blocklist: comments alone": (
        blocked("# nothing\n\n"),
        "domains: no entries. Each line should hold a domain (example.com) or the beginning of a"
        " URL (example.com/shop).",
    ),
}

ROWS = (
    *(opened(name, JSONL, says, scene=scene) for name, (scene, says) in BENCHMARKS.items()),
    *(opened(name, LIST, says, scene=scene) for name, (scene, says) in BLOCKLISTS.items()),
    *(opened(f"filter {x}", f"{RUN} --filter {x}", says, scene=own) for x, says in SPECS.items()),
    *(
        mapped(f"filter rules:{x}", f"{TEXT} --filter rules:{x}", says, scene=own)
        for x, says in ANSWERS.items()
    ),
    refused(
        "benchmark: not there",
        JSONL,
        "--decontaminate names texts of benchmarks: a.jsonl does not exist; . holds in",
        scene=lines,
    ),
    opened(
        "benchmark: seven words",
        TXT,
        "a.txt: none of the 1 items has 8 words, so there is nothing to look for. In plain text"
        " each line is an item: put every item on a single line.",
        scene=benchmark("a.txt", " ".join(WORDS.split()[:7])),
    ),
    refused(
        "blocklist: not there",
        f"{TEXT} --url-blocklist none.txt",
        "--url-blocklist names a list of domains: none.txt does not exist; . holds in",
        scene=lines,
    ),
    refused(
        "blocklist: documents without a url",
        f"{TEXT} --url-blocklist domains",
        "--url-blocklist: the documents of the input 'text' have no column url (they have id);"
        " pipelines.text takes one with --provenance url=FIELD",
        scene=blocked("a.org\n"),
    ),
)
