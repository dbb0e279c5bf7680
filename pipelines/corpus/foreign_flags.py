"""The most common flags of other tools that make training data, and their equivalents here.

The flags are those of THUDM/GLM, Megatron-LM's tools/preprocess_data.py, datatrove, and scripts of
transformers. In a flag, a dash also stands for an underscore.
"""

from collections.abc import Mapping

from shards.commands.table import called

_HERE = {
    "here --tokenizer sentencepiece:FILE.model, tiktoken:NAME or hf:tokenizer.json": (
        "--tokenizer-type --tokenizer-model --vocab-file --merge-file"
    ),
    f"a flag of {called('train-tokenizer')}, which makes a tokenizer": "--vocab-size",
    "here --input PATH": "--train-data --train-file --data --data-path --input-folder",
    "here --input hf:OWNER/NAME": "--dataset",
    "here --output DIR, the folder of the dataset": "--output-prefix --output-dir -o",
    f"a corpus knows its fields; for other fields use {called('text')} --text-field NAME": (
        "--json-keys --jsonl-keys --text-key --text-column"
    ),
    "not needed: every document ends with the tokenizer's end-of-text token": "--append-eod",
    "not needed: the trainer cuts windows at the ends of sentences": "--split-sentences",
    "here --languages LIST": "--language",
    "here --validation F, a share of each source's documents": "--split",
    "here --shard-tokens N": "--shard-size",
    "here --workers N": "--num-proc",
    "here --sample F, a share of the records": "--limit",
    f"a flag of the trainer: {called('train')} --help": (
        "--seq-length --batch-size --max-steps --model"
    ),
}
FOREIGN_FLAGS: Mapping[str, str] = {
    flag: here for here, flags in _HERE.items() for flag in flags.split()
}
"""The equivalent of each flag, as part of a message."""
