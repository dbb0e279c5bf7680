"""Refusals of calls from Python, besides those of the golden row `called`."""

from tests.refusals.refusal import raised
from tests.refusals.scenes import lines

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
"""Keywords of pipelines.build for wudao."""

ROWS = (
    *(
        raised(f"build({x})", f"import pipelines\npipelines.build('wudao', {x})", scene=lines)
        for x in BUILD
    ),
    raised("pipelines.bild", "import pipelines\npipelines.bild", code=1),
)
