"""Judgments made elsewhere, brought to the responses that they are of: which are new, known, or cannot be placed."""

from __future__ import annotations

import json
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rapidfuzz.process import extractOne

from harness.base.problems import MOST_TOLD, Problems, shown
from harness.model.effect import EffectWord
from harness.model.errors import InputError, InputProblems
from harness.model.judgment import EXERCISE, Category, Judgment, JudgmentStatus, ProposalShown
from harness.model.record import JudgmentGiven
from harness.rating.figures.judged import RatedSession
from harness.rating.files.reading import ReadJudgments, WrittenJudgment
from harness.rating.guide import KEYS, LABELS
from harness.rating.judgment_log import JudgmentLog
from harness.session.figures.trials import TrialProgress

NAMESPACE = uuid.UUID("6f6dd9b1-5a53-4c53-8e0e-2f1b7f0f4f5a")
"""Of the ids that rows without one are given: the same row, the same id."""
WORDS: dict[str, Category] = {
    **{category.value: category for category in Category},
    **{category.value.replace("_", " "): category for category in Category},
    **{label.lower(): category for category, label in LABELS.items()},
    **dict(KEYS),
}
"""What may stand for a category, in small letters: its word, its label on screen, its key."""


Nearest = Callable[[str, Iterable[str]], str]


@dataclass(frozen=True, slots=True)
class ImportPlan:
    """fresh: judgments to write, with the folder. known: rows that were imported before. bad: rows with a problem."""

    fresh: tuple[tuple[Path, Judgment], ...]
    known: int
    replacing: int
    bad: int
    problems: tuple[InputError, ...]


@dataclass(frozen=True, slots=True)
class _Place:
    """A response: session, trial, and the take and attempt in which its clip was frozen."""

    session: RatedSession
    trial: str
    take: int
    attempt: int
    clip_sha256: str


class _Unplaced(Exception):
    def __init__(self, what: str, remedy: str) -> None:
        super().__init__(what)
        self.what = what
        self.remedy = remedy


def plan_import(sessions: Sequence[RatedSession], read: ReadJudgments, path: Path, *, replacing: bool) -> ImportPlan:
    """What an import would write. replacing: a rater's earlier judgment gives way, else the row is refused."""
    plan = _Plan(sessions, path, replacing)
    for row in read.rows:
        plan.take(row)
    return plan.made(read)


def write_import(plan: ImportPlan) -> None:
    """Writes a plan, all or none of it in each session; LogError. Written twice, it adds nothing."""
    by_folder: dict[Path, list[JudgmentGiven]] = defaultdict(list)
    for folder, judgment in plan.fresh:
        by_folder[folder].append(JudgmentGiven(judgment))
    for folder, records in by_folder.items():
        log = JudgmentLog(folder)
        try:
            log.append_all(records)
        finally:
            log.close()


