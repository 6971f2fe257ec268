"""The templates: every value is escaped, and no hidden character reaches a page.

Only a drawing's SVG is put in as it is; `dpaudit.report.figures` answers for what stands in it.
"""

from base64 import b64encode
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from dpaudit.results.wording.quoting import clean

if TYPE_CHECKING:
    from jinja2 import Environment

HERE = Path(__file__).parent
SCRIPT = (HERE / "audits.js").read_text(encoding="utf-8")  # sorts and filters the table of a suite; nothing needs it
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"


def render(template: str, **values: object) -> str:
    """The page that a template makes of these values."""
    return environment().get_template(template).render(values)


@cache
def environment() -> "Environment":
    """What all pages share: the templates, the style and the policy."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    from dpaudit.report.figures.panel import PRINTED, STYLE

    def plain(value: object) -> object:
        """A text without control, bidirectional or invisible characters; markup of our own as it is."""
        return clean(value, len(value)) if isinstance(value, str) and not isinstance(value, Markup) else value

    made = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        auto_reload=False,
        finalize=plain,
    )
    style = (HERE / "page.css").read_text(encoding="utf-8")
    digest = b64encode(sha256(SCRIPT.encode()).digest()).decode()  # no other script runs
    scripted = {"script": Markup(SCRIPT), "script_policy": f"{POLICY}; script-src 'sha256-{digest}'"}
    made.globals.update(policy=POLICY, style=Markup(f"{STYLE}\n{PRINTED}\n{style}"), **scripted)
    return made
