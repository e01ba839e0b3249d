"""Finished sessions with spoken first responses, for tests of what raters sit at: quick, up to thousands of responses.

A dozen short answers are spoken once by flite and used again, so that every response can be heard.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from types import MappingProxyType

import numpy as np
import soxr

from harness.base.codec import RECORDS, encode
from harness.base.places import SessionFolder
from harness.base.row_store import open_for_writing
from harness.model.bench import ObservationKind
from harness.model.effect import EffectCheck, EffectOutcome, StateWanted
from harness.model.judgment import Category, JudgmentStatus, ProposalRule, ProposalShown, RatingRound
from harness.model.observation import ResponseText, StateTold, StimulusStarted
from harness.model.record import (
    AttemptFinished,
    AttemptStarted,
    Clip,
    EffectAnswered,
    EndReason,
    EngineStarted,
    Entry,
    JudgmentGiven,
    Observed,
    Record,
    ResponseFrozen,
    ResponseTranscribed,
    SessionFinished,
    SessionStarted,
    TrialFinished,
    TrialStarted,
)
from harness.model.scenario import Evidence, RecognitionRule, RepromptRule
from harness.model.stimulus import SpokenText, StimulusRecipe, VoiceSpec, Waveform
from harness.model.time import MeasuredDuration, Stamp
from harness.model.trial import EvidenceSource, Outcome, Recognition, Trial
from harness.model.understanding import ExpectedFrame
from harness.rating.items import Item, new_row
from harness.rating.judgment_log import JudgmentLog
from harness.rating.rating_room import RatingRoom
from harness.session.log.clips import ClipStore
from harness.sound.level import amplify
from harness.sound.recordings import at_rate
from harness.sound.stimuli.renderer import renderer

STARTED_WALL_S = 1_700_000_000.0
RATE_HZ = 16000


@dataclass(frozen=True, slots=True)
class Talk:
    """A query and an answer to it.

    - wanted: the effect that it should have, in words; "" without one.
    - reported: the state that the device reports in time; None if it reports none, and an operator has to look.
    - answered: what the operator saw; None before that.
    """

    id: str
    query: str
    answer: str
    query_class: str
    wanted: str = ""
    reported: str | None = None
    answered: EffectOutcome | None = None
    core_capability: bool = False


TALKS = (
    Talk("moons", "what are the names of the moons of mars", "mars has two moons phobos and deimos", "facts"),
    Talk("planets", "what are the two largest planets", "jupiter", "facts"),
    Talk("weather", "what is the weather in lincoln", "was that lincoln massachusetts", "weather"),
    Talk("alarm", "set an alarm for one", "a m or p m", "alarms", core_capability=True),
    Talk("shirt", "what color is my shirt", "i do not know", "facts"),
    Talk("hot", "is it hot today", "expect a high of ninety degrees", "weather"),
    Talk("moon", "when is the next full moon", "sorry i cannot help with that yet", "facts"),
    Talk("count", "count to ten", "i have set a timer for ten seconds", "arithmetic"),
    Talk("pause", "pause the timer", "all your timers were stopped", "timers", "the timer pauses", "paused"),
    Talk("timer", "set a timer for ten minutes", "done", "timers", "a timer of ten minutes runs", None, None, True),
    Talk("lamp", "switch the lamp on", "okay", "home", "the lamp is on", None, EffectOutcome.WRONG),
    Talk(
        "list", "add eggs to my list", "i added eggs", "lists", "eggs are on the list", None, EffectOutcome.RIGHT, True
    ),
)
"""The last four want an effect: the device reports one, nobody has looked at one yet, an operator has seen two."""
WITHOUT_EFFECT = 8


def rating_session(
    folder: Path,
    count: int = 12,
    *,
    session_id: str = "s1",
    devices: Sequence[str] = ("kitchen", "den"),
    effects: bool = False,
    transcripts: bool = True,
    talks: Sequence[Talk] = (),
    sounds: Mapping[str, tuple[int, float]] = MappingProxyType({}),
    latencies: Mapping[str, tuple[float, float]] = MappingProxyType({}),
    by_frame: bool = False,
    finished: bool = True,
) -> Path:
    """A new session folder with `count` first responses of these devices in turn; each third one was asked twice.

    Trial ids are `moons-kitchen-1`, …; conditions: voice ann or bob, noise quiet or pink 10 dB. effects: four of
    twelve queries want an effect (else none does, and nothing is held). transcripts: by our own recogniser; every
    second device also tells what it says. talks: others than ours. sounds: rate in Hz and gain in dB of the clips of
    a device, where they are not as the voice gives them. latencies: value and error in s, where they
    are not 0.9 and 0.02. by_frame: queries are repeated until they are understood, and the words of the last attempt
    were misheard. finished: the session has ended.
    """
    talks = talks or (TALKS if effects else TALKS[:WITHOUT_EFFECT])
    folder.mkdir(parents=True)
    shelf = ClipStore(SessionFolder(folder).clips)
    clips = {device: _clips(shelf, talks, *sounds.get(device, (RATE_HZ, 0.0))) for device in devices}
    plan = [(talks[number % len(talks)], devices[number % len(devices)], number + 1) for number in range(count)]
    trials = tuple(_trial(talk, device, number, effects) for talk, device, number in plan)
    if by_frame:
        trials = tuple(replace(trial, expects=ExpectedFrame(("answer",))) for trial in trials)
    rows = _Rows()
    rows.add(SessionStarted(session_id, "kitchen", "Kitchen", "a", "lab", "b", 1, "in_process", (), trials))
    rows.add(EngineStarted(1, 10, "boot", 1.0))
    for trial, (talk, device, number) in zip(trials, plan, strict=True):
        latency = MeasuredDuration(*latencies.get(device, (0.9, 0.02)))
        rows.trial(trial, talk, clips[device][talk.id], 2 if number % 3 == 0 else 1, transcripts, latency)
        if devices.index(device) % 2:
            rows.said(trial, talk.answer, 2 if number % 3 == 0 else 1)
    if finished:
        rows.add(SessionFinished(EndReason.COMPLETED))
    rows.write(folder)
    return folder


def open_room(sessions: Sequence[Path], round_: RatingRound | None = None) -> RatingRoom:
    """A room for these sessions, or for those that the round names."""
    rules = round_ or RatingRound()
    return RatingRoom(replace(rules, sessions=tuple(str(path.resolve()) for path in sessions) or rules.sessions))


def rating_sessions(root: Path, *counts: int, effects: bool = False) -> list[Path]:
    """Sessions s1, s2, … below a folder, with so many responses each."""
    return [
        rating_session(root / f"s{number}", count, session_id=f"s{number}", effects=effects)
        for number, count in enumerate(counts, 1)
    ]


def _trial(talk: Talk, device: str, number: int, effects: bool) -> Trial:
    check = EffectCheck(
        talk.wanted,
        state=(StateWanted(talk.id, talk.reported),) if talk.reported else (),
        question="" if talk.reported else f"Look: {talk.wanted}?",
        after_s=None if talk.reported else 5.0,
    )
    return Trial(
        id=f"{talk.id}-{device}-{number}",
        number=number,
        template=talk.id,
        query_id=talk.id,
        device=device,
        loudspeaker="front",
        recipe=StimulusRecipe(SpokenText(talk.query), SpokenText("okay nabu"), VoiceSpec()),
        reference=talk.query,
        alternatives=(),
        recognised=RecognitionRule(),
        evidence=Evidence.AUTO,
        reprompt=RepromptRule(),
        close_dialogue=None,
        conditions=(("voice", ("ann", "bob")[number % 2]), ("noise", "pink 10 dB" if number % 4 < 2 else "quiet")),
        query_class=talk.query_class,
        core_capability=talk.core_capability,
        connection="connection",
        reports=(ObservationKind.TRANSCRIPT, ObservationKind.STATE),
        effect=check if effects and talk.wanted else None,
    )


class _Rows:
    """Rows with their numbers and times, written in one go."""

    def __init__(self) -> None:
        self._entries: list[Entry] = []
        self._at_s = 100.0

    def add(self, record: Record, after_s: float = 0.0) -> None:
        self._at_s += after_s
        seq = len(self._entries) + 1
        wall_s = STARTED_WALL_S + self._at_s
        self._entries.append(Entry(seq, 1, self._at_s, wall_s, record))

    def trial(
        self, trial: Trial, talk: Talk, clip: Clip, attempts: int, transcripts: bool, latency: MeasuredDuration
    ) -> None:
        """A take that is misheard until its last attempt."""
        self.add(TrialStarted(trial.id, 1), 1.0)
        for attempt in range(1, attempts):
            self._started(trial, attempt)
            self.add(
                AttemptFinished(
                    trial.id, 1, attempt, Outcome.MISHEARD, Recognition.NO, EvidenceSource.DEVICE, heard="what lime"
                ),
                4.0,
            )
        self._started(trial, attempts)
        starts_s = self._at_s + 2.5
        frozen = replace(clip, start_s=starts_s)
        self.add(ResponseFrozen(trial.id, 1, attempts, frozen, Stamp(starts_s), Stamp(starts_s + clip.duration_s)), 3.0)
        if trial.effect is not None and talk.reported is not None:
            state = StateTold("connection", Stamp(starts_s), talk.id, talk.reported)
            self.add(Observed(state, trial.id, 1, attempts))
        length = MeasuredDuration(clip.duration_s, 0.01)
        self.add(
            AttemptFinished(
                trial.id,
                1,
                attempts,
                Outcome.RESPONDED,
                Recognition.NO if trial.until_understood else Recognition.YES,
                EvidenceSource.DEVICE,
                heard=talk.query,
                latency=latency,
                length=length,
            )
        )
        if transcripts:
            self.add(ResponseTranscribed(trial.id, 1, attempts, talk.answer, "test"))
        self.add(TrialFinished(trial.id, 1, Outcome.RESPONDED, attempts, attempts))
        if trial.effect is not None and talk.answered is not None:
            self.add(EffectAnswered(trial.id, 1, attempts, talk.answered, "operator", "looked at it"))

    def said(self, trial: Trial, text: str, attempt: int) -> None:
        self.add(Observed(ResponseText("connection", Stamp(self._at_s), text), trial.id, 1, attempt))

    def write(self, folder: Path) -> None:
        connection = open_for_writing(SessionFolder(folder).database)
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany(
            "INSERT INTO entries (seq, run, at_s, wall_s, kind, body) VALUES (?, ?, ?, ?, ?, ?)",
            [
                (
                    entry.seq,
                    entry.run,
                    entry.at_s,
                    entry.wall_s,
                    entry.record.kind,
                    encode(RECORDS, entry.record).decode(),
                )
                for entry in self._entries
            ],
        )
        connection.execute("COMMIT")
        connection.close()

    def _started(self, trial: Trial, attempt: int) -> None:
        waited_s = None if attempt == 1 else 5.0
        play_id = f"{trial.id}.{attempt}"
        self.add(AttemptStarted(trial.id, 1, attempt, play_id, "c", 0.5, 1.5, 1.6, waited_s), 1.0)
        self.add(Observed(StimulusStarted("front", Stamp(self._at_s), play_id), trial.id, 1, attempt))


def _clips(shelf: ClipStore, talks: Sequence[Talk], rate_hz: int, gain_db: float) -> dict[str, Clip]:
    return {talk.id: shelf.save(amplify(at_rate(_spoken(talk.answer), rate_hz), gain_db), 0.0) for talk in talks}


@cache
def _spoken(text: str) -> Waveform:
    recipe = StimulusRecipe(SpokenText(text), None, VoiceSpec("flite", "slt"), gap_ms=0)
    waveform = renderer().render(recipe).waveform
    return Waveform(soxr.resample(waveform.samples, waveform.rate_hz, RATE_HZ).astype(np.float32), RATE_HZ)


ADMITTED = ("shirt", "moon")
"""Queries that got no answer; all others are judged correct."""


def judged_source(folder: Path, count: int = 32, *, session_id: str = "s0") -> Path:
    """A session that bob has judged as a whole."""
    rating_session(folder, count, session_id=session_id)
    room = open_room([folder])
    log = JudgmentLog(folder)
    for item in room.items:
        log.append(
            JudgmentGiven(new_row(item.subject, "bob", JudgmentStatus.SUBMITTED, right_for(item.hidden.query_id)))
        )
    log.close()
    room.close()
    return folder


def right_for(query: str) -> Category:
    return Category.ADMITTED_DEFEAT if query in ADMITTED else Category.CORRECT


def answer_effect(session: Path, *items: Item, word: EffectOutcome, observer: str, detail: str = "") -> None:
    """Somebody looks at the effects of items, while raters judge."""
    with closing(JudgmentLog(session)) as log:
        for item in items:
            subject = item.subject
            log.append(EffectAnswered(subject.trial_id, subject.take, subject.attempt, word, observer, detail))


def proposing_round(source: Path, show: ProposalShown = ProposalShown.AFTER, *sessions: Path) -> RatingRound:
    return RatingRound(
        sessions=tuple(map(str, sessions)), seed=4, proposals=ProposalRule((str(source.resolve()),), show=show)
    )
