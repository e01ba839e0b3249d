"""What a night's engine has on its host: voices that may be slow, and a log that may be its last act."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from harness.base import threads
from harness.base.row_store import SESSION
from harness.model.errors import LogFull
from harness.model.record import Clip, Entry, OperatorAsked, Question, Record, TrialFinished
from harness.model.stimulus import Ambience, Part, RenderedStimulus, Role, StimulusRecipe, Waveform
from harness.session.log.database import SqliteLog
from harness.session.simulated.bench import RATE_HZ

if TYPE_CHECKING:
    from tests.nights.night import Night


class Death(BaseException):
    """The engine is no more; what it has not committed is lost."""


class Renders:
    """Implements `ports.Renders` without a voice. Now and then a voice is slow, and somebody loses patience."""

    def __init__(self, night: Night) -> None:
        self._night = night
        self._chance = night.room.chance(f"renders:{night.lives}")

    def render(self, recipe: StimulusRecipe) -> RenderedStimulus:
        if self._chance.random() < 0.03:
            self._night.is_slow_to_render(self._chance)
        timings: list[tuple[Role, float]] = []
        if recipe.opening is not None:
            timings += [(Role.OPENING, 0.6)]
        if recipe.wake_phrase is not None:
            timings += [(Role.WAKE_PHRASE, 0.6)]
        length_s = recipe.query.duration_s if isinstance(recipe.query, Ambience) else 0.8 if recipe.wake_phrase else 0.6
        timings += [(Role.QUERY, length_s)]
        at_s, parts = recipe.lead_in_s, []
        for role, lasts_s in timings:
            first, last = round(at_s * RATE_HZ), round((at_s + lasts_s) * RATE_HZ)
            parts.append(Part(role, first, last, role.value))
            at_s += lasts_s + (
                recipe.gap_ms / 1000 if role is Role.WAKE_PHRASE else 0.4 if role is Role.OPENING else 0.0
            )
        tail_s = recipe.tail_s or 0.4  # a voice ends with silence
        count = max(1, round((at_s + tail_s) * RATE_HZ))
        sha = hashlib.sha256(repr(recipe).encode()).hexdigest()
        return RenderedStimulus(Waveform(np.zeros(count, dtype=np.float32), RATE_HZ), tuple(parts), sha)


class UnthreadedLog(SqliteLog):
    """Commits in the thread that appends: a third of a night's handovers would be to the log's thread and back."""

    def append(self, record: Record) -> Entry:
        (entry,) = self._store([(record, SESSION.text(record))])
        if self._on_commit is not None:
            self._on_commit(entry)
        return entry


class MortalLog:
    """The real log of one life of the engine. Each row takes a time; some row may be the last."""

    def __init__(self, night: Night, log: SqliteLog) -> None:
        self._night, self._log = night, log
        self._chance = night.room.chance(f"commits:{night.lives}")
        self._ends = night.room.chance(f"ends of trials:{night.lives}")
        self.dead = False

    def append(self, record: Record) -> Entry:
        self.check()
        slow_s = self._night.slow_commits_s
        threads.sleep(slow_s if slow_s else self._chance.uniform(0.0005, 0.004))
        self.check()
        if self._night.full:
            raise LogFull("no space left on the device")
        self._night.rows_left -= 1
        if self._night.rows_left == 0 and not self._night.dies_after_row:
            self.die("before a row")
        entry = self._log.append(record)
        if self._night.rows_left == 0:
            self.die("after a row")
        self._night.room.truth.acknowledged.append((entry.seq, record.kind))
        if isinstance(record, OperatorAsked) and record.about is Question.SPEECH:
            self._night.asks_a_talker(record)
        if isinstance(record, TrialFinished) and self._ends.random() < 0.03 and self._night.dies_at_an_end():
            self.die("after the end of a trial")
        return entry

    def save_clip(self, waveform: Waveform, start_s: float) -> Clip:
        self.check()
        if self._night.full:
            raise LogFull("no space left on the device")
        sha = hashlib.sha256(f"{start_s} {len(waveform.samples)}".encode()).hexdigest()
        return Clip(f"{sha[:12]}.flac", sha, waveform.rate_hz, len(waveform.samples), start_s)

    def entries(self, after_seq: int = 0) -> Iterator[Entry]:
        return self._log.entries(after_seq)

    def check(self) -> None:
        if self.dead or self._night.doomed:
            self.die(self._night.doomed or "again")

    def die(self, when: str) -> None:
        if not self.dead:
            self.dead = True
            self._night.dies(when)
        raise Death(when)
