"""What devices heard and understood against what was said; sessions as annotated corpora."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.base.codec import RECORDS, decode, encode
from harness.model.bench import ObservationKind
from harness.model.choices import CountedAttempt, Grouping
from harness.model.record import (
    AttemptFinished,
    AttemptStarted,
    Entry,
    Record,
    RerunAsked,
    SessionStarted,
    TrialFinished,
    TrialStarted,
    UnderstandingResult,
)
from harness.model.scenario import Limits, RepeatUntil, RepromptRule, TrialKind
from harness.model.stimulus import NoiseKind, NoiseSpec, Recording
from harness.model.transcript import WordCounts
from harness.model.trial import EvidenceSource, Outcome, Recognition, Trial
from harness.model.understanding import ExpectedFrame, Slot, Utterance
from harness.rating.figures.judged_responses import rated_trials_of
from harness.session.figures.frames_of_session import session_corpora
from harness.session.figures.limits import check_limits
from harness.session.figures.progress import Progress, SessionFigures
from harness.session.figures.trials import by_group, group_of, heard_in, label_of, words_of
from harness.statistics.intervals import Share
from harness.statistics.word_intervals import wer_interval
from harness.transcripts.recognition import GroupTranscripts, SamplingUnit
from harness.wake.wake import WakeFigures
from tests.known import known
from tests.unit.session.figures.rows import Rows, planned
from tests.unit.session.material import trial
from tests.unit.wake.wake_rows import WakeRows, wake_trial
from tests.written_sessions import progress_of

ASKED = "what time is it"
RIGHT = WordCounts(4, 0, 0, 0, 1, 0)
WRONG = WordCounts(2, 1, 1, 0, 1, 1)
Attempts = list[tuple[Outcome, str | None]]
MISHEARD, NO_WAKE, INTERRUPTED = Outcome.MISHEARD, Outcome.NO_WAKE, Outcome.INTERRUPTED
RESPONDED, INCONCLUSIVE = Outcome.RESPONDED, Outcome.INCONCLUSIVE


def take(rows: Rows, trial_id: str, attempts: Attempts, outcome: Outcome | None = None, number: int = 1) -> None:
    """A whole take; it ends as its last attempt did unless told otherwise."""
    rows.add(TrialStarted(trial_id, number))
    for attempt, (result, heard) in enumerate(attempts, 1):
        right = Recognition.YES if result is RESPONDED else Recognition.NO if heard is not None else Recognition.UNKNOWN
        rows.attempt(trial_id, attempt, result, right, take=number, heard=heard, latency_s=None)
    rows.add(TrialFinished(trial_id, number, outcome or attempts[-1][0], len(attempts), len(attempts)))


def session(*trials: Attempts) -> Progress:
    rows = Rows.of(*(planned(number) for number in range(1, len(trials) + 1)))
    for number, attempts in enumerate(trials, 1):
        take(rows, f"time-{number}", attempts)
    return progress_of(rows)


def test_words_of_first_and_final_attempts_are_counted() -> None:
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


def test_the_interval_is_over_attempts_and_undefined_without_any() -> None:
    assert GroupTranscripts().interval is None
    assert GroupTranscripts.of([("time", None)]).interval is None
    words = GroupTranscripts.of([("time", RIGHT), ("time", WRONG), ("time", None), ("date", RIGHT)])
    assert words.interval == wer_interval([0, 2, 0], [4, 4, 4])
    assert words.unit is SamplingUnit.ATTEMPTS


def test_from_six_queries_on_the_interval_is_that_of_queries() -> None:
    heard = [(f"q{number % 6}", WRONG if number % 6 == 1 else RIGHT) for number in range(24)]
    five = GroupTranscripts.of([("q4", counts) if query == "q5" else (query, counts) for query, counts in heard])
    six = GroupTranscripts.of(heard)
    assert (five.unit, six.unit) == (SamplingUnit.ATTEMPTS, SamplingUnit.QUERIES)
    assert six.interval == wer_interval([8, *[0] * 5], [16] * 6)
    assert five.interval is not None
    assert six.interval is not None
    # One of six queries is always misheard: its four repetitions are no four witnesses.
    assert six.interval[0] < five.interval[0] < five.interval[1] < six.interval[1]


def test_repeating_queries_without_errors_does_not_narrow_the_interval() -> None:
    often = GroupTranscripts.of((f"q{number % 6}", RIGHT) for number in range(600))
    single = GroupTranscripts.of((f"q{number}", RIGHT) for number in range(6))
    assert often.interval == single.interval == wer_interval([0] * 6, [4] * 6)


def test_sums_of_two_devices_keep_their_queries() -> None:
    three = GroupTranscripts.of((f"q{number}", RIGHT) for number in range(3))
    others = GroupTranscripts.of((f"q{number}", WRONG) for number in range(3, 6))
    assert (three + others).unit is SamplingUnit.QUERIES
    assert (three + three).unit is SamplingUnit.ATTEMPTS
    with pytest.raises(ValueError, match="0 queries for 1 transcripts"):
        GroupTranscripts((RIGHT,), (), 1)


def test_a_wake_phrase_at_the_front_is_taken_off() -> None:
    rows = Rows.of(replace(planned(1), wake_phrases=("okay nabu",)))
    take(rows, "time-1", [(RESPONDED, "Okay Nabu, what time is it")])
    assert progress_of(rows).totals.first_words.counts == RIGHT


def test_attempts_without_a_transcript_are_counted_separately() -> None:
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
    assert totals.first_words == totals.final_words == GroupTranscripts((RIGHT,), ("time",), 1)


@pytest.mark.parametrize("outcome", [Outcome.SKIPPED, Outcome.ABORTED, INTERRUPTED])
def test_takes_that_say_nothing_of_the_device_are_left_out(outcome: Outcome) -> None:
    rows = Rows.of(planned(1), planned(2))
    take(rows, "time-1", [(MISHEARD, "what")], outcome)
    rows.add(TrialFinished("time-2", 1, outcome, 0, None))
    assert progress_of(rows).totals.first_words == GroupTranscripts()


def test_the_latest_finished_take_counts() -> None:
    rows = Rows.of(planned(1))
    take(rows, "time-1", [(MISHEARD, "what")])
    rows.add(RerunAsked("time-1", 2, "ann"))
    rows.add(TrialStarted("time-1", 2))
    assert progress_of(rows).totals.first_words.counts == WordCounts(1, 0, 3, 0, 1, 1)
    take(rows, "time-1", [(RESPONDED, ASKED)], number=2)
    assert progress_of(rows).totals.first_words.counts == RIGHT


def sounding(number: int, **conditions: str) -> Trial:
    return replace(planned(number), conditions=tuple(conditions.items()))


def test_groups_come_from_the_matrix_or_the_sound() -> None:
    quiet, loud = sounding(1, level_dbfs="-40", voice="ann"), sounding(2, level_dbfs="-20", voice="ann")
    bare = replace(planned(3), query_class="clock")
    pink = replace(bare.recipe, noise=NoiseSpec(NoiseKind.PINK, 5.0), query=Recording("/a/b.wav"))
    noisy = replace(bare, id="time-4", recipe=pink, query_class="", device="den", conditions=(("voice", "ann"),))
    rows = Rows.of(quiet, loud, bare, noisy)
    take(rows, "time-1", [(MISHEARD, "what")])
    for number in (2, 3, 4):
        take(rows, f"time-{number}", [(RESPONDED, ASKED)])
    heard = heard_in(progress_of(rows).trials)

    def shown(grouping: Grouping) -> list[tuple[str, int, int]]:
        groups = by_group(heard, grouping)
        return [
            (label, transcripts.first.counts.errors, transcripts.first.counts.words) for label, transcripts in groups
        ]

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


@pytest.mark.parametrize(
    ("grouping", "label"),
    [(Grouping.DEVICE, "kitchen"), (Grouping.KIND, "query"), (Grouping.QUERY, "time"), (Grouping.VOICE, "ann")],
)
def test_a_column_of_recordings_cannot_replace_what_a_trial_is_about(grouping: Grouping, label: str) -> None:
    trial = sounding(1, voice="ann", device="phone", kind="read", query="19")
    assert [label_of(trial, "kitchen", name) for name in (grouping, grouping.value)] == [label, label]


def told(trial: Trial) -> Trial:
    """The same, with devices that report transcripts."""
    listening = known(trial.listening)
    targets = tuple(replace(target, reports=(ObservationKind.TRANSCRIPT,)) for target in listening.targets)
    return replace(trial, listening=replace(listening, targets=targets))


def test_commands_count_for_each_device_that_tells_its_words() -> None:
    command = TrialKind.COMMAND
    commands = [told(wake_trial(number, command, ("kitchen", "den"))) for number in (1, 2)]
    mute = wake_trial(3, command, ("shed",))
    wake = told(wake_trial(4, TrialKind.WAKE, ("kitchen",)))
    rows = WakeRows()
    rows.plan(*commands, mute, wake)
    rows.play(commands[0], words=[("kitchen", 2.6, "alexa turn on the light"), ("den", 2.7, "turn off the light")])
    rows.play(commands[1], words=[("den", 2.6, "intent:lights")])
    rows.play(mute, words=[("shed", 2.6, "intent:turn on the light")])
    rows.play(wake, words=[("kitchen", 2.6, "hello")])
    heard = heard_in(progress_of(rows).trials, rows.figures)
    groups = dict(by_group(heard, Grouping.DEVICE))
    assert (
        groups["kitchen"].first
        == groups["kitchen"].final
        == GroupTranscripts((WordCounts(4, 0, 0, 0, 1, 0),), ("time",), 2)
    )
    assert groups["den"].first == GroupTranscripts((WordCounts(3, 1, 0, 0, 1, 1),), ("time",), 2)
    assert sorted(groups) == ["den", "kitchen"]
    assert [rows.device(name).words for name in ("kitchen", "den", "shed")] == [
        groups["kitchen"].first, groups["den"].first, GroupTranscripts()
    ]  # fmt: skip
    assert [label for label, _ in by_group(heard, Grouping.KIND)] == ["command"]


def test_a_command_that_is_played_again_counts_once() -> None:
    command = told(wake_trial(1, TrialKind.COMMAND))
    rows = WakeRows()
    rows.plan(command)
    rows.play(command, words=[("kitchen", 2.6, "turn")])
    rows.play(command, words=[("kitchen", 2.6, "turn on the light")], take=2)
    right = GroupTranscripts((WordCounts(4, 0, 0, 0, 1, 0),), ("time",), 1)
    assert words_of(heard_in((), rows.figures)).final == rows.device().words == right


heard_texts = st.sampled_from([None, "", ASKED, "what time", "is it", "what is the time it is", "a b c"])
outcomes = st.sampled_from([RESPONDED, MISHEARD, NO_WAKE, INTERRUPTED, INCONCLUSIVE])


@given(st.lists(st.lists(st.tuples(outcomes, heard_texts), min_size=1, max_size=4), max_size=5))
def test_groups_add_up_to_the_totals_wherever_the_log_was_cut(trials: list[Attempts]) -> None:
    rows = Rows.of(*(sounding(number, voice="ab"[number % 2]) for number in range(1, len(trials) + 1)))
    for number, attempts in enumerate(trials, 1):
        take(rows, f"time-{number}", attempts)
    # Read in one go, and as a client that comes back and is told the last rows again.
    straight, broken = SessionFigures(), SessionFigures()
    for index, entry in enumerate(rows.entries):
        straight.add(entry)
        for repeated in rows.entries[max(0, index - 3) : index + 1]:
            broken.add(repeated)
        broken.snapshot()
    totals = straight.snapshot().totals
    assert (totals.first_words, totals.final_words) == (
        broken.snapshot().totals.first_words, broken.snapshot().totals.final_words
    )  # fmt: skip
    heard = heard_in(straight.snapshot().trials, WakeFigures())
    for grouping in Grouping:
        groups = [group for _, group in by_group(heard, grouping)]
        assert sum((group.first.counts for group in groups), WordCounts()) == totals.first_words.counts
        assert sum(group.final.attempts for group in groups) == totals.final_words.attempts
    assert totals.final_words.attempts <= totals.first_words.attempts <= len(trials)


def test_a_log_from_before_there_were_lists_of_words_is_read() -> None:
    rows = Rows.of(planned(1))
    take(rows, "time-1", [(MISHEARD, "what lime is it")])
    figures = SessionFigures()
    for entry in rows.entries:
        text = encode(RECORDS, entry.record).decode("utf-8")
        older = text.replace('"wer":0.0,"rewriting":null', '"wer":0.0')
        assert "rewriting" not in older
        figures.add(replace(entry, record=decode(RECORDS, older)))
    assert figures.snapshot().totals.first_words.counts.substitutions == 1


LYON = Slot("city", "Lyon")
EXPECTED = ExpectedFrame(("book", "greet"), (LYON,))
Asked = tuple[Outcome, UnderstandingResult | None]
GOOD = (Outcome.UNDERSTOOD, UnderstandingResult(("book", "greet"), (LYON,), True, True, EvidenceSource.DEVICE))
SLOT = (Outcome.MISHEARD, UnderstandingResult(("book", "greet"), (), True, False, EvidenceSource.DEVICE))
OTHER = (Outcome.MISHEARD, UnderstandingResult(("greet",), (LYON,), False, False, EvidenceSource.DEVICE))
NOTHING = (Outcome.MISHEARD, UnderstandingResult((), (), False, False, EvidenceSource.DEVICE))
SILENT = (Outcome.NO_RESPONSE, UnderstandingResult())
ASLEEP = (Outcome.NO_WAKE, UnderstandingResult())
CUT = (Outcome.INTERRUPTED, None)
OPEN = (Outcome.INCONCLUSIVE, UnderstandingResult())
YES = (Outcome.RESPONDED, UnderstandingResult(None, None, True, True, EvidenceSource.OPERATOR))
NO = (Outcome.MISHEARD, UnderstandingResult(None, None, None, False, EvidenceSource.OPERATOR))


def asked(name: str, **changes: object) -> Trial:
    reports = (ObservationKind.WAKE, ObservationKind.INTENT)
    template = trial(
        id=name, expects=EXPECTED, reports=reports, responds=False, query_class="hotel",
        conditions=(("voice", "bob" if name.startswith("bob") else "ann"),),
    )  # fmt: skip
    return replace(template, **changes)  # type: ignore[arg-type]


def asked_rows(plays: dict[str, list[Asked]], *more: Trial, heard: bool = False, **changes: object) -> list[Record]:
    """A session in which each trial is asked as often as it says; the last attempt decides. heard: words were right."""
    trials = (*(asked(name, **changes) for name in plays), *more)
    rows: list[Record] = [SessionStarted("s1", "frames", "Frames", "a" * 64, "lab", "b" * 64, 0, "wire", (), trials)]
    for name, attempts in plays.items():
        rows.append(TrialStarted(name, 1))
        for number, (outcome, frame) in enumerate(attempts, start=1):
            rows.append(AttemptStarted(name, 1, number, f"{name}.{number}", "c" * 64, 1.0, 2.0, 2.5, None))
            words = (
                (Recognition.YES, EvidenceSource.DEVICE) if heard else (Recognition.NOT_ASSESSED, EvidenceSource.NONE)
            )
            rows.append(AttemptFinished(name, 1, number, outcome, *words, understood=frame))
        outcome = attempts[-1][0]
        rows.append(
            TrialFinished(
                name, 1, outcome, len(attempts), len(attempts) if outcome is not Outcome.INTERRUPTED else None
            )
        )
    return rows


def understood_session(plays: dict[str, list[Asked]], *more: Trial, heard: bool = False, **changes: object) -> Progress:
    rows = [decode(RECORDS, encode(RECORDS, row)) for row in asked_rows(plays, *more, heard=heard, **changes)]
    return progress_of(Entry(seq, 1, float(seq), float(seq), row) for seq, row in enumerate(rows, start=1))


ALL = {
    "at_once": [GOOD],
    "second": [SLOT, GOOD],
    "third": [SILENT, CUT, OTHER, GOOD],
    "never": [NOTHING, SLOT],
    "asleep": [ASLEEP, ASLEEP],
    "open": [OPEN],
    "gone": [CUT],
    "said_yes": [YES],
    "said_no": [NO],
}


def test_frames_and_intents_at_the_first_attempt_and_at_the_one_that_decided() -> None:
    shares = understood_session(ALL).totals.understood
    assert shares.right == Share(4, 7)
    assert shares.intents == Share(5, 6), "nobody knows the intents of said_no; never had all of them in the end"
    assert shares.first_right == Share(2, 7)
    assert shares.first_intents == Share(3, 6)
    assert shares.attempts == ((1, 2), (2, 1), (3, 1)), "an attempt that was cut short is none"
    assert shares.unknown == 0
    assert shares.attempts_needed == ((1, Share(2, 7)), (2, Share(1, 7)), (3, Share(1, 7)), (None, Share(3, 7)))


def test_unknown_frames_count_in_no_share() -> None:
    heard_only = {"reprompt": RepromptRule(until=RepeatUntil.RECOGNISED), "responds": True}
    shares = understood_session(
        {"a": [(Outcome.RESPONDED, UnderstandingResult())], "b": [GOOD]}, **heard_only
    ).totals.understood
    assert (shares.right, shares.unknown) == (Share(1, 1), 1)
    empty = understood_session({}).totals.understood
    assert (empty.right.value, empty.attempts_needed) == (None, ())


def test_understanding_does_not_change_figures_of_words_or_answers() -> None:
    progress = understood_session(ALL)
    totals = progress.totals
    assert understood_session(ALL, heard=True).totals.recognised == Share(), "words that were right decide nothing here"
    assert totals.recognised == totals.first_attempt == totals.answered == Share()
    assert totals.count(Outcome.UNDERSTOOD) == 3
    assert heard_in(progress.trials) == ()
    assert rated_trials_of("s", progress.trials, ()) == ()


def test_words_reported_beside_frames_are_scored_too() -> None:
    reports = (ObservationKind.TRANSCRIPT, ObservationKind.INTENT)
    (trial,) = heard_in(understood_session({"a": [GOOD]}, reports=reports).trials)
    assert group_of(trial, Grouping.KIND) == "understand"


def test_limits_on_understanding_are_checked() -> None:
    totals = understood_session(ALL).totals
    verdicts = check_limits(Limits(min_understood_share=0.5, min_intent_share=0.9), totals)
    assert [(verdict.name, verdict.holds) for verdict in verdicts] == [
        ("min_understood_share", True),
        ("min_intent_share", False),
    ]
    nothing = check_limits(Limits(min_understood_share=0.0), understood_session({}).totals)
    assert [(verdict.found, verdict.holds) for verdict in nothing] == [(None, False)], (
        "a figure over nothing holds no limit"
    )


def test_deciding_attempts_are_exported_as_corpora() -> None:
    corpora = session_corpora([understood_session(ALL)])
    assert [utterance.id for utterance in corpora.gold.utterances] == ["at_once", "second", "third", "never", "asleep"]
    assert corpora.unknown == ("open", "said_yes", "said_no"), "a yes or no is no frame"
    groups = {"device": "dut", "query_class": "hotel", "query": "q", "session": "s1", "attempt": "1", "voice": "ann"}
    words = ("what", "time", "is", "it")
    lyon = (Slot("city", "lyon"),)
    assert corpora.gold.utterances[0] == Utterance(
        "at_once", words, ("book", "greet"), None, lyon, tuple(groups.items())
    )
    assert [(utterance.intents, utterance.slots) for utterance in corpora.predicted.utterances] == [
        (("book", "greet"), lyon),
        (("book", "greet"), lyon),
        (("book", "greet"), lyon),
        (("book", "greet"), ()),
        ((), ()),
    ]
    assert [dict(utterance.groups)["attempt"] for utterance in corpora.predicted.utterances] == [
        "1",
        "2",
        "4",
        "2",
        "2",
    ]
    assert [utterance.groups for utterance in corpora.gold.utterances] == [
        utterance.groups for utterance in corpora.predicted.utterances
    ]


def test_no_column_of_recordings_replaces_a_group_of_a_corpus() -> None:
    columns = (("query", "19"), ("device", "phone"), ("voice", "ann"))
    (utterance,) = session_corpora([understood_session({"a": [GOOD]}, conditions=columns)]).gold.utterances
    groups = [("device", "dut"), ("query_class", "hotel"), ("query", "q"), ("session", "s1"), ("attempt", "1")]
    assert utterance.groups == (*groups, ("voice", "ann"))


def test_first_attempts_are_exported_as_corpora() -> None:
    corpora = session_corpora([understood_session(ALL)], CountedAttempt.FIRST)
    intents = {utterance.id: utterance.intents for utterance in corpora.predicted.utterances}
    assert intents == {
        "at_once": ("book", "greet"),
        "second": ("book", "greet"),
        "third": (),
        "never": (),
        "asleep": (),
    }


def test_corpora_of_several_sessions_keep_their_ids_apart() -> None:
    progress = understood_session({"a": [GOOD]})
    corpora = session_corpora([progress, progress])
    assert [utterance.id for utterance in corpora.gold.utterances] == ["s1:a", "s1~2:a"]
    assert session_corpora([]).gold.utterances == ()


def test_a_value_in_another_reading_is_exported_as_the_expected_one() -> None:
    """As for the verdict on the attempt: `7:30` may be read as `seven thirty` and as `half past seven`."""
    expects = ExpectedFrame(("book",), (Slot("time", "7:30"), Slot("city", "Lyon"), Slot("name")))
    reported = (Slot("city", "paris"), Slot("time", "half past seven"), Slot("name", "Ann"), Slot("room"))
    frame = UnderstandingResult(("book",), reported, True, False, EvidenceSource.DEVICE)
    corpora = session_corpora([understood_session({"a": [(Outcome.RESPONDED, frame)]}, expects=expects)])
    assert corpora.gold.utterances[0].slots == (Slot("time", "seven thirty"), Slot("city", "lyon"), Slot("name"))
    assert corpora.predicted.utterances[0].slots == (
        Slot("city", "paris"),
        Slot("time", "seven thirty"),
        Slot("name", "ann"),
        Slot("room"),
    )


def test_ignored_slots_are_not_annotated() -> None:
    corpora = session_corpora([understood_session({"a": [GOOD]}, expects=ExpectedFrame(("book", "greet")))])
    assert corpora.gold.utterances[0].slots is None
    assert corpora.predicted.utterances[0].slots == (Slot("city", "lyon"),)


def test_a_row_of_an_older_log_still_reads() -> None:
    row = AttemptFinished("t", 1, 1, Outcome.RESPONDED, Recognition.YES, EvidenceSource.DEVICE, understood=GOOD[1])
    text = encode(RECORDS, row).decode()
    assert decode(RECORDS, text) == row
    older = text[: text.index(',"understood"')] + text[text.rindex(',"kind"') :]
    assert "understood" not in older
    assert decode(RECORDS, older) == replace(row, understood=None)


@pytest.mark.parametrize("key", ["expects", "responds"])
def test_a_trial_of_an_older_log_still_reads(key: str, tmp_path: Path) -> None:
    started = SessionStarted("s", "c", "C", "a", "b", "b", 0, "wire", (), (trial(),))
    text = encode(RECORDS, started).decode()
    value = "null" if key == "expects" else "true"
    assert f',"{key}":{value}' in text
    older = text.replace(f',"{key}":{value}', "").replace(',"until":null', "")
    assert decode(RECORDS, older) == started


def test_an_axis_without_a_table_of_its_own_needs_the_condition() -> None:
    ann, gsm, hall = ("voice", "ann"), ("codec", "gsm"), ("room", "hall")
    assert not trial(conditions=(ann,)).needs_condition(Grouping)
    assert trial(conditions=(gsm,)).needs_condition(Grouping)
    assert trial(conditions=(ann, hall)).needs_condition(Grouping)