class _Plan:
    def __init__(self, sessions: Sequence[RatedSession], path: Path, replacing: bool) -> None:
        self._path = path
        self._replacing = replacing
        self._sessions = {one.session_id: _Responses(one) for one in sessions}
        self._problems = Problems(str(path))
        self._bad = self._known = 0
        self._fresh: list[tuple[Path, Judgment]] = []
        self._lines: dict[str, int] = {}

    def take(self, row: WrittenJudgment) -> None:
        try:
            place = self._place(row)
            self._put(row, place, self._sessions[place.session.session_id])
        except _Unplaced as wrong:
            self._bad += 1
            self._problems.add(row.line, 0, wrong.what, wrong.remedy)

    def made(self, read: ReadJudgments) -> ImportPlan:
        problems = list(read.problems)
        try:
            self._problems.refuse()
        except InputProblems as found:
            problems += found.problems
        replacing = sum(one.replaces is not None and one.replaces not in self._lines for _, one in self._fresh)
        return ImportPlan(tuple(self._fresh), self._known, replacing, read.bad + self._bad, tuple(problems))

    def _place(self, row: WrittenJudgment) -> _Place:
        named = row.text("session").strip()
        if named:
            if named not in self._sessions:
                raise _Unplaced(f"there is no session {shown(named)} here", self._nearest(named, self._sessions))
            return self._sessions[named].place(row, self._nearest)
        holding = [one for one in self._sessions.values() if one.holds(row)]
        if len(self._sessions) > 1 and len(holding) != 1:
            among = "in several of the sessions" if holding else "in none of the sessions"
            raise _Unplaced(f"the response is {among}", "Write its session in a column session")
        (responses,) = holding or self._sessions.values()
        return responses.place(row, self._nearest)

    def _nearest(self, word: str, known: Iterable[str]) -> str:
        """The nearest of many; not looked for any more when nobody would be told."""
        if self._bad >= MOST_TOLD:
            return ""
        found = extractOne(word, list(known), score_cutoff=50)
        return f"Did you mean {found[0]!r}?" if found else "See them with: harness show SESSION --trials"

    def _put(self, row: WrittenJudgment, place: _Place, responses: _Responses) -> None:
        judgment = _judgment(row, place, self._path.name)
        there = responses.rows.get(judgment.id)
        if there is not None and judgment.id not in self._lines:
            if _content(there) != _content(judgment):
                raise _Unplaced(
                    f"the judgment {shown(judgment.id)} is there already, and says something else",
                    "Leave the id out for a new judgment; --replace lets it take the place of the earlier one",
                )
            self._known += 1
            return
        earlier = responses.standing.get(_owner(judgment))
        if judgment.replaces is not None:
            if judgment.replaces not in responses.rows:
                raise _Unplaced(
                    f"it replaces the judgment {shown(judgment.replaces)}, which is not there",
                    "Import that one before, or leave the column replaces empty",
                )
        elif judgment.status is JudgmentStatus.WITHDRAWN:
            raise _Unplaced("a withdrawal takes back a judgment, and names none", "Write its id in the column replaces")
        elif earlier is not None:
            if earlier.id in self._lines:
                what = f"{shown(judgment.rater)} judged this response already, in line {self._lines[earlier.id]}"
                raise _Unplaced(what, "Remove one of the two rows, or name what it replaces in the column replaces")
            if not self._replacing:
                said = earlier.category or earlier.status
                what = f"{shown(judgment.rater)} judged this response already, as {said}: {shown(earlier.id)}"
                raise _Unplaced(what, "To put this one in its place: --replace")
            judgment = replace(judgment, replaces=earlier.id)
        self._lines[judgment.id] = row.line
        responses.add(judgment)
        self._fresh.append((place.session.folder, judgment))


class _Responses:
    """The responses of one session, by trial and by clip, and the judgments on them."""

    def __init__(self, session: RatedSession) -> None:
        self._session = session
        self._trials: Mapping[str, TrialProgress] = {one.trial.id: one for one in session.trials}
        self._by_clip: dict[str, list[_Place]] = defaultdict(list)
        for trial in session.trials:
            for take in trial.takes:
                for attempt in take.attempts:
                    if attempt.frozen is not None:
                        sha = attempt.frozen.clip.sha256
                        self._by_clip[sha].append(_Place(session, trial.trial.id, take.take, attempt.attempt, sha))
        self.rows: dict[str, Judgment] = {}
        self.standing: dict[tuple[str, str, str, bool], Judgment] = {}
        for row in session.rows:
            self.add(row)

    def add(self, judgment: Judgment) -> None:
        self.rows.setdefault(judgment.id, judgment)
        if judgment.replaces is not None and (replaced := self.rows.get(judgment.replaces)) is not None:
            owner = _owner(replaced)
            if owner in self.standing and self.standing[owner].id == replaced.id:
                del self.standing[owner]
        if judgment.status is not JudgmentStatus.WITHDRAWN:
            self.standing[_owner(judgment)] = judgment

    def holds(self, row: WrittenJudgment) -> bool:
        trial, clip = row.text("trial").strip(), row.text("clip_sha256").strip()
        return (not trial or trial in self._trials) and (not clip or clip in self._by_clip)

    def place(self, row: WrittenJudgment, nearest: Nearest) -> _Place:
        trial, clip = row.text("trial").strip(), row.text("clip_sha256").strip()
        if trial.startswith(EXERCISE):
            return _Place(self._session, trial, row.whole("take") or 1, row.whole("attempt") or 1, clip)
        if trial and trial not in self._trials:
            raise _Unplaced(f"there is no trial {shown(trial)} in this session", nearest(trial, self._trials))
        found = self._of_clip(trial, clip) if clip else self._of_trial(trial)
        for column, is_so in (("take", found.take), ("attempt", found.attempt)):
            written = row.whole(column)
            if written is not None and written != is_so:
                what = f"the response is of {column} {is_so}, not {written}"
                raise _Unplaced(
                    what, "The trial was run again, or answered at another attempt: judge what is there now"
                )
        return found

    def _of_trial(self, trial: str) -> _Place:
        response = self._trials[trial].response
        if response is None:
            raise _Unplaced(f"the trial {shown(trial)} has no response to judge", "Remove the row")
        return _Place(self._session, trial, response.take, response.attempt, response.clip.sha256)

    def _of_clip(self, trial: str, clip: str) -> _Place:
        found = [one for one in self._by_clip.get(clip, ()) if trial in ("", one.trial)]
        if len(found) == 1:
            return found[0]
        if not found:
            of = f"the trial {shown(trial)}" if trial else "this session"
            raise _Unplaced(f"the clip {shown(clip)} is no response of {of}", "See whether the file is of this session")
        if trial:
            return found[-1]
        raise _Unplaced(f"{len(found)} trials have the clip {shown(clip)}", "Write the trial, too")


