"""A session with understand trials that has come some way: understood at the second try, wrong values, nothing told."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from harness.model.feed import StateWord
from harness.model.record import AttemptStarted, TrialFinished, TrialStarted, UnderstandingResult
from harness.model.trial import EvidenceSource, Outcome, Recognition, Trial
from harness.model.understanding import ExpectedFrame, Slot
from tests.dashboard.engine_double import START_S, EngineDouble, write_clip
from tests.unit.session.figures.rows import Rows, planned

TIMER = ExpectedFrame(("set_timer",), (Slot("duration", "10 minutes"),))
TWO = ExpectedFrame(("add_to_list", "set_timer"), (Slot("duration", "5 minutes"), Slot("item", "eggs")))


def wanting(number: int, text: str, name: str, expects: ExpectedFrame) -> Trial:
    return replace(planned(number, text, name), expects=expects)


def told(intents: str, *slots: str, right: bool, intents_right: bool | None = None) -> UnderstandingResult:
    """intents: joined with `#`; slots: "concept=value"."""
    pairs = tuple(Slot(concept, value) for concept, _, value in (slot.partition("=") for slot in slots))
    names = tuple(filter(None, intents.split("#")))
    return UnderstandingResult(
        names, pairs, right if intents_right is None else intents_right, right, EvidenceSource.DEVICE
    )


def some_frames(folder: Path) -> Rows:
    """Five trials, four of them ended; the last one that ended was said three times."""
    rows = Rows()
    rows.start(
        wanting(1, "set a timer for ten minutes", "timer", TIMER),
        wanting(2, "what time is it", "time", ExpectedFrame(("get_time",), ())),
        wanting(3, "when is the next full moon", "full_moon", ExpectedFrame((), ())),
        wanting(4, "set a timer for five minutes and add eggs to my shopping list", "timer_and_eggs", TWO),
        wanting(5, "what's on my shopping list", "read_list", ExpectedFrame(("read_list",), None)),
        title="Understanding",
    )
    clip = write_clip(folder, "a.flac")
    rows.add(TrialStarted("timer", 1))
    wrong = told("set_timer", "duration=15 minutes", right=False, intents_right=True)
    rows.attempt("timer", 1, Outcome.MISHEARD, clip=clip, understood=wrong, heard="set a timer for ten minutes")
    rows.attempt("timer", 2, clip=clip, understood=told("set_timer", "duration=10 minutes", right=True))
    rows.add(TrialFinished("timer", 1, Outcome.RESPONDED, 2, 2), 1.0)
    rows.add(TrialStarted("time", 1))
    rows.attempt("time", 1, Outcome.UNDERSTOOD, understood=told("get_time", right=True), latency_s=None)
    rows.add(TrialFinished("time", 1, Outcome.UNDERSTOOD, 1, 1), 1.0)
    rows.add(TrialStarted("full_moon", 1))
    rows.attempt("full_moon", 1, understood=told("", right=True), clip=clip)
    rows.add(TrialFinished("full_moon", 1, Outcome.RESPONDED, 1, 1), 1.0)
    rows.add(TrialStarted("timer_and_eggs", 1))
    nothing = told("", right=False)
    rows.attempt("timer_and_eggs", 1, Outcome.MISHEARD, Recognition.NO, understood=nothing, latency_s=None)
    lost = told("set_timer", "duration=5 minutes", right=False)
    rows.attempt("timer_and_eggs", 2, Outcome.MISHEARD, understood=lost, clip=clip)
    mixed = told("read_list#set_timer", "duration=9 minutes", "day=today", right=False)
    rows.attempt("timer_and_eggs", 3, Outcome.MISHEARD, understood=mixed, clip=clip)
    rows.add(TrialFinished("timer_and_eggs", 1, Outcome.MISHEARD, 3, 3), 1.0)
    rows.add(TrialStarted("read_list", 1), 1.0)
    rows.add(AttemptStarted("read_list", 1, 1, "p", "c", 0.5, 1.5, 1.6, None))
    return rows


def frame_double(folder: Path) -> EngineDouble:
    engine = EngineDouble(folder, some_frames(folder))
    engine.state = type(engine.state)(StateWord.LISTENING, START_S, None, "read_list", 1)
    return engine
