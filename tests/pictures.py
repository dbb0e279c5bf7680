"""Draws docs/images/report.png, the top of the report of a run on the bundled sample.

python -m tests.pictures
"""

import base64
import tempfile
from pathlib import Path

from pipelines import api
from tests.browser import browser

_PICTURE = Path(__file__).parent.parent / "docs" / "images" / "report.png"
_WIDTH = 1120
_BOTTOM = "document.querySelector('#funnel table').getBoundingClientRect().bottom"


def main() -> None:
    """Build the dataset, open its report, and write the picture."""
    with tempfile.TemporaryDirectory() as name:
        dataset = Path(name, "build", "wudao")
        api.build("wudao", output=dataset, quality="zh=fineweb2-zh,en=gopher", dedup="minhash")
        with browser(Path(name)) as tab:
            tab.resize(_WIDTH, 900)
            tab.go((dataset / "report.html").as_uri())
            clip = {"x": 0, "y": 0, "width": _WIDTH, "height": tab.evaluate(_BOTTOM) + 8}
            shot = tab.ask(
                "Page.captureScreenshot", captureBeyondViewport=True, clip={**clip, "scale": 1}
            )
        _PICTURE.parent.mkdir(exist_ok=True)
        _PICTURE.write_bytes(base64.b64decode(shot["data"]))


if __name__ == "__main__":
    main()
