"""Where the templates of pages are found, and how they are filled."""

from __future__ import annotations

from functools import cache

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined


@cache
def page_templates(*packages: str) -> Environment:
    """Templates of packages, the first one that has a name; what they are given is escaped, and must be there."""
    return Environment(
        loader=ChoiceLoader([PackageLoader(one) for one in packages]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
