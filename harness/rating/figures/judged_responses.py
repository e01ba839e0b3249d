"""First responses with all judgments, from the bench and later, for agreement and category counts."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path

from harness.base.garbage_collection import gc_paused
from harness.base.user_text import name_key
from harness.model.choices import Grouping
from harness.model.errors import InputError
from harness.model.frozen import frozen
from harness.model.judgment import EXERCISE, Category, Judgment, JudgmentStatus, SubFlag, in_force
from harness.model.record import JudgmentGiven
from harness.model.trial import Outcome, Recognition, Trial
from harness.session.figures.trials import ROWS_OF_TRIALS, FirstResponse, SessionTrials, TrialProgress, label_of
from harness.session.log.reader import LogReader, rating_rows
from harness.statistics.agreement import leading_label


@frozen
class JudgedResponse:
    """A first response with its judgments in force, oldest first, at most one per rater.

    - judgments: those of raters, with any status.
    - settled: the adjudication in force, which is not among them; None without one.
    - programs: judgments of programs, which count in no category, agreement or consensus.
    """

    session_id: str
    trial: TrialProgress
    response: FirstResponse
    judgments: tuple[Judgment, ...] = ()
    settled: Judgment | None = None
    programs: tuple[Judgment, ...] = ()

    @property
    def submitted(self) -> tuple[Judgment, ...]:
        """Judgments with a category."""
        return tuple(judgment for judgment in self.judgments if judgment.status is JudgmentStatus.SUBMITTED)

    @property
    def agreed(self) -> Category | None:
        """The category of the adjudication; without one, the category that all raters gave. None for neither."""
        if self.settled is not None:
            return self.settled.category
        categories = {judgment.category for judgment in self.submitted}
        return categories.pop() if len(categories) == 1 else None

    @property
    def consensus(self) -> tuple[Category, int] | None:
        """The category that most raters (at least two) gave, and their number. None for a tie."""
        return leading_label(judgment.category for judgment in self.submitted if judgment.category is not None)

    @property
    def disputed(self) -> bool:
        """Whether raters differ, without an adjudication."""
        return self.settled is None and len({judgment.category for judgment in self.submitted}) > 1


@frozen
class RatedSession:
    """A session with its responses (`judged_responses_of`) and all judgment rows, oldest first.

    Memory probes are not judged.
    """

    folder: Path
    session_id: str
    trials: tuple[TrialProgress, ...]
    responses: tuple[JudgedResponse, ...]
    rows: tuple[Judgment, ...]


def judged_responses_of(
    session_id: str, trials: Iterable[TrialProgress], rows: Iterable[Judgment], *, with_programs: bool = False
) -> tuple[JudgedResponse, ...]:
    """A session's first responses in the order of playing, judged or not.

    A judgment belongs to its clip, so a trial that was run again must be judged again.

    - rows: every judgment row of the session, oldest first (`log.reader.rating_rows`), including those in the log, from
      `complete_rows`.
    - with_programs: whether programs count as raters, like people.
    """
    rows_by_clip: dict[tuple[str, str], list[Judgment]] = defaultdict(list)
    ids: set[str] = set()
    for row in rows:
        if row.id not in ids:
            ids.add(row.id)
            rows_by_clip[row.trial_id, row.clip_sha256].append(row)
    responses = []
    for trial in trials:
        response = trial.response
        if response is None:
            continue
        judgments_in_force = in_force(rows_by_clip.get((trial.trial.id, response.clip.sha256), []))
        adjudications = [
            judgment
            for judgment in judgments_in_force
            if judgment.adjudicates and judgment.status is JudgmentStatus.SUBMITTED
        ]
        rater_judgments = tuple(judgment for judgment in judgments_in_force if not judgment.adjudicates)
        counted_judgments = tuple(judgment for judgment in rater_judgments if with_programs or not judgment.program)
        responses.append(
            JudgedResponse(
                session_id,
                trial,
                response,
                judgments=counted_judgments,
                settled=adjudications[-1] if adjudications else None,
                programs=tuple(judgment for judgment in rater_judgments if judgment not in counted_judgments),
            )
        )
    return tuple(responses)


class QueryOutcome(StrEnum):
    """The outcome of a query. Each query has exactly one. From UNJUDGED on, it has a first response."""

    NOT_PLAYED = "not_played"
    NOT_TESTED = "not_tested"
    """Skipped, aborted or interrupted."""
    NOT_RECOGNISED = "not_recognised"
    """Misheard, no wake, or silence up to the last attempt."""
    INCONCLUSIVE = "inconclusive"
    """Answered, without evidence of recognition."""
    SILENT = "silent"
    """Recognised (or not assessed), without an answer."""
    NO_RECORDING = "no_recording"
    """Answered, without a recording."""
    UNJUDGED = "unjudged"
    SKIPPED = "skipped"
    """Left for later by its raters."""
    FLAGGED = "flagged"
    """Put aside by a rater."""
    HELD = "held"
    """Held until its effect is known."""
    TIED = "disputed"
    """Raters differ, without a consensus or an adjudication. JSON and CSV keep the older word."""
    CATEGORY = "category"
    """It has a category."""


class Basis(StrEnum):
    """Basis of a category, in order of preference. ALONE: the judgment of a single rater."""

    ADJUDICATED = "adjudicated"
    UNANIMOUS = "unanimous"
    ALONE = "one_rater"
    CONSENSUS = "consensus"


@frozen
class RatedTrial:
    """A planned query with its outcome.

    - judged: the first response; None without one.
    - category, basis: None unless the outcome is CATEGORY.
    - sub_flags: those that at least half of the raters who gave the category have set; with an adjudication, its own.
    """

    session_id: str
    progress: TrialProgress
    outcome: QueryOutcome
    judged: JudgedResponse | None = None
    category: Category | None = None
    basis: Basis | None = None
    sub_flags: frozenset[SubFlag] = frozenset()

    @property
    def trial(self) -> Trial:
        return self.progress.trial

    @property
    def query(self) -> tuple[str, str]:
        """Id and text of the query. The text is needed since another scenario may use the id for other words."""
        return self.trial.query_id, self.trial.reference

    @property
    def conditions(self) -> tuple[str, ...]:
        """The labels of its conditions, one for each axis."""
        return tuple(label_of(self.trial, self.trial.device, axis) for axis in AXES)

    @property
    def assessed(self) -> bool:
        """Whether evidence of what the device heard decided if the query was repeated."""
        take = self.progress.counting
        if self.trial.until_understood or take is None:
            return False
        return take.recognition not in (None, Recognition.NOT_ASSESSED)

    @property
    def attempts(self) -> int | None:
        """Number of attempts until the query was recognised; None if it never was, or if that is unknown."""
        take = self.progress.counting
        return take.attempts_to_recognition if take is not None else None


AXES = (Grouping.VOICE, Grouping.LEVEL, Grouping.GAP, Grouping.POSITION, Grouping.NOISE)


def select_rows(rows: Iterable[Judgment], raters: tuple[str, ...] = (), round_id: str | None = None) -> list[Judgment]:
    """The rows of some raters, or of one round; all by default. Keeps the order, oldest first.

    - raters: selects only their judgments, without adjudications; () for all.
    - round_id: selects the rows of this round, rows that change or withdraw them, and their adjudications; None for all
      rounds.
    """
    if not raters and round_id is None:
        return list(rows)
    selected: dict[str, Judgment] = {}
    keys = {name_key(name) for name in raters}
    for row in rows:
        if raters and (row.adjudicates or name_key(row.rater) not in keys):
            continue
        is_in_round = round_id is None or row.round == round_id
        concerns_selected = row.replaces in selected or not selected.keys().isdisjoint(row.adjudicates)
        if is_in_round or concerns_selected:
            selected[row.id] = row
    return list(selected.values())


def rated_trials_of(
    session_id: str, trials: Iterable[TrialProgress], judged: Iterable[JudgedResponse]
) -> tuple[RatedTrial, ...]:
    """The queries of a session in the order of playing. Other kinds of trials, and devices without a voice, are left
    out.

    judged: `judged_responses_of` the same session.
    """
    judged_by_trial = {response.trial.trial.id: response for response in judged}
    return tuple(
        _rate_trial(session_id, trial, judged_by_trial.get(trial.trial.id))
        for trial in trials
        if trial.trial.listening is None and trial.trial.memory is None and trial.trial.responds
    )


def _rate_trial(session_id: str, trial: TrialProgress, judged: JudgedResponse | None) -> RatedTrial:
    if judged is None:
        return RatedTrial(session_id, trial, _outcome_without_response(trial))
    category, basis = _final_category(judged)
    if category is None:
        return RatedTrial(session_id, trial, _outcome_without_category(judged), judged)
    return RatedTrial(
        session_id=session_id,
        progress=trial,
        outcome=QueryOutcome.CATEGORY,
        judged=judged,
        category=category,
        basis=basis,
        sub_flags=_sub_flags(judged, category),
    )


def _outcome_without_response(trial: TrialProgress) -> QueryOutcome:
    take = trial.counting
    match trial.outcome:
        case None:
            return QueryOutcome.NOT_PLAYED
        case Outcome.NO_WAKE | Outcome.MISHEARD:
            return QueryOutcome.NOT_RECOGNISED
        case Outcome.NO_RESPONSE:
            if take is not None and take.recognition in (Recognition.YES, Recognition.NOT_ASSESSED):
                return QueryOutcome.SILENT
            return QueryOutcome.NOT_RECOGNISED
        case Outcome.INCONCLUSIVE:
            return QueryOutcome.INCONCLUSIVE
        case Outcome.RESPONDED | Outcome.LATE:
            return QueryOutcome.NO_RECORDING
        case Outcome.UNDERSTOOD:
            return QueryOutcome.SILENT
        case Outcome.INTERRUPTED | Outcome.SKIPPED | Outcome.ABORTED | Outcome.COUNTED:
            return QueryOutcome.NOT_TESTED


def _final_category(judged: JudgedResponse) -> tuple[Category | None, Basis | None]:
    if judged.settled is not None:
        return judged.settled.category, Basis.ADJUDICATED
    judgments = judged.submitted
    if judged.agreed is not None:
        return judged.agreed, Basis.UNANIMOUS if len(judgments) > 1 else Basis.ALONE
    if judged.consensus is not None:
        category, _ = judged.consensus
        return category, Basis.CONSENSUS
    return None, None


def _outcome_without_category(judged: JudgedResponse) -> QueryOutcome:
    """The outcome of a response without a category. A flag precedes a hold, and a hold precedes a skip."""
    if judged.disputed:
        return QueryOutcome.TIED
    statuses = {judgment.status for judgment in judged.judgments}
    for status, outcome in (
        (JudgmentStatus.FLAGGED, QueryOutcome.FLAGGED),
        (JudgmentStatus.HELD, QueryOutcome.HELD),
        (JudgmentStatus.SKIPPED, QueryOutcome.SKIPPED),
    ):
        if status in statuses:
            return outcome
    return QueryOutcome.UNJUDGED


def _sub_flags(judged: JudgedResponse, category: Category) -> frozenset[SubFlag]:
    if judged.settled is not None:
        return frozenset(map(SubFlag, judged.settled.sub_flags))
    flag_sets = [
        frozenset(map(SubFlag, judgment.sub_flags)) for judgment in judged.submitted if judgment.category is category
    ]
    counts = Counter(flag for flags in flag_sets for flag in flags)
    return frozenset(flag for flag, count in counts.items() if 2 * count >= len(flag_sets))


def read_sessions(folders: Sequence[Path]) -> tuple[RatedSession, ...]:
    """Reads sessions in the given order. Raises LogError, and InputError if two folders contain the same session."""
    session_by_id: dict[str, RatedSession] = {}
    names: dict[str, str] = {}
    for folder in folders:
        session = _read_session(folder, names)
        first = session_by_id.setdefault(session.session_id, session)
        if first is not session:
            raise InputError(
                f"{first.folder} and {folder} contain the same session, {session.session_id}",
                remedy="Pass only one of the folders; otherwise the judgments count twice",
            )
    return tuple(session_by_id.values())


def with_selected_rows(
    sessions: Sequence[RatedSession], round_id: str | None, raters: tuple[str, ...] = (), *, with_programs: bool = False
) -> tuple[RatedSession, ...]:
    """The sessions with only the judgments of one round, or of some raters (`select_rows`).

    Programs count like people only with `with_programs`, or by name in `raters`.
    """
    if round_id is None and not raters and not with_programs:
        return tuple(sessions)
    with_programs = with_programs or bool(raters)
    return tuple(
        _with_rows(session, select_rows(session.rows, raters, round_id), with_programs) for session in sessions
    )


def rated_trials(sessions: Sequence[RatedSession]) -> tuple[RatedTrial, ...]:
    """The queries of all sessions, with their outcomes."""
    return tuple(
        trial
        for session in sessions
        for trial in rated_trials_of(session.session_id, session.trials, session.responses)
    )


def complete_rows(rows: Iterable[Judgment], session_id: str, names: dict[str, str]) -> list[Judgment]:
    """The rows of a session, with its id and each rater's name in its first spelling.

    Rows from the bench do not name their session. Rows about exercises belong to none. names: the spellings by key; new
    ones are added.
    """
    completed_rows = []
    for row in rows:
        name = names.setdefault(name_key(row.rater), row.rater)
        own_id = row.session_id or ("" if row.trial_id.startswith(EXERCISE) else session_id)
        is_complete = (name, own_id) == (row.rater, row.session_id)
        completed_rows.append(row if is_complete else replace(row, rater=name, session_id=own_id))
    return completed_rows


def _read_session(folder: Path, names: dict[str, str]) -> RatedSession:
    session_trials = SessionTrials()
    with LogReader(folder) as reader, gc_paused():
        for entry in reader.entries(kinds=ROWS_OF_TRIALS):
            session_trials.add(entry.record)
    session_id = session_trials.session.session_id if session_trials.session else folder.resolve().name
    rows = [entry.record.judgment for entry in rating_rows(folder) if isinstance(entry.record, JudgmentGiven)]
    return _with_rows(
        RatedSession(folder, session_id, session_trials.trials, (), ()), complete_rows(rows, session_id, names)
    )


def _with_rows(session: RatedSession, rows: Sequence[Judgment], with_programs: bool = False) -> RatedSession:
    responses = judged_responses_of(session.session_id, session.trials, rows, with_programs=with_programs)
    return replace(session, responses=responses, rows=tuple(rows))
