"""A classifier that proposes categories to raters, learnt from what was judged in other sessions."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator
from pathlib import Path

from harness.model.errors import InputError, Place
from harness.model.judgment import Category, ProposalRule, RatingRound
from harness.rating.items import Item
from harness.rating.proposals import Proposal
from harness.rating.rating_items import RatingSource
from harness.understanding.models.classifiers import classifier_maker

LEAST_RESPONSES = 20
LEAST_CATEGORIES = 2


class Proposer:
    """Says what it would give an item; thread-safe. The same rule, rows and seed give the same.

    own: ids of the sessions that are judged. LogError; PluginError when there is no such classifier or it cannot run;
    InputError when a source is one of `own` under another path, or has too little to learn from.
    """

    def __init__(self, rule: ProposalRule, own: Collection[str], *, seed: int, path: str = "") -> None:
        self._classifier = classifier_maker(rule.classifier, rule.settings)(seed)
        self._lock = threading.Lock()
        self._known: dict[str, Proposal] = {}
        learnt = [one for folder in rule.sessions for one in _learnt(Path(folder), own)]
        given = {category for _, category in learnt}
        self._labels = tuple(one for one in Category if one in given)
        if len(learnt) < LEAST_RESPONSES or len(given) < LEAST_CATEGORIES:
            raise InputError(
                f"proposals have too little to learn from: {len(learnt)} responses with a category and a "
                f"text, of {len(given)} kinds",
                place=Place(path) if path else None,
                remedy=f"Name in `proposals: from:` sessions with {LEAST_RESPONSES} of them, of {LEAST_CATEGORIES} "
                "kinds at least: judged with `harness rate`, with a transcript or the device's own text; what raters "
                "disagree on does not count until it is settled",
            )
        texts, categories = zip(*learnt, strict=True)
        self._classifier.fit(texts, [(one.value,) for one in categories], [one.value for one in self._labels])

    def __call__(self, item: Item) -> Proposal | None:
        """The likeliest category; None without a text of the response."""
        text = _text(item)
        if text is None:
            return None
        with self._lock:
            if text not in self._known:
                shares = self._classifier.probabilities([text])[0]
                best = int(shares.argmax())
                self._known[text] = Proposal(self._labels[best], round(float(shares[best]), 4))
            return self._known[text]


def _learnt(folder: Path, own: Collection[str]) -> Iterator[tuple[str, Category]]:
    """Texts with the category that stands: the adjudication, else the one that all raters gave."""
    found = RatingSource(folder, RatingRound()).read()
    if found.session_id in own:
        raise InputError(
            f"{folder} is the session {found.session_id}, which this round judges: raters would be told their labels",
            remedy="Name in `proposals: from:` judged sessions that are none of `sessions`",
        )
    standing = {(one.response.trial.id, one.response.clip.sha256): one.agreed for one in found.responses}
    for item in found.items:
        text, category = _text(item), standing[item.subject.trial_id, item.subject.clip_sha256]
        if text is not None and category is not None:
            yield text, category


def _text(item: Item) -> str | None:
    """The query and what was answered."""
    return None if item.transcript is None else f"{item.query}\n{item.transcript}"
