import json
from pathlib import Path

from pipelines.tokenizers.tokenizer import load_tokenizer
from tests.pipelines.tokenizers.texts import ids


def test_end_token_that_is_not_marked_special(hf_path: Path, tmp_path: Path) -> None:
    description = json.loads(hf_path.read_text())
    for token in description["added_tokens"]:
        token["special"] = False
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(description))
    tokenizer = load_tokenizer(f"hf:{path}")
    assert 400 not in ids(tokenizer, "a<|endoftext|>b")
    assert 401 in ids(tokenizer, "a<|im_start|>b"), "other added tokens are vocabulary"
