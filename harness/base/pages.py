"""Self-contained HTML pages: one template for head, styles, sortable tables and lists with filters.

A room's template extends `page.html` and fills its blocks; `macros.html` holds what several pages share.
"""

from __future__ import annotations

import base64
import hashlib
import re
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

from harness import __version__
from harness.base.foreign import plain_text
from harness.base.whole_file import write_atomically
from harness.model import numbers


def filled_page(package: str, template: str, **values: object) -> str:
    """A filled template of a package. Values are escaped, controls too; a missing one is an error."""
    return templates_of(package).get_template(template).render(version=__version__, **values)


def write_filled_page(target: Path, package: str, template: str, **values: object) -> None:
    """Writes a filled page to a file, completely or not at all. The template also gets the time as `written`."""
    written = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    write_atomically(target, filled_page(package, template, written=written, **values).encode("utf-8"))


_CONTROL = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def _escape_controls(value: object) -> object:
    """A value for a page. In texts, characters that control a terminal or the direction of writing become escapes."""
    return plain_text(value, 2000) if type(value) is str and _CONTROL.search(value) else value


@cache
def templates_of(package: str) -> Environment:
    """The templates of a package, and the shared ones."""
    environment = Environment(
        loader=ChoiceLoader([PackageLoader(package), PackageLoader("harness.base")]),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_escape_controls,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(numbers=numbers, plain=plain_text)
    environment.filters["sha256"] = lambda text: base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return environment
