"""What is measured on: WuDao-shaped files under build/bench, made once, and a tokenizer."""

import subprocess
import sys
from pathlib import Path

from pipelines.wudao import RECIPE

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "build" / "bench"
GENERATOR = Path(__file__).with_name("generate_wudao.py")
REAL_TEXT = ROOT.parent / "shared" / "data" / "bench" / "zh.jsonl.zst"
REAL_TOKENIZER = ROOT.parent / "shared" / "data" / "tokenizers" / "cog-pretrain.model"


def tokenizer() -> str:
    """Return the spec of GLM's Chinese model, or of the sample's where that is absent."""
    if REAL_TOKENIZER.exists():
        return f"sentencepiece:{REAL_TOKENIZER}"
    return RECIPE.sample_tokenizer


def text_file() -> Path:
    """Return a folder with one file of 40 MB: real Chinese documents, else recombined ones."""
    if REAL_TEXT.exists():
        return _made("real-text", "--rewrite", "--files", "1")
    return _made("sample-text", "--megabytes", "40", "--files", "1")


def recombined(megabytes: int) -> Path:
    """Return a folder with ten files of this size in all, made of recombined sentences."""
    return _made(f"recombined-{megabytes}", "--megabytes", str(megabytes), "--files", "10")


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
