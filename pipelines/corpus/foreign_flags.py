"""Common flags of other tools that make training data, and what each is for a corpus here.

They are of THUDM/GLM (commit 4f61ed7), tools/preprocess_data.py of Megatron-LM, dev/data of llm.c,
datatrove, and scripts of transformers. Dashes stand for underscores too.
"""

from collections.abc import Mapping

from shards.program import called

_TOKENIZER = "here --tokenizer sentencepiece:FILE.model, tiktoken:NAME or hf:tokenizer.json"
_INPUT = "here --input PATH"
_OUTPUT = "here --output DIR, the folder of the dataset"
_FIELD = f"a corpus knows its fields; {called('text')} has --text-field NAME for any other"
_VALIDATION = "here --validation F, a share of each source's documents"
_TRAINER = f"a flag of the trainer: {called('train')} --help"
_WORKERS = "here --workers N"
_SAMPLE = "here --sample F, a share of the records"

FOREIGN_FLAGS: Mapping[str, str] = {
    "--tokenizer-type": _TOKENIZER,
    "--tokenizer-model": _TOKENIZER,
    "--vocab-file": _TOKENIZER,
    "--merge-file": _TOKENIZER,
    "--vocab-size": f"of {called('train-tokenizer')}, which makes a tokenizer",
    "--train-data": _INPUT,
    "--train-file": _INPUT,
    "--data": _INPUT,
    "--data-path": _INPUT,
    "--dataset": "here --input hf:OWNER/NAME",
    "--input-folder": _INPUT,
    "-i": _INPUT,
    "--output-prefix": _OUTPUT,
    "--output-dir": _OUTPUT,
    "-o": _OUTPUT,
    "--json-keys": _FIELD,
    "--jsonl-keys": _FIELD,
    "--text-key": _FIELD,
    "--text-keys": _FIELD,
    "--text-column": _FIELD,
    "--append-eod": "not needed: every document ends with the tokenizer's end of text",
    "--split-sentences": "not needed: windows are cut at ends of sentences when they are read",
    "--language": "here --languages LIST",
    "--lang": "here --languages LIST",
    "--split": _VALIDATION,
    "--shard-size": "here --shard-tokens N",
    "-s": "here --shard-tokens N",
    "--num-proc": _WORKERS,
    "--partitions": "not needed: --workers N divides the files; --part I/N between machines",
    "--limit": _SAMPLE,
    "--minhash": "here --dedup minhash",
    "--seq-length": _TRAINER,
    "--batch-size": _TRAINER,
    "--max-steps": _TRAINER,
    "--model": _TRAINER,
}
"""By flag."""
