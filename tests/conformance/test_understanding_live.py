"""Intents and slots through real sound: told over MQTT, judged while it runs, asked again until they are right."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from click.testing import CliRunner

from harness.cli import group
from harness.model.choices import Which
from harness.model.observation import Intent, StateTold
from harness.model.record import AttemptFinished, Observed
from harness.model.trial import EvidenceSource, Outcome
from harness.model.understanding import Slot
from harness.report.junit import junit
from harness.session.figures.frames_of_session import session_corpora
from harness.session.figures.progress import SessionFigures
from harness.statistics.intervals import Share
from tests.conformance.engine_runs import rows
from tests.conformance.lab_runs import LabRuns, lab_of_its_own, verdicts

pytestmark = [pytest.mark.sound, pytest.mark.speech]

FILES = Path(__file__).parent / "lab"
BENCH = FILES / "understanding_bench.yaml"
PATIENCE_S = 180.0


def test_it_is_asked_again_until_both_wishes_are_understood(tmp_path: Path) -> None:
    with lab_of_its_own(FILES / "understanding.settings.yaml") as lab:
        runs = LabRuns(tmp_path, lab)
        try:
            folder = runs.prepare(FILES / "understanding.yaml", BENCH)
            runs.start(folder).goodbye(PATIENCE_S)
        finally:
            runs.close()
    entries = rows(folder)
    told = [entry.record.observation for entry in entries if isinstance(entry.record, Observed)]
    assert [(one.name, one.slots) for one in told if isinstance(one, Intent)] == [
        ("add_to_list#set_timer", (("duration", "5 minutes"),)),
        ("add_to_list#set_timer", (("duration", "5 minutes"), ("item", "eggs"))),
    ]
    # What it has not understood it has not done.
    assert [(one.name, one.value) for one in told if isinstance(one, StateTold) and one.value] == [
        ("timer", "5 minutes"),
        ("shopping_list", "eggs"),
    ]
    first, second = (entry.record for entry in entries if isinstance(entry.record, AttemptFinished))
    assert first.understood is not None
    assert (first.outcome, first.understood.intents_right, first.understood.right) == (Outcome.MISHEARD, True, False)
    assert second.understood is not None
    assert (second.outcome, second.understood.right) == (Outcome.RESPONDED, True)
    assert second.understood.source is EvidenceSource.DEVICE
    assert second.understood.slots == (Slot("duration", "5 minutes"), Slot("item", "eggs"))
    assert [row.outcome for row in verdicts(entries)] == [Outcome.RESPONDED]

    figures = SessionFigures()
    for entry in entries:
        figures.add(entry)
    progress = figures.snapshot()
    found = progress.totals.understood
    assert (found.right, found.first_right, found.first_intents) == (Share(1, 1), Share(0, 1), Share(1, 1))
    assert progress.totals.to_judge == 1  # its first response is for raters, as that of any query
    corpora = session_corpora([progress], Which.FIRST)
    assert [len(one.slots or ()) for one in (*corpora.gold.utterances, *corpora.predicted.utterances)] == [2, 1]

    shown = CliRunner().invoke(group, ["show", str(folder)])
    assert "understood           1 of 1 = 100 %" in shown.output
    assert '= add_to_list, = set_timer, = duration "5 minutes", = item "eggs"' in shown.output
    assert "holds  min_understood_share: wanted 1, found 1" in shown.output
    (row,) = csv.DictReader(io.StringIO(CliRunner().invoke(group, ["show", str(folder), "--csv"]).output))
    assert (row["understood"], row["frame_right"]) == ("add_to_list#set_timer (duration: 5 minutes, item: eggs)", "1")
    assert b"attempt 1: intents right, slots not: add_to_list#set_timer (duration: 5 minutes)" in junit(folder)
