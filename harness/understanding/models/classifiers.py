"""Classifiers of intents by name, with checked settings."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from harness.base.plugins import Group, checked_settings, load
from harness.base.ports import IntentClassifier

MakeClassifier = Callable[[int], IntentClassifier]
"""A new classifier from a seed."""


def classifier_maker(name: str, given: Iterable[tuple[str, str]] = ()) -> MakeClassifier:
    """What makes classifiers of that name with those settings; PluginError, InputError. Makes and loads none yet."""
    found: type[IntentClassifier] = load(Group.INTENT_CLASSIFIERS, name)
    settings = checked_settings(found.settings, given, name)
    return lambda seed: found(settings, seed=seed)
