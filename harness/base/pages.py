"""Pages of HTML that need nothing else: one shell for head, styles, tables that sort and lists that filter.

A room's template extends `page.html` and fills its blocks; `macros.html` has what several pages write.
"""

from __future__ import annotations

from functools import cache

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

from harness import __version__
from harness.base.foreign import plain_text


def filled_page(package: str, template: str, **values: object) -> str:
    """The template of a package, filled: what it is given is escaped, and must be there."""
    return templates_of(package).get_template(template).render(version=__version__, plain=plain_text, **values)


@cache
def templates_of(package: str) -> Environment:
    """The templates of a package, and those that all pages share."""
    return Environment(
        loader=ChoiceLoader([PackageLoader(package), PackageLoader("harness.base")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
