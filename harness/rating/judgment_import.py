"""Import of judgments made elsewhere: assigns each row to its response, and finds new, known and wrong rows."""

from __future__ import annotations

import json
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from rapidfuzz.process import extractOne

from harness.base.grouping import group_by
from harness.base.text_file import MAX_LISTED, Problems, shown
from harness.base.user_text import known_name, name_key, person_name, to_nfc
from harness.model.effect import EffectOutcome
from harness.model.frozen import frozen
from harness.model.judgment import EXERCISE, Category, Judgment, JudgmentStatus, ProposalShown
from harness.model.record import JudgmentGiven
from harness.rating.figures.judged_responses import RatedSession
from harness.rating.files.reading import JudgmentFile, ParsedJudgment, WrongCell
from harness.rating.guide import KEYS, LABELS
from harness.rating.judgment_log import JudgmentLog
from harness.session.figures.trials import TrialProgress

NAMESPACE = uuid.UUID("6f6dd9b1-5a53-4c53-8e0e-2f1b7f0f4f5a")
"""Namespace for the ids of rows without an id: equal rows get equal ids."""
WORDS: dict[str, Category] = {
    **{category.value: category for category in Category},
    **{category.value.replace("_", " "): category for category in Category},
    **{label.lower(): category for category, label in LABELS.items()},
    **dict(KEYS),
}
"""The category for every accepted word in lower case: its name, its label on screen, its key."""


Nearest = Callable[[str, Iterable[str]], str]


@frozen
class _Place:
    """A response: session, trial, and the take and attempt that recorded its clip."""

    session: RatedSession
    trial: str
    take: int
    attempt: int
    clip_sha256: str


