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
from harness.model.frozen import frozen
from harness.model.judgment import EXERCISE, Category, Judgment, JudgmentStatus
from harness.model.record import JudgmentGiven
from harness.rating.figures.judged_responses import RatedSession
from harness.rating.files.reading import JudgmentFile, ParsedJudgment, WrongCell
from harness.rating.guide import KEYS, LABELS
from harness.rating.judgment_log import JudgmentLog
from harness.session.figures.trials import TrialProgress

NAMESPACE = uuid.UUID("6f6dd9b1-5a53-4c53-8e0e-2f1b7f0f4f5a")
"""Namespace for the ids of rows without an id: equal rows get equal ids."""
CATEGORY_BY_WORD: dict[str, Category] = {
    **{category.value: category for category in Category},
    **{category.value.replace("_", " "): category for category in Category},
    **{label.lower(): category for category, label in LABELS.items()},
    **dict(KEYS),
}
"""The category for every accepted word in lower case: its name, its label on screen, its key."""


HintAtNearest = Callable[[str, Iterable[str]], str]
"""A remedy that names the nearest known word; takes the unknown word and the known ones."""


@frozen
class _ResponsePlace:
    """A response: session, trial, and the take and attempt that recorded its clip."""

    session: RatedSession
    trial: str
    take: int
    attempt: int
    clip_sha256: str


