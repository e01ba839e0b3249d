"""Commands by their words: STT lines, counts beside CMD lines, and a log that adds up when it is read back."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from harness.cli import group
from harness.model.bench import ObservationKind
from harness.model.scenario import RecognitionRule, TrialKind
from harness.model.trial import Trial
from harness.offline.wake_log import MissedFile, Spot, TranscriptLine, computed_totals, differences, summary, write
from harness.offline.wake_log_reading import read
from harness.report.session import WholeSession
from harness.report.wake_log_session import wake_log
from harness.session.figures.trials import heard_in, words_of
from tests.known import known
from tests.unit.wake.wake_rows import WakeRows, rows_of, wake_trial
from tests.written_sessions import written

COMMAND = TrialKind.COMMAND


def command(number: int, reference: str = "turn on the light", *, tells: bool = True, wer: float = 0.0) -> Trial:
    trial = wake_trial(number, COMMAND, reference=reference)
    listening = known(trial.listening)
    reports = (ObservationKind.TRANSCRIPT,) if tells else ()
    targets = tuple(replace(target, reports=reports) for target in listening.targets)
    return replace(
        trial,
        listening=replace(listening, targets=targets),
        recognised=RecognitionRule(wer=wer),
        alternatives=("set it to 50%",),
    )


@pytest.fixture
def rows() -> WakeRows:
    """A wake trial; commands: right with a phrase in front, an alternative misheard, silence, and only an intent."""
    trials = [command(number, wer=0.25) for number in (2, 3, 4, 5)]
    wake_rows = rows_of(wake_trial(1), *trials)
    wake_rows.play(wake_trial(1), [("kitchen", 1.75)])
    wake_rows.play(trials[0], words=[("kitchen", 2.6, "Alexa, turn on the light!")])
    wake_rows.play(trials[1], words=[("kitchen", 2.6, "set it to 15 per cent")])
    wake_rows.play(trials[2])
    wake_rows.play(trials[3], words=[("kitchen", 2.6, "intent:turn on the light")])
    return wake_rows


def test_commands_are_logged_by_their_words(rows: WakeRows) -> None:
    log = wake_log(WholeSession.of(rows.entries), "kitchen", words=True)
    assert [event.key for event in log.events] == ["INVTA", "STTTA", "STTSB", "STTFR", "CMDTA"]
    _, right, wrong, silent, intent = log.events
    assert isinstance(right, TranscriptLine)
    assert (right.phrase, right.reference, right.words, right.wer) == ("turn on the light", "turn on the light", 4, 0)
    assert isinstance(wrong, TranscriptLine)
    # Allowed by the scenario's share of errors, and all the same a mismatch of words.
    assert (wrong.phrase, wrong.reference) == ("set it to fifteen percent", "set it to fifty percent")
    assert (wrong.words, wrong.substitutions, wrong.additions, wrong.deletions, wrong.wer) == (5, 1, 0, 0, 20)
    assert isinstance(silent, MissedFile)
    assert silent.reference == "turn on the light"
    assert isinstance(intent, Spot)
    assert intent.extras == (("x-trial", "command-5"),)
    assert log.about("x-normalisation") == "spoken"
    assert log.about("x-words-allowed-wrong") == "0.25"
    totals = dict(log.totals)
    # Of a command of which nothing was told every word counts as left out.
    assert {key: value for key, value in totals.items() if key.startswith("WER_")} == {
        "WER_WORDS": 13, "WER_SUBSTITUTIONS": 1, "WER_INSERTIONS": 0, "WER_DELETIONS": 4,
    }  # fmt: skip
    assert totals["WER"] == pytest.approx(100 * 5 / 13)
    assert (totals["FRCOUNT"], totals["FR+SBCOUNT"], totals["TACOUNT"]) == (1, 2, 3)
    assert "13 Words, 1 Substitutions, 0 Insertions, 4 Deletions, 38.462% WER" in summary(log)
    assert differences(read(write(log))) == ()


def test_without_words_the_counts_stand_beside(rows: WakeRows) -> None:
    log = wake_log(WholeSession.of(rows.entries), "kitchen")
    assert [event.key for event in log.events] == ["INVTA", "CMDTA", "CMDTA", "CMDFR", "CMDTA"]
    wrong = read(write(log)).events[2]
    assert isinstance(wrong, Spot)
    assert (wrong.phrase, wrong.reference) == ("set it to 15 per cent", "turn on the light")
    assert wrong.extras == (
        ("x-trial", "command-3"), ("x-words", "5"), ("x-substitutions", "1"), ("x-insertions", "0"),
        ("x-deletions", "0"),
    )  # fmt: skip
    assert "WER" not in dict(log.totals)


def test_a_device_without_transcripts_has_no_word_lines() -> None:
    trial = command(1, tells=False)
    rows = rows_of(trial)
    rows.play(trial)
    log = wake_log(WholeSession.of(rows.entries), "kitchen", words=True)
    assert [event.key for event in log.events] == ["CMDFR"]
    assert log.about("x-normalisation") is None


WORD_TEXTS = st.sampled_from(
    ["", "turn on the light", "turn the lights", "Alexa turn on", "set it to 50 %", 'a "b" c', "7x8"]
)


@given(st.lists(st.tuples(WORD_TEXTS, st.sampled_from(["turn on the light", "what is 7x8", "it's 5°"])), max_size=5))
def test_a_log_of_words_adds_up_when_read_back(plays: list[tuple[str, str]]) -> None:
    trials = [command(number, reference) for number, (_, reference) in enumerate(plays)]
    rows = rows_of(*trials, wake_trial(99))
    for trial, (text, _) in zip(trials, plays, strict=True):
        rows.play(trial, words=[("kitchen", 2.8, text)] if text else [])
    session = WholeSession.of(rows.entries)
    log = wake_log(session, "kitchen", words=True)
    back = read(write(log))
    assert differences(back) == ()
    totals = computed_totals(back)
    assert totals == pytest.approx(dict(log.totals))
    counts = words_of(heard_in((), session.wake)).final.counts
    unheard = sum(len(event.reference.split()) for event in back.events if isinstance(event, MissedFile))
    assert totals.get("WER_WORDS", 0) == counts.words + unheard
    assert totals.get("WER_DELETIONS", 0) == counts.deletions + unheard
    assert totals.get("WER_SUBSTITUTIONS", 0) == counts.substitutions
    assert totals.get("WER_INSERTIONS", 0) == counts.insertions


def test_export_with_words_adds_their_totals(rows: WakeRows, tmp_path: Path) -> None:
    folder = tmp_path / "s1"
    written(folder, rows)
    result = CliRunner().invoke(group, ["export", str(folder), "--wake-log", "-", "--words"])
    assert result.exit_code == 0, result.output
    assert dict(read(result.stdout).totals)["WER_WORDS"] == 13
