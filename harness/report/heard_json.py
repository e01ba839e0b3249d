"""What devices heard against what was said, as JSON: counts, WER and its interval, by each group."""

from __future__ import annotations

from typing import Any

from harness.model.choices import Grouping
from harness.session.figures.heard import Heard, HeardTrial, by_group, heard_in, words_of
from harness.session.figures.progress import Progress, normalisation_of
from harness.transcripts.recognition import WordsHeard
from harness.transcripts.reports.scoring_json import counts_of
from harness.wake.wake import WakeFigures

Json = dict[str, Any]


def as_json(progress: Progress, wake: WakeFigures) -> Json:
    """Queries and commands together; a WER over no words is null, and so are groups that have no label."""
    trials = heard_in(progress.trials, wake)
    needed = progress.totals.attempts_needed
    return {
        "normalisation": normalisation_of(progress),
        "totals": _heard(words_of(trials)),
        "attempts_to_recognition": [{"attempts": n, "trials": share.count, "of": share.total} for n, share in needed],
        "by": {grouping.value: _groups(trials, grouping) for grouping in Grouping},
    }


def _groups(trials: tuple[HeardTrial, ...], grouping: Grouping) -> list[Json]:
    return [{"label": label or None, **_heard(heard)} for label, heard in by_group(trials, grouping)]


def _heard(heard: Heard) -> Json:
    return {"first": _words(heard.first), "final": _words(heard.final)}


def _words(words: WordsHeard) -> Json:
    counts = words.counts
    return {
        **counts_of(counts),
        "attempts": words.attempts,
        "typed": words.typed,
        "wer": counts.wer,
        "interval": words.interval,
        "interval_over": None if words.interval is None else words.unit.value,
    }