def _judgment(row: WrittenJudgment, place: _Place, file: str) -> Judgment:
    values = row.values
    span = values.get("span_start_s"), values.get("span_end_s")
    effect, proposed, unaided = row.text("effect"), row.text("proposed"), row.text("unaided")
    written: dict[str, Any] = {column: values[column] for column in _SAME if column in values}
    return Judgment(
        id=row.text("id") or _id_of(row, place),
        trial_id=place.trial,
        attempt=place.attempt,
        rater=row.text("rater"),
        status=row.status,
        category=row.category,
        clip_sha256=place.clip_sha256,
        replaces=row.text("replaces") or None,
        session_id=place.session.session_id,
        take=place.take,
        span_s=None if span[0] is None or span[1] is None else (float(str(span[0])), float(str(span[1]))),
        effect=EffectWord(effect) if effect else None,
        proposed=Category(proposed) if proposed else None,
        proposal_shown=ProposalShown(row.text("proposal_shown") or ProposalShown.NEVER),
        unaided=Category(unaided) if unaided else None,
        imported_from=row.text("imported_from") or file,
        **written,
    )


_SAME = (
    "item_id", "sub_flags", "flags", "confidence", "comment", "effect_claimed", "aid_path", "plays", "heard_ms",
    "time_to_answer_s", "transcript_shown", "round", "position", "shown_wall_s", "given_wall_s", "adjudicates",
    "guideline_version", "tool_version", "proposed_probability"
)  # fmt: skip
"""Columns that are fields of a judgment as they stand."""


def _id_of(row: WrittenJudgment, place: _Place) -> str:
    """The same for the same content, wherever in whichever file it stands."""
    content = {
        **{column: value for column, value in row.values.items() if column not in ("replaces", "imported_from")},
        "session": place.session.session_id,
        "trial": place.trial,
        "take": place.take,
        "attempt": place.attempt,
        "clip_sha256": place.clip_sha256,
        "status": row.status,
        "category": row.category,
    }
    return str(uuid.uuid5(NAMESPACE, json.dumps(content, sort_keys=True)))


def _owner(judgment: Judgment) -> tuple[str, str, str, bool]:
    """Of whom, on which response, one judgment stands; an adjudication stands beside it."""
    return judgment.rater, judgment.trial_id, judgment.clip_sha256, bool(judgment.adjudicates)


def _content(judgment: Judgment) -> Judgment:
    """What it says, without what a file may leave out or add."""
    return replace(judgment, imported_from="", session_id="", replaces=None)
