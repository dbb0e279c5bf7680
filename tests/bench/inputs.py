"""What is measured on: real text where it is at hand, else files under build/bench, made once."""

import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from pipelines.wudao import RECIPE

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "build" / "bench"
GENERATOR = Path(__file__).with_name("generate_wudao.py")
DATA = ROOT.parent / "shared" / "data"
REAL_TEXT = DATA / "bench" / "zh.jsonl.zst"
REAL_TOKENIZER = DATA / "tokenizers" / "cog-pretrain.model"


@dataclass(frozen=True, kw_only=True)
class Text:
    """A file of documents in one language, with the tokenizer that suits it."""

    language: str
    path: Path
    field: str
    tokenizer: str


def tokenizer() -> str:
    """Return the spec of GLM's Chinese model, or of the sample's where that is absent."""
    if REAL_TOKENIZER.exists():
        return f"sentencepiece:{REAL_TOKENIZER}"
    return RECIPE.sample_tokenizer


def texts() -> list[Text]:
    """Return English and Chinese documents in JSON lines; else the sample's, recombined."""
    if REAL_TEXT.exists():
        english = DATA / "bench" / "en.jsonl.zst"
        merges = DATA / "tokenizers" / "gpt2-merges.txt"
        return [
            Text(language="en", path=english, field="text", tokenizer=f"tiktoken:{_gpt2(merges)}"),
            Text(language="zh", path=REAL_TEXT, field="text", tokenizer=tokenizer()),
        ]
    (made,) = _made("sample-text", "--megabytes", "40", "--files", "1").iterdir()
    return [Text(language="zh", path=made, field="content", tokenizer=tokenizer())]


def _gpt2(merges: Path) -> Path:
    """Return GPT-2's merges with its vocabulary beside them, under the names that they go by."""
    folder = FOLDER / "gpt2"
    folder.mkdir(parents=True, exist_ok=True)
    for name, path in (("merges.txt", merges), ("vocab.json", merges.with_name("gpt2-vocab.json"))):
        shutil.copyfile(path, folder / name)
    return folder / "merges.txt"


def recombined(megabytes: int) -> Path:
    """Return a folder with ten files of this size in all, made of recombined sentences."""
    return _made(f"recombined-{megabytes}", "--megabytes", str(megabytes), "--files", "10")


def many(files: int, *, megabytes: int) -> Path:
    """Return a folder with so many files of this size in all, made of recombined sentences."""
    arguments = ("--megabytes", str(megabytes), "--files", str(files))
    return _made(f"many-{files}-{megabytes}", *arguments)


def _made(name: str, *arguments: str) -> Path:
    folder = FOLDER / name
    if not folder.exists():
        unfinished = folder.with_name(f"{name}.unfinished")
        seed = ("--jsonl-zst", str(REAL_TEXT)) if REAL_TEXT.exists() else ()
        subprocess.run(
            [sys.executable, GENERATOR, "--output", unfinished, *arguments, *seed], check=True
        )
        unfinished.rename(folder)
    return folder
