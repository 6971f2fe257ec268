"""The documentation as a reader meets it on a telephone, a tablet and a desk: nothing is cut, whatever the scheme."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.browser.chromium import SCHEMES, Tab
from tests.docs.test_site import site  # noqa: F401  (a fixture)

pytestmark = pytest.mark.browser

PAGES = (
    "index tutorial faq report tools reports how/training how/runs ci/plugin reference/audit reference/results "
    "reference/catalogue reference/commands reference/spec statistics/power"
)
CUT = """[...document.querySelectorAll('article pre, article table, article code, article figure')].filter(each =>
  each.getBoundingClientRect().right > innerWidth + 1
  || (getComputedStyle(each).display != 'inline' && each.scrollWidth > each.clientWidth + 1)
).map(each => each.outerHTML.slice(0, 200))"""


@pytest.mark.parametrize("width", [400, 690, 1400])
def test_no_page_is_cut(tab: Tab, site: Path, width: int) -> None:  # noqa: F811
    for name in PAGES.split():
        tab.open(site / f"{name}.html", width=width, scheme=SCHEMES[width == 690])
        assert tab.run("document.documentElement.scrollWidth") <= width, name
        assert tab.run(CUT) == [], name
