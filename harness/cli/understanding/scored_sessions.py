"""What devices understood in sessions, beside what was expected, for `harness understanding score SESSION…`."""

from __future__ import annotations

from collections.abc import Sequence

from harness.cli.sessions import progress_of, session_folder
from harness.model.choices import Which
from harness.model.errors import InputError
from harness.model.understanding import Corpus
from harness.session.figures.frames_of_session import session_corpora
from harness.understanding.reports.score_text import listed


def session_pair(named: Sequence[str], attempt: Which) -> tuple[Corpus, Corpus, list[str]]:
    """Gold, predicted, and lines on what is not scored; InputError where no trial expects an intent."""
    folders = [session_folder(one) for one in named]
    found = session_corpora([progress_of(one) for one in folders], attempt)
    if not found.gold.utterances:
        why = f": of {listed(found.unknown)} nothing says what was understood" if found.unknown else ""
        remedy = "Name a session with trials of kind understand (docs/trials.md)"
        raise InputError(f"no trial of this has an intent to score{why}", remedy=remedy)
    names = " ".join(str(one) for one in folders)
    notes = [f"attempt       {attempt} of each trial"]
    if found.unknown:
        notes.append(f"unknown       {listed(found.unknown)}: nothing says what was understood; counted nowhere")
    return (
        Corpus(names, found.gold.utterances),
        Corpus(f"devices in {names}", found.predicted.utterances),
        notes,
    )
