"""Intents given to texts that have the same ids."""

from __future__ import annotations

from dataclasses import dataclass, replace

from harness.base.problems import shown
from harness.model.errors import InputError, Place
from harness.model.understanding import Corpus


@dataclass(frozen=True, slots=True)
class Joined:
    """corpus: texts with the intents of their ids, in the order of the texts.

    without_intents: ids of texts that no intents are given for; without_text: ids of intents that no text has.
    """

    corpus: Corpus
    without_intents: tuple[str, ...]
    without_text: tuple[str, ...]


def join(texts: Corpus, intents: Corpus) -> Joined:
    """Each text with the intents of the same id in place of its own; InputError when not one id is in both.

    Groups of both are kept, and those of the texts go before.
    """
    by_id = {one.id: one for one in intents.utterances}
    known = {one.id for one in texts.utterances}
    found = []
    for one in texts.utterances:
        if (given := by_id.get(one.id)) is not None:
            columns = {name for name, _ in one.groups}
            groups = (*one.groups, *(group for group in given.groups if group[0] not in columns))
            found.append(replace(one, intents=given.intents, groups=groups))
    if not found:
        first = intents.utterances[0].id if intents.utterances else ""
        like = f", such as {shown(texts.utterances[0].id)}" if texts.utterances else ""
        what = f"no id of these intents is one of the texts: the first is {shown(first)}"
        raise InputError(what, place=Place(intents.path), remedy=f"Write ids as {texts.path} does{like}")
    return Joined(
        Corpus(texts.path, tuple(found)),
        tuple(one.id for one in texts.utterances if one.id not in by_id),
        tuple(one.id for one in intents.utterances if one.id not in known),
    )