class ImportPlan:
    """What an import would write. fresh: judgments to write, with their folders. known: number of rows that a session
    already has.

    bad: number of wrong rows, with their `problems`. repeated: lines with the same row as an earlier line, each with
    that line. They count once. may_replace: whether rows may replace earlier judgments; if not, such rows are refused.
    """

    def __init__(self, sessions: Sequence[RatedSession], read: JudgmentFile, path: Path, *, may_replace: bool) -> None:
        self._path = path
        self._replaces_rows = may_replace
        self._sessions = {session.session_id: _Responses(session) for session in sessions}
        self.bad = self.known = 0
        self.fresh: list[tuple[Path, Judgment]] = []
        self._lines: dict[str, int] = {}
        """The line of each fresh judgment, by its id."""
        self._line_by_id: dict[str, int] = {}
        """The line of each valid row, by its id."""
        self.repeated: list[tuple[int, int]] = []
        self._raters = dict.fromkeys(row.rater for session in sessions for row in session.rows)
        wrong_rows = Problems(str(path))
        for row in read.rows:
            try:
                place = self._place(row)
                self._add(row, place, self._sessions[place.session.session_id])
            except WrongCell as wrong:
                self.bad += 1
                wrong_rows.add(row.line, 0, wrong.what, wrong.remedy)
        self.bad += read.bad
        self.problems = (*read.problems, *wrong_rows.listed)

    @property
    def replacing(self) -> int:
        """Number of judgments to write that replace one of a session."""
        return sum(judgment.replaces is not None and judgment.replaces not in self._lines for _, judgment in self.fresh)

    def write(self) -> None:
        """Writes the fresh judgments, in each session all or none; LogError. A second call adds nothing."""
        by_folder = group_by((folder, JudgmentGiven(judgment)) for folder, judgment in self.fresh)
        for folder, records in by_folder.items():
            with closing(JudgmentLog(folder)) as log:
                log.add(records)

    def _place(self, row: ParsedJudgment) -> _Place:
        session_id = row.text("session").strip()
        if session_id:
            if session_id not in self._sessions:
                raise WrongCell(
                    f"no session {shown(session_id)} was given", self._nearest_hint(session_id, self._sessions)
                )
            return self._sessions[session_id].place(row, self._nearest_hint)
        holding = [candidate for candidate in self._sessions.values() if row.text("id") in candidate.rows]
        holding = holding or [candidate for candidate in self._sessions.values() if candidate.holds(row)]
        if len(self._sessions) > 1 and len(holding) != 1:
            among = "in several sessions" if holding else "in no session"
            raise WrongCell(f"the response occurs {among}", "Write its session in the column session")
        (responses,) = holding or self._sessions.values()
        return responses.place(row, self._nearest_hint)

    def _nearest_hint(self, word: str, candidates: Iterable[str]) -> str:
        """A hint at the nearest known word; "" if the message would not be shown."""
        if self.bad >= MAX_LISTED:
            return ""
        match = extractOne(word, list(candidates), score_cutoff=50)
        return f"Did you mean {match[0]!r}?" if match else "List them with: harness report show SESSION --trials"

    def _add(self, row: ParsedJudgment, place: _Place, responses: _Responses) -> None:
        rater = known_name(person_name(row.text("rater"), "rater name"), self._raters)
        self._raters.setdefault(rater)
        judgment = _judgment(row, place, self._path.name, rater)
        existing, first = responses.rows.get(judgment.id), self._line_by_id.get(judgment.id)
        if existing is not None:
            if _content(existing, judgment) != _content(judgment, judgment):
                location = "there" if first is None else f"on line {first}"
                raise WrongCell(
                    f"the judgment {shown(judgment.id)} is already {location}, with different content",
                    "Leave out the id to add a new judgment, and use --replace to replace the earlier one",
                )
            self._line_by_id.setdefault(judgment.id, row.line)
            if first is None:
                self.known += 1
            else:
                self.repeated.append((row.line, first))
            return
        earlier = responses.standing.get(_owner(judgment))
        if judgment.replaces is not None:
            replaced = responses.rows.get(judgment.replaces)
            if replaced is None:
                raise WrongCell(
                    f"the row replaces the judgment {shown(judgment.replaces)}, which does not exist",
                    "Import that one first, or leave the column `replaces` empty",
                )
            if _owner(replaced) != _owner(judgment):
                raise WrongCell(
                    f"the row replaces the judgment {shown(judgment.replaces)} of another rater or response",
                    "Leave the column `replaces` empty",
                )
        elif judgment.status is JudgmentStatus.WITHDRAWN:
            raise WrongCell("a withdrawal names no judgment to take back", "Write its id in the column `replaces`")
        elif earlier is not None:
            if earlier.id in self._lines:
                problem = f"{shown(judgment.rater)} already judged this response, on line {self._lines[earlier.id]}"
                raise WrongCell(
                    problem,
                    "Remove one of the two rows, or name the row that this one replaces in the column `replaces`",
                )
            if not self._replaces_rows:
                verdict = earlier.category or earlier.status
                problem = f"{shown(judgment.rater)} already judged this response as {verdict}, in {shown(earlier.id)}"
                raise WrongCell(problem, "Use --replace to replace that judgment")
            judgment = replace(judgment, replaces=earlier.id)
        self._lines[judgment.id] = self._line_by_id[judgment.id] = row.line
        responses.add(judgment)
        self.fresh.append((place.session.folder, judgment))


class _Responses:
    """The responses of one session by trial and by clip, with their judgments."""

    def __init__(self, session: RatedSession) -> None:
        self._session = session
        self._trials: Mapping[str, TrialProgress] = {trial.trial.id: trial for trial in session.trials}
        self._places_by_clip: dict[str, list[_Place]] = defaultdict(list)
        for trial in session.trials:
            for take in trial.takes:
                for attempt in take.attempts:
                    if attempt.frozen is not None:
                        sha = attempt.frozen.clip.sha256
                        self._places_by_clip[sha].append(
                            _Place(session, trial.trial.id, take.take, attempt.attempt, sha)
                        )
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

    def holds(self, row: ParsedJudgment) -> bool:
        trial, clip = row.text("trial").strip(), row.text("clip_sha256").strip()
        return (not trial or trial in self._trials) and (not clip or clip in self._places_by_clip)

    def place(self, row: ParsedJudgment, nearest: Nearest) -> _Place:
        trial, clip = row.text("trial").strip(), row.text("clip_sha256").strip()
        if trial.startswith(EXERCISE):
            return _Place(self._session, trial, row.integer("take") or 1, row.integer("attempt") or 1, clip)
        if trial and trial not in self._trials:
            raise WrongCell(f"there is no trial {shown(trial)} in this session", nearest(trial, self._trials))
        existing = self.rows.get(row.text("id"))
        if existing is not None and existing.clip_sha256 == clip:
            trial = trial or existing.trial_id
        place = self._place_of_clip(trial, clip) if clip else self._place_of_trial(trial)
        for column, is_so in (("take", place.take), ("attempt", place.attempt)):
            number = row.integer(column)
            if number is not None and number != is_so:
                problem = f"the response that counts is from {column} {is_so}, not {number}"
                raise WrongCell(
                    problem, "The trial was run again, or answered at another attempt. Judge the current response"
                )
        return place

    def _place_of_trial(self, trial: str) -> _Place:
        response = self._trials[trial].response
        if response is None:
            raise WrongCell(f"the trial {shown(trial)} has no response to judge", "Remove the row")
        return _Place(self._session, trial, response.take, response.attempt, response.clip.sha256)

    def _place_of_clip(self, trial: str, clip: str) -> _Place:
        places = [place for place in self._places_by_clip.get(clip, ()) if trial in ("", place.trial)]
        if len(places) == 1:
            return places[0]
        if not places:
            owner = f"the trial {shown(trial)}" if trial else "this session"
            raise WrongCell(
                f"the clip {shown(clip)} is not a response in {owner}", "Check that the file belongs to this session"
            )
        if trial:
            return places[-1]
        raise WrongCell(f"{len(places)} trials have the clip {shown(clip)}", "Write the trial as well")