class ImportPlan:
    """What an import would write.

    - new_judgments: judgments to write, with their folders.
    - known_count: number of rows that a session already has.
    - bad_count: number of wrong rows. problems: their errors, of which only the first are listed.
    - repeated_lines: lines with the same row as an earlier line, each with that line. They count once.

    may_replace: whether rows may replace earlier judgments; if not, such rows are refused.
    """

    def __init__(self, sessions: Sequence[RatedSession], read: JudgmentFile, path: Path, *, may_replace: bool) -> None:
        self._path = path
        self._may_replace = may_replace
        self._sessions = {session.session_id: _Responses(session) for session in sessions}
        self.bad_count = self.known_count = 0
        self.new_judgments: list[tuple[Path, Judgment]] = []
        self._new_lines: dict[str, int] = {}
        """The line of each new judgment, by its id."""
        self._first_lines: dict[str, int] = {}
        """The first line of each valid row, by its id."""
        self.repeated_lines: list[tuple[int, int]] = []
        self._raters = dict.fromkeys(row.rater for session in sessions for row in session.rows)
        wrong_rows = Problems(str(path))
        for row in read.rows:
            try:
                place = self._find_place(row)
                self._add(row, place, self._sessions[place.session.session_id])
            except WrongCell as wrong:
                self.bad_count += 1
                wrong_rows.add(row.line, 0, wrong.what, wrong.remedy)
        self.bad_count += read.bad_count
        self.problems = tuple(
            sorted((*read.problems, *wrong_rows.listed), key=lambda problem: problem.place.line if problem.place else 0)
        )

    @property
    def replacing_count(self) -> int:
        """Number of judgments to write that replace one of a session."""
        replaced_ids = [judgment.replaces for _, judgment in self.new_judgments if judgment.replaces is not None]
        return sum(id_ not in self._new_lines for id_ in replaced_ids)

    def write(self) -> None:
        """Writes the new judgments, in each session all or none. A second call adds nothing. Raises LogError."""
        by_folder = group_by((folder, JudgmentGiven(judgment)) for folder, judgment in self.new_judgments)
        for folder, records in by_folder.items():
            with closing(JudgmentLog(folder)) as log:
                log.add(records)

    def _find_place(self, row: ParsedJudgment) -> _ResponsePlace:
        """The response of a row. Without a session in the row, the only session that has its id, or else its response.

        Raises WrongCell if there is not exactly one.
        """
        session_id = row.text("session").strip()
        if session_id:
            if session_id not in self._sessions:
                raise WrongCell(
                    f"no session {shown(session_id)} was given", self._nearest_hint(session_id, self._sessions)
                )
            return self._sessions[session_id].find_place(row, self._nearest_hint)
        candidates = list(self._sessions.values())
        matching = [responses for responses in candidates if row.text("id") in responses.rows]
        matching = matching or [responses for responses in candidates if responses.matches(row)]
        if len(candidates) > 1 and len(matching) != 1:
            among = "in several sessions" if matching else "in no session"
            raise WrongCell(f"the response occurs {among}", "Add the session in the column `session`")
        (responses,) = matching or candidates  # a single session reports what does not match
        return responses.find_place(row, self._nearest_hint)

    def _nearest_hint(self, word: str, candidates: Iterable[str]) -> str:
        """A hint at the nearest known word; "" if the message would not be shown."""
        if self.bad_count >= MAX_LISTED:  # the search is slow
            return ""
        match = extractOne(word, list(candidates), score_cutoff=50)
        return f"Did you mean {match[0]!r}?" if match else "To list the trials: harness report show SESSION --trials"

    def _add(self, row: ParsedJudgment, place: _ResponsePlace, responses: _Responses) -> None:
        """Adds the judgment of a row, unless it is known. Raises WrongCell if it contradicts another one."""
        rater = known_name(person_name(row.text("rater"), "rater name"), self._raters)
        self._raters.setdefault(rater)
        judgment = _make_judgment(row, place, self._path.name, rater)
        existing = responses.rows.get(judgment.id)
        if existing is not None:
            self._add_known(row.line, judgment, existing)
            return
        judgment = self._with_replaced(judgment, responses)
        self._new_lines[judgment.id] = self._first_lines[judgment.id] = row.line
        responses.add(judgment)
        self.new_judgments.append((place.session.folder, judgment))

    def _add_known(self, line: int, judgment: Judgment, existing: Judgment) -> None:
        """Counts a row whose id exists already, in a session or on an earlier line."""
        first_line = self._first_lines.get(judgment.id)
        if _content(existing, judgment) != _content(judgment, judgment):
            location = "in the session" if first_line is None else f"on line {first_line}"
            raise WrongCell(
                f"the judgment {shown(judgment.id)} is already {location}, with different content",
                "To add a new judgment, leave the id empty. To replace the rater's earlier one, use --replace as well",
            )
        self._first_lines.setdefault(judgment.id, line)
        if first_line is None:
            self.known_count += 1
        else:
            self.repeated_lines.append((line, first_line))

    def _with_replaced(self, judgment: Judgment, responses: _Responses) -> Judgment:
        """A new judgment that names the one it replaces, if there is one. Raises WrongCell if that is not allowed."""
        earlier = responses.in_force.get(_owner(judgment))
        if judgment.replaces is not None:
            replaced = responses.rows.get(judgment.replaces)
            if replaced is None:
                raise WrongCell(
                    f"the row replaces the judgment {shown(judgment.replaces)}, which does not exist",
                    "Import that judgment first, or leave the column `replaces` empty",
                )
            if _owner(replaced) != _owner(judgment):
                raise WrongCell(
                    f"the row replaces the judgment {shown(judgment.replaces)} of another rater or response",
                    "Leave the column `replaces` empty",
                )
        elif judgment.status is JudgmentStatus.WITHDRAWN:
            raise WrongCell(
                "a withdrawal does not say which judgment to take back",
                "Enter the id of that judgment in the column `replaces`",
            )
        elif earlier is not None:
            if earlier.id in self._new_lines:
                problem = f"{shown(judgment.rater)} already judged this response, on line {self._new_lines[earlier.id]}"
                raise WrongCell(
                    problem,
                    "Remove one of the two rows, or enter the id of the earlier judgment in `replaces` of the later",
                )
            if not self._may_replace:
                verdict = earlier.category or earlier.status
                problem = f"{shown(judgment.rater)} already judged this response as {verdict}, in {shown(earlier.id)}"
                raise WrongCell(problem, "Use --replace to replace that judgment")
            return replace(judgment, replaces=earlier.id)
        return judgment


