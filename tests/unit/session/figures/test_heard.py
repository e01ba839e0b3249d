"""What devices heard against what was said: first and deciding attempts, groups, and what is left out."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.base.codec import RECORDS, decode, encode
from harness.model.bench import ObservationKind
from harness.model.choices import Grouping
from harness.model.record import RerunAsked, TrialFinished, TrialStarted
from harness.model.scenario import TrialKind
from harness.model.stimulus import NoiseKind, NoiseSpec, Recording
from harness.model.transcript import WordCounts
from harness.model.trial import Outcome, Recognition, Trial
from harness.session.figures.progress import Progress, SessionFigures
from harness.session.figures.trials import by_group, heard_in, words_of
from harness.statistics.intervals import Share
from harness.statistics.word_intervals import wer_interval
from harness.transcripts.recognition import HeardUnit, WordsHeard
from harness.wake.wake import WakeFigures
from tests.unit.session.figures.rows import Rows, planned
from tests.unit.wake.wake_rows import WakeRows, wake_trial

ASKED = "what time is it"
RIGHT = WordCounts(4, 0, 0, 0, 1, 0)
WRONG = WordCounts(2, 1, 1, 0, 1, 1)
Attempts = list[tuple[Outcome, str | None]]
MISHEARD, NO_WAKE, INTERRUPTED = Outcome.MISHEARD, Outcome.NO_WAKE, Outcome.INTERRUPTED
RESPONDED, INCONCLUSIVE = Outcome.RESPONDED, Outcome.INCONCLUSIVE


def progress_of(rows: Rows) -> Progress:
    figures = SessionFigures()
    for entry in rows.entries:
        figures.add(entry)
    return figures.snapshot()


def take(rows: Rows, trial_id: str, attempts: Attempts, outcome: Outcome | None = None, number: int = 1) -> None:
    """A whole take; it ends as its last attempt did unless told otherwise."""
    rows.add(TrialStarted(trial_id, number))
    for attempt, (how, heard) in enumerate(attempts, 1):
        right = Recognition.YES if how is RESPONDED else Recognition.NO if heard is not None else Recognition.UNKNOWN
        rows.attempt(trial_id, attempt, how, right, take=number, heard=heard, latency_s=None)
    rows.add(TrialFinished(trial_id, number, outcome or attempts[-1][0], len(attempts), len(attempts)))


def session(*trials: Attempts) -> Progress:
    rows = Rows()
    rows.start(*(planned(number) for number in range(1, len(trials) + 1)))
    for number, attempts in enumerate(trials, 1):
        take(rows, f"time-{number}", attempts)
    return progress_of(rows)


def test_first_and_final() -> None:
    totals = session(
        [(RESPONDED, "What time is it?")],
        [(MISHEARD, "what time was it"), (MISHEARD, "time is it now"), (RESPONDED, "Okay Nabu, what time is it")],
        [(MISHEARD, "what lime is it"), (MISHEARD, "")],
    ).totals
    assert totals.first_words.counts == WordCounts(10, 2, 0, 0, 3, 2)
    assert totals.first_words.wer == pytest.approx(2 / 12)
    # The phrase that the device is called by is not known to this trial, so its two words are insertions.
    assert totals.final_words.counts == WordCounts(8, 0, 4, 2, 3, 2)
    assert totals.attempts_needed == ((1, Share(1, 3)), (3, Share(1, 3)), (None, Share(1, 3)))


def test_the_interval_is_that_of_attempts_and_none_over_nothing() -> None:
    assert WordsHeard().interval is None
    assert WordsHeard.of([("time", None)]).interval is None
    words = WordsHeard.of([("time", RIGHT), ("time", WRONG), ("time", None), ("date", RIGHT)])
    assert words.interval == wer_interval([0, 2, 0], [4, 4, 4])
    assert words.unit is HeardUnit.ATTEMPTS


def test_from_six_queries_on_the_interval_is_that_of_queries() -> None:
    heard = [(f"q{number % 6}", WRONG if number % 6 == 1 else RIGHT) for number in range(24)]
    five = WordsHeard.of([("q4", counts) if query == "q5" else (query, counts) for query, counts in heard])
    six = WordsHeard.of(heard)
    assert (five.unit, six.unit) == (HeardUnit.ATTEMPTS, HeardUnit.QUERIES)
    assert six.interval == wer_interval([8, *[0] * 5], [16] * 6)
    assert five.interval is not None
    assert six.interval is not None
    # One of six queries is always misheard: its four repetitions are no four witnesses.
    assert six.interval[0] < five.interval[0] < five.interval[1] < six.interval[1]


def test_repetitions_do_not_make_surer_that_no_word_is_wrong() -> None:
    often = WordsHeard.of((f"q{number % 6}", RIGHT) for number in range(600))
    once = WordsHeard.of((f"q{number}", RIGHT) for number in range(6))
    assert often.interval == once.interval == wer_interval([0] * 6, [4] * 6)


def test_sums_of_two_devices_keep_their_queries() -> None:
    three = WordsHeard.of((f"q{number}", RIGHT) for number in range(3))
    others = WordsHeard.of((f"q{number}", WRONG) for number in range(3, 6))
    assert (three + others).unit is HeardUnit.QUERIES
    assert (three + three).unit is HeardUnit.ATTEMPTS
    with pytest.raises(ValueError, match="0 queries for 1 transcripts"):
        WordsHeard((RIGHT,), (), 1)


def test_a_wake_phrase_at_the_front_is_taken_off() -> None:
    rows = Rows()
    rows.start(replace(planned(1), wake_phrases=("okay nabu",)))
    take(rows, "time-1", [(RESPONDED, "Okay Nabu, what time is it")])
    assert progress_of(rows).totals.first_words.counts == RIGHT


def test_attempts_without_a_transcript_stand_beside() -> None:
    totals = session(
        [(NO_WAKE, None), (RESPONDED, ASKED)],
        [(RESPONDED, ASKED)],
        [(INCONCLUSIVE, None)],
        [(MISHEARD, "what"), (NO_WAKE, None)],
    ).totals
    assert (totals.first_words.counts.sentences, totals.first_words.attempts) == (2, 4)
    assert totals.first_words.counts == WordCounts(5, 0, 3, 0, 2, 1)
    assert (totals.final_words.counts, totals.final_words.attempts) == (RIGHT + RIGHT, 4)


def test_interrupted_attempts_test_nothing() -> None:
    totals = session([(INTERRUPTED, "what"), (RESPONDED, ASKED)], [(INTERRUPTED, "what"), (INTERRUPTED, None)]).totals
    assert totals.first_words == totals.final_words == WordsHeard((RIGHT,), ("time",), 1)


@pytest.mark.parametrize("outcome", [Outcome.SKIPPED, Outcome.ABORTED, INTERRUPTED])
def test_takes_that_say_nothing_of_the_device_are_left_out(outcome: Outcome) -> None:
    rows = Rows()
    rows.start(planned(1), planned(2))
    take(rows, "time-1", [(MISHEARD, "what")], outcome)
    rows.add(TrialFinished("time-2", 1, outcome, 0, None))
    assert progress_of(rows).totals.first_words == WordsHeard()


def test_the_latest_finished_take_counts() -> None:
    rows = Rows()
    rows.start(planned(1))
    take(rows, "time-1", [(MISHEARD, "what")])
    rows.add(RerunAsked("time-1", 2, "ann"))
    rows.add(TrialStarted("time-1", 2))
    assert progress_of(rows).totals.first_words.counts == WordCounts(1, 0, 3, 0, 1, 1)
    take(rows, "time-1", [(RESPONDED, ASKED)], number=2)
    assert progress_of(rows).totals.first_words.counts == RIGHT


def test_alternatives_count_by_the_one_that_fits_best() -> None:
    rows = Rows()
    rows.start(replace(planned(1), alternatives=("tell me the time please",)))
    take(rows, "time-1", [(MISHEARD, "tell me the dime please"), (RESPONDED, ASKED)])
    totals = progress_of(rows).totals
    assert totals.first_words.counts == WordCounts(4, 1, 0, 0, 1, 1)
    assert totals.final_words.counts == RIGHT


def sounding(number: int, **conditions: str) -> Trial:
    return replace(planned(number), conditions=tuple(conditions.items()))


def test_groups_are_those_of_the_matrix_else_of_how_it_sounds() -> None:
    quiet, loud = sounding(1, level_dbfs="-40", voice="ann"), sounding(2, level_dbfs="-20", voice="ann")
    bare = replace(planned(3), query_class="clock")
    pink = replace(bare.recipe, noise=NoiseSpec(NoiseKind.PINK, 5.0), query=Recording("/a/b.wav"))
    noisy = replace(bare, id="time-4", recipe=pink, query_class="", device="den", conditions=(("voice", "ann"),))
    rows = Rows()
    rows.start(quiet, loud, bare, noisy)
    take(rows, "time-1", [(MISHEARD, "what")])
    for number in (2, 3, 4):
        take(rows, f"time-{number}", [(RESPONDED, ASKED)])
    found = heard_in(progress_of(rows).trials)

    def shown(grouping: Grouping) -> list[tuple[str, int, int]]:
        groups = by_group(found, grouping)
        return [(label, of.first.counts.errors, of.first.counts.words) for label, of in groups]

    assert shown(Grouping.LEVEL) == [("-40", 3, 4), ("-20", 0, 4), ("-26", 0, 8)]
    assert shown(Grouping.VOICE) == [("ann", 3, 8), ("espeak:en-us", 0, 4), ("recording", 0, 4)]
    assert shown(Grouping.NOISE) == [("quiet", 3, 12), ("pink 5 dB", 0, 4)]
    assert shown(Grouping.CONDITION) == [
        ("level_dbfs=-40 voice=ann", 3, 4), ("level_dbfs=-20 voice=ann", 0, 4), ("", 0, 4), ("voice=ann", 0, 4)
    ]  # fmt: skip
    assert shown(Grouping.DEVICE) == [("kitchen", 3, 12), ("den", 0, 4)]
    assert shown(Grouping.QUERY_CLASS) == [("", 3, 12), ("clock", 0, 4)]
    assert shown(Grouping.QUERY) == [("time", 3, 16)]
    assert shown(Grouping.POSITION) == [("", 3, 16)]
    assert shown(Grouping.GAP) == [("250", 3, 16)]
    assert shown(Grouping.KIND) == [("query", 3, 16)]


def told(trial: Trial) -> Trial:
    """The same, with devices that report transcripts."""
    listening = trial.listening
    assert listening is not None
    targets = tuple(replace(one, reports=(ObservationKind.TRANSCRIPT,)) for one in listening.targets)
    return replace(trial, listening=replace(listening, targets=targets))


def test_commands_count_for_each_device_that_tells_its_words() -> None:
    command = TrialKind.COMMAND
    both = [told(wake_trial(number, command, ("kitchen", "den"))) for number in (1, 2)]
    mute = wake_trial(3, command, ("shed",))
    wake = told(wake_trial(4, TrialKind.WAKE, ("kitchen",)))
    rows = WakeRows()
    rows.plan(*both, mute, wake)
    rows.play(both[0], words=[("kitchen", 2.6, "alexa turn on the light"), ("den", 2.7, "turn off the light")])
    rows.play(both[1], words=[("den", 2.6, "intent:lights")])
    rows.play(mute, words=[("shed", 2.6, "intent:turn on the light")])
    rows.play(wake, words=[("kitchen", 2.6, "hello")])
    found = heard_in(progress_of(rows).trials, rows.figures)
    groups = dict(by_group(found, Grouping.DEVICE))
    assert (
        groups["kitchen"].first == groups["kitchen"].final == WordsHeard((WordCounts(4, 0, 0, 0, 1, 0),), ("time",), 2)
    )
    assert groups["den"].first == WordsHeard((WordCounts(3, 1, 0, 0, 1, 1),), ("time",), 2)
    assert sorted(groups) == ["den", "kitchen"]
    assert [rows.device(name).words for name in ("kitchen", "den", "shed")] == [
        groups["kitchen"].first, groups["den"].first, WordsHeard()
    ]  # fmt: skip
    assert [label for label, _ in by_group(found, Grouping.KIND)] == ["command"]


def test_a_command_that_is_played_again_counts_once() -> None:
    command = told(wake_trial(1, TrialKind.COMMAND))
    rows = WakeRows()
    rows.plan(command)
    rows.play(command, words=[("kitchen", 2.6, "turn")])
    rows.play(command, words=[("kitchen", 2.6, "turn on the light")], take=2)
    right = WordsHeard((WordCounts(4, 0, 0, 0, 1, 0),), ("time",), 1)
    assert words_of(heard_in((), rows.figures)).final == rows.device().words == right


heard_texts = st.sampled_from([None, "", ASKED, "what time", "is it", "what is the time it is", "a b c"])
outcomes = st.sampled_from([RESPONDED, MISHEARD, NO_WAKE, INTERRUPTED, INCONCLUSIVE])


@given(st.lists(st.lists(st.tuples(outcomes, heard_texts), min_size=1, max_size=4), max_size=5))
def test_groups_add_up_to_the_totals_wherever_the_log_was_cut(trials: list[Attempts]) -> None:
    rows = Rows()
    rows.start(*(sounding(number, voice="ab"[number % 2]) for number in range(1, len(trials) + 1)))
    for number, attempts in enumerate(trials, 1):
        take(rows, f"time-{number}", attempts)
    # Read in one go, and as a client that comes back and is told the last rows again.
    straight, broken = SessionFigures(), SessionFigures()
    for at, entry in enumerate(rows.entries):
        straight.add(entry)
        for again in rows.entries[max(0, at - 3) : at + 1]:
            broken.add(again)
        broken.snapshot()
    totals = straight.snapshot().totals
    assert (totals.first_words, totals.final_words) == (
        broken.snapshot().totals.first_words, broken.snapshot().totals.final_words
    )  # fmt: skip
    found = heard_in(straight.snapshot().trials, WakeFigures())
    for grouping in Grouping:
        groups = [group for _, group in by_group(found, grouping)]
        assert sum((one.first.counts for one in groups), WordCounts()) == totals.first_words.counts
        assert sum(one.final.attempts for one in groups) == totals.final_words.attempts
    assert totals.final_words.attempts <= totals.first_words.attempts <= len(trials)


def test_a_log_from_before_there_were_lists_of_words_is_read() -> None:
    rows = Rows()
    rows.start(planned(1))
    take(rows, "time-1", [(MISHEARD, "what lime is it")])
    figures = SessionFigures()
    for entry in rows.entries:
        text = encode(RECORDS, entry.record).decode("utf-8")
        older = text.replace('"wer":0.0,"rewriting":null', '"wer":0.0')
        assert "rewriting" not in older
        figures.add(replace(entry, record=decode(RECORDS, older)))
    assert figures.snapshot().totals.first_words.counts.substitutions == 1
