"""What was heard, scored again from its files: by every group the counts are those of the session."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.model.choices import Grouping
from harness.model.record import TrialFinished, TrialStarted
from harness.model.scenario import TrialKind
from harness.model.trial import Outcome, Recognition
from harness.session.figures.progress import SessionFigures
from harness.session.figures.trials import FirstAndFinalWords, TranscribedTrial, by_group, heard_in, words_of
from harness.transcripts.recognition import SamplingUnit
from harness.wake.wake import WakeFigures
from tests.command import harness, succeeded
from tests.unit.session.figures.rows import Rows, planned
from tests.unit.wake.wake_rows import WakeRows, rows_of, wake_trial
from tests.written_sessions import written

LEVELS = ("-38", "-26", "-8")
VOICES = ('ann, "the\n first"', "=bob()", "東京\x1b[31m")
HEARD = ("what time is it", "what lime is", "", None, "what time is it now")


def two_axes() -> Rows:
    """Queries over two axes, with labels that a spreadsheet, a terminal or CSV might take for something else."""
    conditions = [(("voice", voice), ("level_dbfs", level)) for voice in VOICES for level in LEVELS]
    plan = [replace(planned(number), conditions=labels) for number, labels in enumerate(conditions, 1)]
    rows = Rows.of(*plan)
    for number, trial in enumerate(plan):
        rows.add(TrialStarted(trial.id, 1))
        first, last = HEARD[number % 5], HEARD[(number + 2) % 5]
        rows.attempt(trial.id, 1, Outcome.MISHEARD, Recognition.NO, heard=first, latency_s=None)
        rows.attempt(trial.id, 2, Outcome.RESPONDED, Recognition.YES, heard=last, latency_s=None)
        rows.add(TrialFinished(trial.id, 1, Outcome.RESPONDED, 2, 2))
    return rows


def commands() -> WakeRows:
    trials = [wake_trial(number, TrialKind.COMMAND, ("kitchen", "den")) for number in (1, 2)]
    rows = rows_of(*trials)
    rows.play(trials[0], words=[("kitchen", 2.6, "turn on the light"), ("den", 2.7, "turn it off the light")])
    rows.play(trials[1], words=[("kitchen", 2.6, "intent:lights"), ("den", 2.8, "turn on light")])
    return rows


def heard_of(rows: Rows | WakeRows) -> tuple[TranscribedTrial, ...]:
    figures, wake = SessionFigures(), WakeFigures()
    for entry in rows.entries:
        figures.add(entry)
        wake.add(entry)
    return heard_in(figures.snapshot().trials, wake)


def scored(folder: Path, name: str) -> dict[str, list[dict[str, Any]]]:
    """By the name of each grouping, its values."""
    files = [str(folder / f"{name}{end}") for end in (".ref.trn", ".trn", ".groups.csv")]
    command = ["score", "-r", files[0], "-H", files[1], "--groups", files[2], "--json", "-"]
    result = succeeded(harness(*command))
    report = json.loads(result.stdout)
    assert (report["without_group"], report["groups_of_no_utterance"], report["groups_left_out"]) == ([], [], [])
    return {grouping["by"]: grouping["values"] for grouping in report["groups"]}


COUNTED = ("correct", "substitutions", "deletions", "insertions", "sentences", "sentences_with_error")


def counts(group: dict[str, Any]) -> tuple[int, ...]:
    return tuple(group[key] for key in COUNTED)


@pytest.mark.parametrize("rows", [two_axes(), commands()], ids=["queries", "commands"])
def test_counts_by_group_match_the_session(rows: Rows | WakeRows, tmp_path: Path) -> None:
    session = written(tmp_path / "session", rows)
    result = succeeded(harness("export", session, "--trn", tmp_path / "out"))
    assert f"--groups {tmp_path / 'out' / 'first.groups.csv'}" in result.output
    heard = heard_of(rows)

    def expected(grouping: Grouping, which: str) -> list[tuple[int, ...]]:
        words = [getattr(group, which) for _, group in by_group(heard, grouping)]
        return sorted(tuple(getattr(score.counts, key) for key in COUNTED) for score in words if score.transcripts)

    for which in FirstAndFinalWords.__slots__:
        groupings = scored(tmp_path / "out", which)
        assert len(groupings) >= len(Grouping) - 1
        for grouping_name, values in groupings.items():
            assert sorted(map(counts, values)) == expected(Grouping(grouping_name), which), grouping_name


def test_intervals_over_queries_match_the_session(tmp_path: Path) -> None:
    """Eight queries, each said five times and heard the same each time: by utterance the interval is far narrower."""
    plan = [replace(planned(number), query_id=f"query{number % 8}") for number in range(1, 41)]
    rows = Rows.of(*plan)
    for trial in plan:
        heard = "what time is it" if trial.query_id > "query2" else "what lime it is"
        rows.trial(trial.id, heard=heard, latency_s=None)
    session = written(tmp_path / "session", rows)
    assert harness("export", session, "--trn", tmp_path).exit_code == 0
    files = [str(tmp_path / f"final{end}") for end in (".ref.trn", ".trn", ".groups.csv")]
    command = ["score", "-r", files[0], "-H", files[1], "--json", "-"]
    by_query, alone = (json.loads(harness(*words).stdout) for words in ([*command, "--groups", files[2]], command))
    session_words = words_of(heard_of(rows)).final
    assert session_words.unit is SamplingUnit.QUERIES
    assert (by_query["interval_over"], tuple(by_query["interval"])) == ("queries", session_words.interval)
    assert alone["interval_over"] == "utterances"
    assert alone["interval"][1] - alone["interval"][0] < 0.7 * (by_query["interval"][1] - by_query["interval"][0])
    for grouping in by_query["groups"]:
        units = "utterances" if grouping["by"] == "query" else "queries"
        assert {value["interval_over"] for value in grouping["values"]} == {units}, grouping["by"]


def test_labels_match_the_session(tmp_path: Path) -> None:
    session = written(tmp_path / "session", two_axes())
    assert harness("export", session, "--trn", tmp_path).exit_code == 0
    groupings = scored(tmp_path, "first")
    assert [group["value"] for group in groupings["level_dbfs"]] == list(LEVELS)
    assert {group["value"] for group in groupings["voice"]} == {'ann, "the\\n first"', "=bob()", "東京\\e[31m"}
    assert [group["value"] for group in groupings["position"]] == [None]
    assert len(groupings["condition"]) == 7  # 9 less the 2 first attempts without a transcript
