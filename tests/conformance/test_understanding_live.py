"""Intents and slots through real sound: told over MQTT, judged while it runs, asked again until they are right."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from click.testing import CliRunner

from harness.cli import group
from harness.model.choices import CountedAttempt
from harness.model.observation import Intent, StateTold
from harness.model.record import AttemptFinished, Observed
from harness.model.trial import EvidenceSource, Outcome
from harness.model.understanding import Slot
from harness.report.junit import junit
from harness.session.figures.frames_of_session import session_corpora
from harness.session.figures.progress import SessionFigures
from harness.statistics.intervals import Share
from harness.understanding.reported_frames import frame_line, verdict_in_words
from tests.conformance.engine_runs import rows
from tests.conformance.lab_runs import LabRuns, lab_of_its_own, verdicts
from tests.known import known

pytestmark = [pytest.mark.sound, pytest.mark.speech, pytest.mark.usefixtures("host_keeps_time")]

FILES = Path(__file__).parent / "lab"
BENCH = FILES / "understanding_bench.yaml"
PATIENCE_S = 240.0
SLOTS = {("duration", "5 minutes"), ("item", "eggs")}


def test_query_is_repeated_until_both_intents_are_understood(tmp_path: Path) -> None:
    with lab_of_its_own(FILES / "understanding.settings.yaml") as lab:
        runs = LabRuns(tmp_path, lab)
        try:
            folder = runs.prepare(FILES / "understanding.yaml", BENCH)
            runs.start(folder).goodbye(PATIENCE_S)
        finally:
            runs.close()
    entries = rows(folder)
    finished = [entry.record for entry in entries if isinstance(entry.record, AttemptFinished)]
    frames: dict[int, list[Intent]] = {row.attempt: [] for row in finished}
    changed: dict[str, set[int]] = {"timer": set(), "shopping_list": set()}
    for record in (entry.record for entry in entries if isinstance(entry.record, Observed) and entry.record.attempt):
        match record.observation:
            case Intent() as intent:
                frames[known(record.attempt)].append(intent)
            case StateTold(name=name, value=value) if value:
                changed[name].add(known(record.attempt))
    # How often it is asked depends on what it hears. It loses the eggs once, so it is never right at first.
    assert len(finished) > 1
    slots = {
        attempt: {pair for intent in heard_intents for pair in intent.slots}
        for attempt, heard_intents in frames.items()
    }
    for verdict in finished:
        intents = {intent.name for intent in frames[verdict.attempt]}
        right = intents == {"add_to_list#set_timer"} and slots[verdict.attempt] == SLOTS
        assert right is (verdict is finished[-1]), "it is asked until it is right, and no longer"
        assert (verdict.outcome is Outcome.RESPONDED) is right
        assert known(verdict.understood).right in ((right,) if intents else (None, False))
    # What it has not understood it has not done.
    for state, concept in (("timer", "duration"), ("shopping_list", "item")):
        assert changed[state]
        assert changed[state] <= {attempt for attempt, pairs in slots.items() if concept in dict(pairs)}
    first, last = known(finished[0].understood), known(finished[-1].understood)
    assert last.source is EvidenceSource.DEVICE
    assert last.slots == tuple(Slot(*pair) for pair in sorted(SLOTS))
    assert [row.outcome for row in verdicts(entries)] == [Outcome.RESPONDED]

    figures = SessionFigures()
    for entry in entries:
        figures.add(entry)
    progress = figures.snapshot()
    shares = progress.totals.understood
    assert (shares.right, shares.first_right) == (Share(1, 1), Share(0, 1))
    assert shares.first_intents == Share(int(first.intents_right or False), 1)
    assert progress.totals.to_judge == 1  # its first response is for raters, as that of any query
    corpora = session_corpora([progress], CountedAttempt.FIRST)
    told_first, slots_meant = (
        [len(utterance.slots or ()) for utterance in corpus.utterances] for corpus in (corpora.predicted, corpora.gold)
    )
    assert (told_first, slots_meant) == ([len(first.slots or ())], [2])

    shown = CliRunner().invoke(group, ["show", str(folder)])
    assert "understood           1 of 1 = 100 %" in shown.output
    assert '= add_to_list, = set_timer, = duration "5 minutes", = item "eggs"' in shown.output
    assert "MARGINAL  understood ≥ 100 %: found 100 %, holds, but its interval crosses the limit" in shown.output
    (row,) = csv.DictReader(io.StringIO(CliRunner().invoke(group, ["show", str(folder), "--csv"]).output))
    assert (row["understood"], row["frame_right"]) == ("add_to_list#set_timer (duration: 5 minutes, item: eggs)", "1")
    detail = "" if first.intents is None else f": {frame_line(first.intents, first.slots)}"
    assert f"attempt 1: {verdict_in_words(first)}{detail}".encode() in junit(folder)
