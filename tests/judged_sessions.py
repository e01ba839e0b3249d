"""Sessions on the disk with first responses to judge, and judgments on them, for tests of ratings and their figures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from harness.model.judgment import Category, Judgment, JudgmentStatus
from harness.model.record import Clip, JudgmentGiven, SessionStarted
from harness.model.stimulus import Waveform
from harness.model.trial import Outcome, Recognition, Trial
from harness.rating.figures.judged_responses import JudgedResponse, judged_responses_of
from harness.rating.judgment_log import JudgmentLog
from harness.session.figures.progress import SessionFigures
from harness.session.log.database import SqliteLog
from harness.session.log.reader import LogReader, rating_rows
from tests.unit.session.figures.rows import Rows, planned

RATE_HZ = 8000
WALL_S = 1_600_000_000.0
"""When `judged` says that a judgment was given; Unix time."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A query and the device's answer to it.

    - answer: as transcribed; None if the device said nothing.
    - attempts: how often the query was said.
    - seconds: the length of the clip.
    - tone: what its clip holds; None: each response has a tone of its own.
    """

    trial_id: str
    query: str = "what time is it"
    answer: str | None = "it is noon"
    device: str = "kitchen"
    query_id: str = "time"
    query_class: str = "time"
    conditions: tuple[tuple[str, str], ...] = ()
    core_capability: bool = False
    attempts: int = 1
    seconds: float = 1.0
    tone: int | None = None

    def trial(self, number: int) -> Trial:
        return replace(
            planned(number, self.query, self.trial_id, self.device),
            query_id=self.query_id,
            query_class=self.query_class,
            conditions=self.conditions,
            core_capability=self.core_capability,
        )


def answers(count: int, devices: Sequence[str] = ("kitchen",), prefix: str = "q") -> list[Answer]:
    """So many queries to each device, in three classes and under two conditions; ids `q1-kitchen`, `q1-den`, …"""
    return [
        Answer(
            f"{prefix}{number}-{device}",
            query=f"question {number}",
            answer=f"answer {number} of {device}",
            device=device,
            query_id=f"{prefix}{number}",
            query_class=("time", "weather", "lists")[number % 3],
            conditions=(("voice", ("ann", "bob")[number % 2]),),
            core_capability=number % 5 == 0,
        )
        for number in range(1, count + 1)
        for device in devices
    ]


def store_session(folder: Path, items: Iterable[Answer], session_id: str = "s1") -> Path:
    """Writes a finished session's log and clips (a different tone for each response, FLAC) into a new folder."""
    items = list(items)
    folder.mkdir(parents=True)
    rows = Rows()
    with SqliteLog(folder, wall_s=lambda: WALL_S - 3600.0 + rows.at_s) as log:
        rows.start(*(item.trial(number) for number, item in enumerate(items, 1)))
        for number, item in enumerate(items, 1):
            if item.answer is None:
                rows.trial(item.trial_id, Outcome.NO_RESPONSE, Recognition.UNKNOWN, attempts=item.attempts)
                continue
            clip = log.save_clip(_tone(number if item.tone is None else item.tone, item.seconds), float(number))
            rows.trial(item.trial_id, attempts=item.attempts, clip=clip, text=item.answer)
        for entry in rows.entries:
            record = entry.record
            log.append(replace(record, session_id=session_id) if isinstance(record, SessionStarted) else record)
    return folder


def judged_responses(folder: Path) -> tuple[JudgedResponse, ...]:
    """The responses of a stored session with all judgments, as figures and reports are given them."""
    figures = SessionFigures()
    with LogReader(folder) as reader:
        for entry in reader.entries():
            figures.add(entry)
    rows = [entry.record.judgment for entry in rating_rows(folder) if isinstance(entry.record, JudgmentGiven)]
    progress = figures.snapshot()
    return judged_responses_of(progress.session.session_id if progress.session else "", progress.trials, rows)


def clips_of(folder: Path) -> dict[str, tuple[int, Clip]]:
    """Attempt and clip of each trial's first response."""
    return {
        response.trial.trial.id: (response.response.attempt, response.response.clip)
        for response in judged_responses(folder)
    }


def judged(
    trial_id: str,
    clip: Clip | str,
    rater: str,
    category: Category | None = Category.CORRECT,
    status: JudgmentStatus = JudgmentStatus.SUBMITTED,
    **more: Any,
) -> Judgment:
    """A judgment row; its id is made of rater and trial, unless `more` has one."""
    more.setdefault("id", f"{rater}:{trial_id}")
    more.setdefault("attempt", 1)
    more.setdefault("given_wall_s", WALL_S)
    submitted = status is JudgmentStatus.SUBMITTED
    return Judgment(
        trial_id=trial_id,
        rater=rater,
        status=status,
        category=category if submitted else None,
        clip_sha256=clip if isinstance(clip, str) else clip.sha256,
        **more,
    )


def give(folder: Path, judgments: Iterable[Judgment]) -> None:
    """Writes judgments into a session's own file of them, in their order."""
    log = JudgmentLog(folder)
    try:
        for judgment in judgments:
            log.append(JudgmentGiven(judgment))
    finally:
        log.close()


def _tone(number: int, seconds: float) -> Waveform:
    times_s = np.arange(int(seconds * RATE_HZ)) / RATE_HZ
    samples = (0.2 * np.sin(2 * np.pi * (200 + 7 * number) * times_s)).astype(np.float32)
    return Waveform(samples, RATE_HZ)
