"""Invalid calls from Python; the golden row `called` contains more."""

from tests.refusals.refusal import in_python
from tests.refusals.setups import lines

BUILD = (
    "filter='__main__:no_ads'",
    "filter=lambda batch: None",
    "parallelism='many'",
    "keep_dropped='yes'",
    "seed=[1, 2]",
    "seed={1}",
    "languages=['zh,en', 'ja']",
    "tokenizer=object",
)
"""Arguments of pipelines.build for wudao."""

ROWS = (
    *(
        in_python(f"build({x})", f"import pipelines\npipelines.build('wudao', {x})", setup=lines)
        for x in BUILD
    ),
    in_python("pipelines.bild", "import pipelines\npipelines.bild", code=1),
)
