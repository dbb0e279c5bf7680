"""Inputs of benchmarks: real text if this machine has it, otherwise recombined sample text.

Files are written to build/bench once.
"""

import itertools
import json
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import zstandard

from pipelines.corpus.spec import SAMPLE
from pipelines.wudao import CORPUS

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "build" / "bench"
DATA = ROOT.parent / "shared" / "data"
REAL_TEXT = DATA / "bench" / "zh.jsonl.zst"
REAL_TOKENIZER = DATA / "tokenizers" / "cog-pretrain.model"
NO_REAL_TEXT = "skipped: it takes the real text of ../shared/data/bench"

FINEWEB = "gopher-repetition@datatrove+gopher@datatrove+c4@fineweb+fineweb@code"
"""The quality rules of FineWeb, as datatrove's code has them."""
PAPERS = "gopher-repetition+gopher+c4+fineweb"
"""The same rules, as the papers describe them."""
FINEWEB2 = "fineweb2-zh"

# A page of WuDao's open part has about 2.7 KB, which is the mean of the log-normal distribution.
_MEAN_BYTES, _SIGMA = 2700, 0.8
# One sentence or a few: at least 40 characters, then up to the next end of a sentence.
_PASSAGE = re.compile(r".{40,}?(?:[。！？!?\n]+|$)|.+$", re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class Text:
    """A file of JSON lines with `text` in one language, and a tokenizer for the language."""

    language: str
    path: Path
    tokenizer: str

    def read(self) -> Iterator[str]:
        """Yield the texts of the documents, in order."""
        with zstandard.open(self.path, "rt", encoding="utf-8") as lines:
            yield from (json.loads(line)["text"] for line in lines)


def tokenizer() -> str:
    """Return the --tokenizer of GLM's Chinese model, or the sample's if that model is missing."""
    return f"sentencepiece:{REAL_TOKENIZER}" if REAL_TOKENIZER.exists() else CORPUS.sample_tokenizer


def english() -> Text:
    """Return the English documents, which REAL_TEXT must contain."""
    merges = cached_folder("gpt2", _gpt2) / "merges.txt"
    path = REAL_TEXT.with_name("en.jsonl.zst")
    return Text(language="en", path=path, tokenizer=f"tiktoken:{merges}")


def chinese() -> Text:
    """Return the Chinese documents, which REAL_TEXT must contain."""
    return Text(language="zh", path=REAL_TEXT, tokenizer=tokenizer())


def _gpt2(folder: Path) -> None:
    """Copy GPT-2's merges and vocabulary to a folder under the usual names."""
    merges = DATA / "tokenizers" / "gpt2-merges.txt"
    shutil.copyfile(merges, folder / "merges.txt")
    shutil.copyfile(merges.with_name("gpt2-vocab.json"), folder / "vocab.json")


def recombined(megabytes: int) -> Path:
    """Return a folder in WuDao's format, with ten files of this size in total.

    Documents consist of passages of the seed text in random order, and have log-normal lengths.
    Each passage is used once before any repeats. The same size gives the same bytes.
    """

    def write(folder: Path) -> None:
        passages = [*dict.fromkeys(itertools.chain.from_iterable(map(_PASSAGE.findall, _seed())))]
        for number in range(10):
            rng = np.random.default_rng([0, number])
            shuffled = (
                passages[at] for _ in itertools.count() for at in rng.permutation(len(passages))
            )
            records, size = [], 0
            while size < megabytes * 1e5:
                content = _joined(
                    shuffled, rng.lognormal(np.log(_MEAN_BYTES) - _SIGMA**2 / 2, _SIGMA)
                )
                size += len(content.encode())
                records.append({"id": len(records), "title": "", "content": content})
            text = json.dumps(records, ensure_ascii=False, indent=4)
            (folder / f"part-{number}.json").write_text(text, "utf-8")

    return cached_folder(f"recombined-{megabytes}", write)


def _joined(passages: Iterator[str], size: float) -> str:
    taken: list[str] = []
    while size > 0:
        taken.append(next(passages))
        size -= len(taken[-1].encode())
    return "".join(taken)


def _seed() -> Iterator[str]:
    """Yield the real Chinese texts, or the sample's Chinese articles if there are none."""
    if REAL_TEXT.exists():
        yield from chinese().read()
        return
    for path in sorted(SAMPLE.glob("part-*.json")):
        parsed = json.loads(path.read_text("utf-8"))
        for record in parsed["RECORDS"] if isinstance(parsed, dict) else parsed:
            text = record.get("content")
            if isinstance(text, str) and 2 * len(re.findall("[\u4e00-\u9fff]", text)) > len(text):
                yield text


def cached_folder(name: str, write: Callable[[Path], object]) -> Path:
    """Return a folder of build/bench, which `write` fills on first use."""
    folder = FOLDER / name
    if not folder.exists():
        unfinished = folder.with_name(f"{name}.unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        write(unfinished)
        unfinished.rename(folder)
    return folder


def fresh_path(name: str) -> Path:
    """Return a path for the output of a run, after deleting any earlier output there."""
    shutil.rmtree(FOLDER / name, ignore_errors=True)
    return FOLDER / name
