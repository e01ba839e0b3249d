"""The built-in exercises, from exercises.toml: queries and answers, each with its category and the reason."""

from __future__ import annotations

import tomllib
from importlib import resources

from harness.model.judgment import Category, Exercise

_FILE = tomllib.loads(resources.files(__package__).joinpath("exercises.toml").read_text("utf-8"))
BUILT_IN_EXERCISES: tuple[Exercise, ...] = tuple(
    Exercise(**{**entry, "category": Category(entry["category"])}) for entry in _FILE["exercises"]
)
"""The exercises: at least two for each category, including the difficult cases of the guide."""
