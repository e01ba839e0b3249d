"""Figures of what was understood, and sessions as annotated corpora."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from harness.base.codec import RECORDS, decode, encode
from harness.model.bench import ObservationKind
from harness.model.choices import Grouping, Which
from harness.model.record import (
    AttemptFinished,
    AttemptStarted,
    Entry,
    Record,
    SessionStarted,
    TrialFinished,
    TrialStarted,
    Understood,
)
from harness.model.scenario import Limits, RepromptRule, Until
from harness.model.trial import EvidenceSource, Outcome, Recognition, Trial
from harness.model.understanding import Expected, Slot, Utterance
from harness.rating.figures.judged import rated_in
from harness.session.figures.frames_of_session import session_corpora
from harness.session.figures.progress import Progress, SessionFigures, check_limits
from harness.session.figures.trials import group_of, heard_in
from harness.statistics.intervals import Share
from tests.unit.session.material import trial

LYON = Slot("city", "Lyon")
EXPECTED = Expected(("book", "greet"), (LYON,))
Asked = tuple[Outcome, Understood | None]
GOOD = (Outcome.UNDERSTOOD, Understood(("book", "greet"), (LYON,), True, True, EvidenceSource.DEVICE))
SLOT = (Outcome.MISHEARD, Understood(("book", "greet"), (), True, False, EvidenceSource.DEVICE))
OTHER = (Outcome.MISHEARD, Understood(("greet",), (LYON,), False, False, EvidenceSource.DEVICE))
NOTHING = (Outcome.MISHEARD, Understood((), (), False, False, EvidenceSource.DEVICE))
SILENT = (Outcome.NO_RESPONSE, Understood())
ASLEEP = (Outcome.NO_WAKE, Understood())
CUT = (Outcome.INTERRUPTED, None)
OPEN = (Outcome.INCONCLUSIVE, Understood())
YES = (Outcome.RESPONDED, Understood(None, None, True, True, EvidenceSource.OPERATOR))
NO = (Outcome.MISHEARD, Understood(None, None, None, False, EvidenceSource.OPERATOR))


def asked(name: str, **changes: object) -> Trial:
    reports = (ObservationKind.WAKE, ObservationKind.INTENT)
    made = trial(
        id=name, expects=EXPECTED, reports=reports, responds=False, query_class="hotel", conditions=(("voice", "ann"),)
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def session(plays: dict[str, list[Asked]], *more: Trial, heard: bool = False, **changes: object) -> Progress:
    """A session in which each trial is asked as often as it says; the last attempt decides. heard: words were right."""
    trials = (*(asked(name, **changes) for name in plays), *more)
    rows: list[Record] = [
        SessionStarted("s1", "frames", "Frames", "a" * 64, "lab", "b" * 64, 0, "wire", (), trials),
    ]
    for name, attempts in plays.items():
        rows.append(TrialStarted(name, 1))
        for number, (outcome, told) in enumerate(attempts, start=1):
            rows.append(AttemptStarted(name, 1, number, f"{name}.{number}", "c" * 64, 1.0, 2.0, 2.5, None))
            words = (
                (Recognition.YES, EvidenceSource.DEVICE) if heard else (Recognition.NOT_ASSESSED, EvidenceSource.NONE)
            )
            rows.append(AttemptFinished(name, 1, number, outcome, *words, understood=told))
        outcome = attempts[-1][0]
        rows.append(
            TrialFinished(
                name, 1, outcome, len(attempts), len(attempts) if outcome is not Outcome.INTERRUPTED else None
            )
        )
    figures = SessionFigures()
    for seq, row in enumerate(rows, start=1):
        figures.add(Entry(seq, 1, float(seq), float(seq), decode(RECORDS, encode(RECORDS, row))))
    return figures.snapshot()


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
    found = session(ALL).totals.understood
    assert found.right == Share(4, 7)
    assert found.intents == Share(5, 6), "nobody knows the intents of said_no; never had all of them in the end"
    assert found.first_right == Share(2, 7)
    assert found.first_intents == Share(3, 6)
    assert found.attempts == ((1, 2), (2, 1), (3, 1)), "an attempt that was cut short is none"
    assert found.unknown == 0
    assert found.attempts_needed == (
        (1, Share(2, 7)),
        (2, Share(1, 7)),
        (3, Share(1, 7)),
        (None, Share(3, 7)),
    )


def test_what_nobody_knows_counts_in_no_share() -> None:
    heard_only = {"reprompt": RepromptRule(until=Until.RECOGNISED), "responds": True}
    found = session({"a": [(Outcome.RESPONDED, Understood())], "b": [GOOD]}, **heard_only).totals.understood
    assert (found.right, found.unknown) == (Share(1, 1), 1)
    empty = session({}).totals.understood
    assert (empty.right.value, empty.attempts_needed) == (None, ())


def test_a_frame_that_was_right_before_the_attempt_that_decided() -> None:
    found = session({"a": [(Outcome.MISHEARD, GOOD[1]), (Outcome.UNDERSTOOD, SLOT[1])]}).totals.understood
    assert (found.right, found.first_right, found.attempts) == (Share(0, 1), Share(1, 1), ((1, 1),))


def test_understanding_is_in_no_figure_about_words_or_answers() -> None:
    progress = session(ALL)
    totals = progress.totals
    assert session(ALL, heard=True).totals.recognised == Share(), "words that were right decide nothing here"
    assert totals.recognised == totals.first_attempt == totals.answered == Share()
    assert totals.count(Outcome.UNDERSTOOD) == 3
    assert heard_in(progress.trials) == ()
    assert rated_in("s", progress.trials, ()) == ()


def test_words_that_a_device_tells_too_are_scored_beside() -> None:
    reports = (ObservationKind.TRANSCRIPT, ObservationKind.INTENT)
    (one,) = heard_in(session({"a": [GOOD]}, reports=reports).trials)
    assert group_of(one, Grouping.KIND) == "understand"


def test_limits_on_understanding() -> None:
    totals = session(ALL).totals
    verdicts = check_limits(Limits(min_understood_share=0.5, min_intent_share=0.9), totals)
    assert [(one.name, one.ok) for one in verdicts] == [("min_understood_share", True), ("min_intent_share", False)]
    nothing = check_limits(Limits(min_understood_share=0.0), session({}).totals)
    assert [(one.found, one.ok) for one in nothing] == [(None, False)], "a figure over nothing holds no limit"


def test_corpora_of_the_deciding_attempts() -> None:
    found = session_corpora([session(ALL)])
    assert [one.id for one in found.gold.utterances] == ["at_once", "second", "third", "never", "asleep"]
    assert found.unknown == ("open", "said_yes", "said_no"), "a yes or no is no frame"
    groups = {"device": "dut", "query_class": "hotel", "query": "q", "session": "s1", "attempt": "1", "voice": "ann"}
    words = ("what", "time", "is", "it")
    lyon = (Slot("city", "lyon"),)
    assert found.gold.utterances[0] == Utterance("at_once", words, ("book", "greet"), None, lyon, tuple(groups.items()))
    assert [(one.intents, one.slots) for one in found.predicted.utterances] == [
        (("book", "greet"), lyon),
        (("book", "greet"), lyon),
        (("book", "greet"), lyon),
        (("book", "greet"), ()),
        ((), ()),
    ]
    assert [dict(one.groups)["attempt"] for one in found.predicted.utterances] == ["1", "2", "4", "2", "2"]
    assert [one.groups for one in found.gold.utterances] == [one.groups for one in found.predicted.utterances]


def test_corpora_of_the_first_attempts() -> None:
    found = session_corpora([session(ALL)], Which.FIRST)
    told = {one.id: one.intents for one in found.predicted.utterances}
    assert told == {"at_once": ("book", "greet"), "second": ("book", "greet"), "third": (), "never": (), "asleep": ()}


def test_corpora_of_several_sessions_keep_their_ids_apart() -> None:
    one = session({"a": [GOOD]})
    found = session_corpora([one, one])
    assert [utterance.id for utterance in found.gold.utterances] == ["s1:a", "s1~2:a"]
    assert session_corpora([]).gold.utterances == ()


def test_slots_that_are_not_looked_at_are_not_annotated() -> None:
    found = session_corpora([session({"a": [GOOD]}, expects=Expected(("book", "greet")))])
    assert found.gold.utterances[0].slots is None
    assert found.predicted.utterances[0].slots == (Slot("city", "lyon"),)


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