class _Responses:
    """The responses of one session by trial and by clip, with their judgments.

    - rows: all judgments by id, also those added by the import.
    - in_force: the judgment in force by its `_owner`.
    """

    def __init__(self, session: RatedSession) -> None:
        self._session = session
        self._trials: Mapping[str, TrialProgress] = {trial.trial.id: trial for trial in session.trials}
        self._places_by_clip: dict[str, list[_ResponsePlace]] = defaultdict(list)
        takes = [(trial, take) for trial in session.trials for take in trial.takes]
        for trial, take in takes:
            for attempt in take.attempts:
                if attempt.frozen is not None:
                    sha256 = attempt.frozen.clip.sha256
                    place = _ResponsePlace(session, trial.trial.id, take.take, attempt.attempt, sha256)
                    self._places_by_clip[sha256].append(place)
        self.rows: dict[str, Judgment] = {}
        self.in_force: dict[tuple[str, str, str, bool], Judgment] = {}
        for row in session.rows:
            self.add(row)

    def add(self, judgment: Judgment) -> None:
        self.rows.setdefault(judgment.id, judgment)
        replaced = None if judgment.replaces is None else self.rows.get(judgment.replaces)
        if replaced is not None:
            owner = _owner(replaced)
            if owner in self.in_force and self.in_force[owner].id == replaced.id:
                del self.in_force[owner]
        if judgment.status is not JudgmentStatus.WITHDRAWN:
            self.in_force[_owner(judgment)] = judgment

    def matches(self, row: ParsedJudgment) -> bool:
        """Whether the session has the trial and the clip of a row, as far as the row names them."""
        trial, clip = row.text("trial").strip(), row.text("clip_sha256").strip()
        return (not trial or trial in self._trials) and (not clip or clip in self._places_by_clip)

    def find_place(self, row: ParsedJudgment, hint_at_nearest: HintAtNearest) -> _ResponsePlace:
        """The response of a row. Raises WrongCell if there is none, or if it is not the one that counts."""
        trial, clip = row.text("trial").strip(), row.text("clip_sha256").strip()
        if trial.startswith(EXERCISE):
            return _ResponsePlace(self._session, trial, row.integer("take") or 1, row.integer("attempt") or 1, clip)
        if trial and trial not in self._trials:
            raise WrongCell(f"there is no trial {shown(trial)} in this session", hint_at_nearest(trial, self._trials))
        existing = self.rows.get(row.text("id"))
        if existing is not None and existing.clip_sha256 == clip:
            trial = trial or existing.trial_id
        place = self._place_of_clip(trial, clip) if clip else self._place_of_trial(trial)
        for column, actual in (("take", place.take), ("attempt", place.attempt)):
            number = row.integer(column)
            if number is not None and number != actual:
                problem = f"the response that counts comes from {column} {actual}, not {number}"
                raise WrongCell(
                    problem, "The trial was run again, or answered at another attempt. Judge the current response"
                )
        return place

    def _place_of_trial(self, trial: str) -> _ResponsePlace:
        response = self._trials[trial].response
        if response is None:
            raise WrongCell(f"the trial {shown(trial)} has no response to judge", "Remove the row")
        return _ResponsePlace(self._session, trial, response.take, response.attempt, response.clip.sha256)

    def _place_of_clip(self, trial: str, clip: str) -> _ResponsePlace:
        """The response with a clip. trial: "" if the row names none."""
        places = [place for place in self._places_by_clip.get(clip, ()) if trial in ("", place.trial)]
        if len(places) == 1:
            return places[0]
        if not places:
            owner = f"the trial {shown(trial)}" if trial else "this session"
            raise WrongCell(
                f"the clip {shown(clip)} is not a response in {owner}", "Check that the file belongs to this session"
            )
        if trial:  # several attempts have equal clips
            return places[-1]
        raise WrongCell(f"{len(places)} trials have the clip {shown(clip)}", "Add the trial in the column `trial`")


def _make_judgment(row: ParsedJudgment, place: _ResponsePlace, file: str, rater: str) -> Judgment:
    """The judgment of a row. file: name of the file, unless the row names another."""
    values = row.values
    start_s, end_s = values.get("span_start_s"), values.get("span_end_s")
    columns: dict[str, Any] = _UNKNOWN | {column: values[column] for column in _SAME_NAMES if column in values}
    return Judgment(
        id=row.text("id") or _content_id(row, place),
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
        span_s=None if start_s is None or end_s is None else (float(str(start_s)), float(str(end_s))),
        imported_from=row.text("imported_from") or file,
        comment=to_nfc(row.text("comment")),
        **columns,
    )


_SAME_NAMES = (
    "item_id", "sub_flags", "flags", "confidence", "effect_claimed", "aid_path", "plays", "heard_ms",
    "time_to_answer_s", "transcript_shown", "round", "position", "shown_wall_s", "given_wall_s", "adjudicates",
    "guideline_version", "tool_version", "effect", "proposed", "proposed_probability", "proposal_shown", "unaided",
    "program", "program_confidence"
)  # fmt: skip
"""Columns that are fields of a judgment, with the same name."""


_UNKNOWN: dict[str, Any] = {"transcript_shown": None, "plays": None, "guideline_version": ""}
"""Values for a file without these columns. The defaults of a judgment would not be right, since they are those of the
harness's own desk."""


def _content_id(row: ParsedJudgment, place: _ResponsePlace) -> str:
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
    values_if_missing = {**_UNKNOWN, "span_s": None, "item_id": ""}
    missing = {name: value for name, value in values_if_missing.items() if getattr(file_row, name) == value}
    comment, rater = to_nfc(judgment.comment), name_key(judgment.rater)
    return replace(judgment, imported_from="", session_id="", replaces=None, comment=comment, rater=rater, **missing)
