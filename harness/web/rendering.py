"""Pages from templates: every value is escaped where it is put into a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources

from jinja2 import DictLoader, Environment, StrictUndefined, select_autoescape

from harness.base.foreign import plain_text

SHARED = ("base.html", "press.html", "login.html", "notice.html")
_KEY_NAMES = {"space": "Space", "enter": "Enter", "tab": "Tab", "backspace": "⌫", "left": "←", "right": "→"}
_KEY_NAMES |= {"up": "↑", "down": "↓", "escape": "Esc"}


@dataclass(frozen=True, slots=True)
class SiteWords:
    """What a site is about, in the words of its shared pages.

    name: in titles. welcome: over the login. main: what the first link of a page leads to. kept: what is stored of a
    visitor. go_on: back to the work. rest: of somebody who stops.
    """

    name: str
    welcome: str
    main: str
    kept: str
    go_on: str
    rest: str


class Templates:
    """Renders the shared templates and those that are named; `values` are known to all of them."""

    def __init__(self, names: Sequence[str], words: SiteWords, values: Mapping[str, object]) -> None:
        folder = resources.files("harness.web") / "templates"
        self.words = words
        self._environment = Environment(
            loader=DictLoader({name: (folder / name).read_text(encoding="utf-8") for name in (*SHARED, *names)}),
            autoescape=select_autoescape(),
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._environment.filters["plain"] = lambda text, limit=500: plain_text(str(text), limit)
        self._environment.filters["minutes"] = _minutes
        self._environment.filters["words"] = lambda text: str(text).replace("_", " ")
        self._environment.globals.update({"site": words, "key_name": key_name, **values})

    def page(self, template: str, **values: object) -> str:
        return self._environment.get_template(template).render(**values)


def key_name(key: str) -> str:
    """A key as it is called on screen."""
    return _KEY_NAMES.get(key, key.upper() if key.startswith("f") and len(key) > 1 else key)


def _minutes(seconds: float | None) -> str:
    if seconds is None:
        return "n/a"
    minutes = round(seconds / 60)
    if minutes < 1:
        return "under a minute"
    return f"{minutes} min" if minutes < 100 else f"{minutes / 60:.1f} h"