def _judgment(row: ParsedJudgment, place: _Place, file: str, rater: str) -> Judgment:
    values = row.values
    span = values.get("span_start_s"), values.get("span_end_s")
    effect, proposed, unaided = row.text("effect"), row.text("proposed"), row.text("unaided")
    columns: dict[str, Any] = _UNKNOWN | {column: values[column] for column in _SAME if column in values}
    return Judgment(
        id=row.text("id") or _id_of(row, place),
        trial_id=place.trial,
        attempt=place.attempt,
        rater=rater,
        status=row.status,
        category=row.category,
        clip_sha256=place.clip_sha256,
        replaces=row.text("replaces") or None,
        # An exercise belongs to no session: it counts as done in every round of these sessions.
        session_id="" if place.trial.startswith(EXERCISE) else place.session.session_id,
        take=place.take,
        span_s=None if span[0] is None or span[1] is None else (float(str(span[0])), float(str(span[1]))),
        effect=EffectOutcome(effect) if effect else None,
        proposed=Category(proposed) if proposed else None,
        proposal_shown=ProposalShown(row.text("proposal_shown") or ProposalShown.NEVER),
        unaided=Category(unaided) if unaided else None,
        imported_from=row.text("imported_from") or file,
        comment=to_nfc(row.text("comment")),
        **columns,
    )


_SAME = (
    "item_id", "sub_flags", "flags", "confidence", "effect_claimed", "aid_path", "plays", "heard_ms",
    "time_to_answer_s", "transcript_shown", "round", "position", "shown_wall_s", "given_wall_s", "adjudicates",
    "guideline_version", "tool_version", "proposed_probability", "program",
    "program_confidence"
)  # fmt: skip
"""Columns that are fields of a judgment, with the same name."""


_UNKNOWN: dict[str, Any] = {"transcript_shown": None, "plays": None, "guideline_version": ""}
"""Values for a file without these columns. The defaults of a judgment would not be right, since they are those of the
harness's own desk."""


def _id_of(row: ParsedJudgment, place: _Place) -> str:
    """An id computed from the content of a row. The file and the line do not matter."""
    content = {
        **{column: value for column, value in row.values.items() if column != "imported_from"},
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
    """A key under which only one judgment can be in force. An adjudication has a key of its own."""
    return name_key(judgment.rater), judgment.trial_id, judgment.clip_sha256, bool(judgment.adjudicates)


def _content(judgment: Judgment, file_row: Judgment) -> Judgment:
    """The content of a judgment for comparisons, without fields that a file may leave out or add. file_row: the row of
    the file, in which columns may be missing."""
    may_lack = {**_UNKNOWN, "span_s": None, "item_id": ""}
    unknown = {name: value for name, value in may_lack.items() if getattr(file_row, name) == value}
    comment, rater = to_nfc(judgment.comment), name_key(judgment.rater)
    return replace(judgment, imported_from="", session_id="", replaces=None, comment=comment, rater=rater, **unknown)
