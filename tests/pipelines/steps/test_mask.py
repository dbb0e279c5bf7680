from pipelines.steps.mask import Mask
from tests.pipelines.steps.batches import CHINESE, with_prompts


def test_masking_replaces_in_prompt_and_text_and_counts() -> None:
    rows = with_prompts((CHINESE, "mail me: jo@corpus.cn, 113.96.2.17"), ("", "from bo@corpus.cn"))
    verdict = Mask()(rows)
    prompt, text = (verdict.batch[name].to_pylist()[1] for name in ("prompt", "text"))
    assert "bo@" not in prompt
    assert "jo@" not in text
    assert "113.96.2.17" not in text
    assert verdict.batch["pii.email"].to_pylist() == [0, 2]
    assert verdict.batch["pii.ip"].to_pylist() == [0, 1]
