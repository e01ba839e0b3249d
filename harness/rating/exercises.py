"""The built-in exercises, from exercises.toml: queries and answers, each with its category and the reason.

And why a rater gets one again.
"""

from __future__ import annotations

import tomllib
from importlib import resources

from harness.model.judgment import Category, Exercise
from harness.rating.desk import SittingView

_FILE = tomllib.loads(resources.files(__package__).joinpath("exercises.toml").read_text("utf-8"))
BUILT_IN_EXERCISES: tuple[Exercise, ...] = tuple(
    Exercise(**{**entry, "category": Category(entry["category"])}) for entry in _FILE["exercises"]
)
"""At least two for each category, the tricky cases of the guide among them."""


def repeated(view: SittingView) -> str:
    """Why the current exercise comes once more, to follow its number; "" if it does not."""
    answered = view.own is not None and view.explained is None
    if view.item is None or view.item.exercise is None or not answered:
        return ""
    return "again, since too few of your answers were right"
