import subprocess
import sys


def test_the_command_needs_no_beam_and_no_model_and_jinja_only_to_draw() -> None:
    heavy = ("apache_beam", "sentencepiece", "ftfy", "jinja2")
    script = (
        "import sys, pipelines.report.command; "
        f"print([name for name in {heavy} if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=True
    )
    assert done.stdout == "[]\n"
