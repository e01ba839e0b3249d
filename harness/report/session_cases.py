"""The cases of a session that are worth a look: events, misses and misheard words, with sounds and alignments."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from harness.base.foreign import plain_text
from harness.base.places import SessionFolder
from harness.base.whole_file import disk_errors, write_atomically
from harness.model.errors import LogError
from harness.model.frozen import frozen
from harness.model.numbers import fixed
from harness.model.observation import weak_evidence_text
from harness.model.record import Clip
from harness.model.scenario import TrialKind
from harness.model.trial import Outcome, Trial
from harness.rating.figures.agreement import AgreedItem, AgreementFigures, agreement_figures
from harness.rating.figures.categories import CategoryFigures, category_figures
from harness.rating.figures.judged_responses import JudgedResponse, RatedSession, rated_trials, read_sessions
from harness.rating.reports.agreement import vote_lines
from harness.report.charts import SoundPicture, draw_sound
from harness.report.session import WholeSession
from harness.session.figures.trials import TranscribedTrial, TrialProgress
from harness.session.log.clips import clip_samples
from harness.session.log.reader import redactions, removals
from harness.session.summary import outcome_in_words
from harness.session.wording import attempts_in_words
from harness.transcripts.recognition import recognised
from harness.transcripts.reports.html import AlignedBlock, blocks
from harness.transcripts.scoring import ScoredUtterance
from harness.wake.reports.figures_text import phrase_in_words, review_in_words
from harness.wake.wake_plays import Play
from harness.wake.wake_progress import UnmatchedWake

T = TypeVar("T")
MAX_LISTED = 100
"""Most cases of a kind that are listed with their sounds; further ones are only counted."""
MAX_EMBEDDED_BYTES = 6_000_000
"""Most bytes of sounds that are embedded in one page."""


class SoundStorage(StrEnum):
    """Where the sounds of a page are stored: in the page, in a folder beside it, or nowhere."""

    EMBED = "embed"
    BESIDE = "beside"
    NONE = "none"


@frozen
class HeardSound:
    """The sound of a case on a page.

    - source: its URI; "" if the page does not contain it.
    - name: name of the clip in the session folder.
    - picture: None without a sound.
    - gone: when, by whom and why it was removed or redacted; "" if it was not.
    """

    source: str
    name: str
    picture: SoundPicture | None
    gone: str = ""


@frozen
class ListedCase:
    """An event, a trial or a file that is worth a look, as text.

    - sound: None if there is none.
    - curve: the curve of its score, for the template; None without scores.
    """

    title: str
    lines: tuple[str, ...]
    sound: HeardSound | None
    curve: dict[str, Any] | None = None


@frozen
class Cases:
    """The cases of one kind under their heading.

    - total: number of all cases, also of those that are not listed.
    - rest: lines about some further cases, without sound.
    """

    id: str
    title: str
    listed: tuple[ListedCase, ...]
    total: int
    rest: tuple[str, ...] = ()


@frozen
class SessionRatings:
    """A session with judgments: its categories, and the agreement of its raters as in `harness report agreement`."""

    session: RatedSession
    categories: CategoryFigures
    agreement: AgreementFigures

    @classmethod
    def of(cls, folder: Path) -> SessionRatings:
        """Reads a session from its folder. Raises LogError."""
        sessions = read_sessions([folder])
        return cls(sessions[0], category_figures(rated_trials(sessions)), agreement_figures(sessions))


class PageSounds:
    """Provides the sounds of a page, until MAX_EMBEDDED_BYTES are embedded. target: file of the page."""

    def __init__(self, storage: SoundStorage, target: Path) -> None:
        self.storage = storage
        self.beside = target.with_name(f"{target.stem}_clips")
        """The folder for the sounds that are not embedded."""
        self.bytes_left = MAX_EMBEDDED_BYTES
        self.unreadable = 0
        """Number of clips that could not be read."""
        self._removed: dict[Path, dict[str, str]] = {}
        self._redacted: dict[Path, dict[str, str]] = {}
        """For each session folder, what became of clips, by their names."""

    def clip_sound(self, folder: SessionFolder, clip: Clip | None) -> HeardSound | None:
        """The sound of a clip, stored as `storage` says. Without a source if it cannot be read, or was removed."""
        if clip is None:
            return None
        if folder.path not in self._removed:
            self._removed[folder.path] = removals(folder.path)
            self._redacted[folder.path] = {name: redaction.what for name, redaction in redactions(folder.path).items()}
        removal = self._removed[folder.path].get(clip.name, "")
        if removal:
            return HeardSound("", clip.name, picture=None, gone=removal)
        redaction_text = self._redacted[folder.path].get(clip.name, "")
        if self.storage is SoundStorage.NONE:
            return HeardSound("", clip.name, picture=None, gone=redaction_text)
        try:
            samples = clip_samples(folder.clips, clip)
            content = (folder.clips / clip.name).read_bytes()
        except (OSError, LogError):
            self.unreadable += 1
            return HeardSound("", clip.name, picture=None, gone=redaction_text)
        file_name = f"{folder.path.resolve().name}-{clip.name}"
        return self.place_sound(clip.name, file_name, content, samples, clip.rate_hz, redaction_text)

    def place_sound(
        self,
        clip_name: str,
        file_name: str,
        flac: bytes,
        samples: npt.NDArray[np.float32],
        rate_hz: int,
        gone: str = "",
    ) -> HeardSound:
        """Stores a sound in the page, or as file_name in the folder beside it. In the page, only as long as there is
        room.

        - samples: mono, full scale 1.
        - gone: see `HeardSound`.
        """
        source = ""
        if self.storage is SoundStorage.BESIDE:
            with disk_errors(f"{self.beside} cannot be created"):
                self.beside.mkdir(exist_ok=True)
            write_atomically(self.beside / file_name, flac)
            source = f"{self.beside.name}/{file_name}"
        elif len(flac) <= self.bytes_left:
            self.bytes_left -= len(flac)
            source = "data:audio/flac;base64," + base64.b64encode(flac).decode("ascii")
        return HeardSound(source, clip_name, draw_sound(samples, rate_hz), gone)


def moment_text(wall_s: float) -> str:
    """A Unix time as text in UTC."""
    return datetime.fromtimestamp(wall_s, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


MARK_OF_OUTCOME = {
    Outcome.RESPONDED: "hit",
    Outcome.UNDERSTOOD: "hit",
    Outcome.COUNTED: "hit",
    Outcome.INTERRUPTED: "interrupted",
    Outcome.ABORTED: "interrupted",
    Outcome.SKIPPED: "interrupted",
    Outcome.INCONCLUSIVE: "probe_unheard",  # drawn like a probe that proved nothing
}
"""CSS class of a trial on the timeline, by its outcome. Outcomes that are missing here are failures."""


def misheard_in(trials: Sequence[TranscribedTrial]) -> list[TranscribedTrial]:
    """The trials in whose first attempt the device heard other words than those that were said, most errors first."""
    misheard_trials = [trial for trial in trials if trial.first.counts is not None and trial.first.counts.errors]
    return sorted(misheard_trials, key=lambda trial: -(trial.first.counts.errors if trial.first.counts else 0))


def case_title(trial_id: str, device: str) -> str:
    return f"{plain_text(trial_id, 120)}, {plain_text(device, 80)}"


def aligned_blocks(trial: TranscribedTrial) -> list[AlignedBlock]:
    """The words that the device heard in the first attempt, below those that were said."""
    recognition = recognised(trial.trial, trial.first.heard or "")
    return blocks([ScoredUtterance(trial.trial.id, "", recognition.words, recognition.counts)], ["heard"])


def session_cases(
    session: WholeSession, rated: SessionRatings | None, folder: SessionFolder, number: int, sounds: PageSounds
) -> Iterator[Cases]:
    """The cases of a session by kind.

    - rated: None without judgments.
    - number: that of the session on the page.
    """

    def first_cases(id: str, title: str, entries: Sequence[T], as_case: Callable[[T], ListedCase]) -> Cases:
        return Cases(f"{id}-{number}", title, tuple(as_case(entry) for entry in entries[:MAX_LISTED]), len(entries))

    events = [event for device in session.devices for event in session.wake.unmatched(device)]
    yield first_cases(
        "unmatched", "Wake events that match no stimulus", events, lambda event: _event_case(event, folder, sounds)
    )
    plays = (play for device in session.devices for play in session.wake.plays(device))
    missed = [play for play in plays if play.kind is TrialKind.WAKE and play.reading.hit is None]
    yield first_cases("missed", "False rejects", missed, lambda play: _false_reject_case(play, session, folder, sounds))
    queries = (trial for trial in session.progress.trials if trial.trial.listening is None)
    failed = [trial for trial in queries if trial.outcome is not None and trial.outcome not in MARK_OF_OUTCOME]
    yield first_cases("wrong", "Queries that failed", failed, lambda trial: _failed_query_case(trial, folder, sounds))
    if rated is not None:
        figures = rated.agreement
        differing = (item for item in figures.items if item.differing)
        items = sorted(differing, key=lambda item: (not item.disputed, item.review_order))
        responses = {response.trial.trial.id: response for response in rated.session.responses}
        yield first_cases(
            "differing",
            "Responses on which raters disagree",
            items,
            lambda item: _differing_case(item, figures, responses[item.trial_id], folder, sounds),
        )


def _word_lines(trial: Trial, heard: str | None, transcript: str | None) -> Iterator[str]:
    """Lines about what was said, what the device heard, and what it answered, as far as this is known."""
    yield f"said: {plain_text(trial.reference, 300)}"
    if heard:
        yield f"heard: {plain_text(heard, 300)}"
    if transcript:
        yield f"answered (our transcription): {plain_text(transcript, 300)}"


def _differing_case(
    item: AgreedItem, figures: AgreementFigures, judged: JudgedResponse, folder: SessionFolder, sounds: PageSounds
) -> ListedCase:
    trial = judged.trial.trial
    lines = (*_word_lines(trial, None, judged.response.transcript), *vote_lines(item, figures))
    return ListedCase(case_title(item.trial_id, trial.device), lines, sounds.clip_sound(folder, judged.response.clip))


def _event_case(event: UnmatchedWake, folder: SessionFolder, sounds: PageSounds) -> ListedCase:
    score = "" if event.score is None else f", score {fixed(event.score, 2)}"
    why = f" ({plain_text(event.why, 200)})" if event.why else ""
    weak = weak_evidence_text(plain_text(event.inferred, 60), "; ")
    reviewer = f", by {plain_text(event.reviewed_by, 60)}" if event.reviewed_by else ""
    outside = "" if event.exposed else "; outside exposure: not counted"
    lines = (
        f"woke on {phrase_in_words(event.phrase)}{score}, at {moment_text(event.wall_s)}",
        f"in {plain_text(event.trial_id, 120)}" if event.trial_id else "between trials",
        f"{review_in_words(event.verdict)}{why}{reviewer}{weak}{outside}",
    )
    sound = sounds.clip_sound(folder, event.clip)
    return ListedCase(f"event {event.seq}, {plain_text(event.device, 80)}", lines, sound)


def _false_reject_case(play: Play, session: WholeSession, folder: SessionFolder, sounds: PageSounds) -> ListedCase:
    lines = (f"conditions: {plain_text(play.trial.condition) or 'none'}", "sound: the stimulus as it was played")
    clip = session.clips.get(play.row.stimulus_sha256)
    return ListedCase(case_title(play.trial.id, play.target.device), lines, sounds.clip_sound(folder, clip))


def _failed_query_case(trial: TrialProgress, folder: SessionFolder, sounds: PageSounds) -> ListedCase:
    verdict, response = trial.last_verdict, trial.latest_response
    attempts = attempts_in_words(trial.attempts or 0, trial.counting.interrupted if trial.counting else 0)
    words = _word_lines(trial.trial, verdict.heard if verdict else None, response.transcript if response else None)
    lines = (f"{outcome_in_words(trial)}, after {attempts}", *words)
    sound = sounds.clip_sound(folder, response.clip if response else None)
    return ListedCase(case_title(trial.trial.id, trial.trial.device), lines, sound)
