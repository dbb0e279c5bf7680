import os
from collections.abc import Iterator

import pytest
from hypothesis import settings

from tests.browser import CHROMIUM, Browser, browser

# A process has only one fork server, which the first caller starts. The server's children inherit
# the number of threads, on which the last bits of a loss depend.
os.environ["OMP_NUM_THREADS"] = "1"
os.environ["DS_ACCELERATOR"] = "cpu"

# No test is about time, so hypothesis's limit of 200 ms per example is switched off.
settings.register_profile("untimed", parent=settings(), deadline=None)
settings.load_profile("untimed")

NO_BROWSER = "there is no Chromium on this machine"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip the tests of pages in a browser if no browser is installed."""
    for item in items if CHROMIUM is None else ():
        if item.get_closest_marker("browser"):
            item.add_marker(pytest.mark.skip(reason=NO_BROWSER))


@pytest.fixture(scope="session")
def opened_browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("browser")) as opened:
        yield opened


@pytest.fixture
def tab(opened_browser: Browser) -> Browser:
    """A tab of Chromium that has no earlier events."""
    opened_browser.events.clear()
    return opened_browser


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Iterator[None]:
    """Print at the end that no pages were tested in a browser, and how to test them."""
    yield
    skipped = terminalreporter.getreports("skipped")
    count = sum(NO_BROWSER in str(report.longrepr) for report in skipped)
    if count:
        terminalreporter.write_line(
            f"NOT TESTED: pages in a browser ({count} tests skipped): {NO_BROWSER}. `make browser` "
            "installs it on Debian; elsewhere put chromium or google-chrome into PATH.",
            red=True,
            bold=True,
        )
