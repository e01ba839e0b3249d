"""The built-in exercises, from exercises.toml: queries and answers, each with its category and the reason."""

from __future__ import annotations

import tomllib
from importlib import resources

from harness.model.judgment import Category, Exercise
from harness.rating.view import SittingView

_FILE = tomllib.loads(resources.files(__package__).joinpath("exercises.toml").read_text("utf-8"))
BUILT_IN_EXERCISES: tuple[Exercise, ...] = tuple(
    Exercise(**{**entry, "category": Category(entry["category"])}) for entry in _FILE["exercises"]
)
"""The exercises: at least two for each category, including the difficult cases of the guide."""


def repetition_text(view: SittingView) -> str:
    """Text after the number of the current exercise that says why it is repeated; "" if it is not."""
    was_answered = view.own is not None and view.explained is None  # an answer that is explained now is the current one
    if view.item is None or view.item.exercise is None or not was_answered:
        return ""
    return "again, since too few of your answers were right"
