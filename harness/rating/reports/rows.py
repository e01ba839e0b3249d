"""Judgments with what is known of their responses, as rows of values under the columns of `model.judgment_columns`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from harness.model.judgment import COLUMNS, CONDITION, CONTEXT, TELLING, Content, Judgment, in_force
from harness.rating.figures.rated_trials import RatedTrial, consensus_of, rated_in
from harness.rating.figures.raters import RatedSession
from harness.session.figures.progress import Progress

Value = str | int | float | bool | tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class JudgmentTable:
    """rows: a value for each column. An absent value is None, and an absent list is empty."""

    columns: tuple[tuple[str, Content], ...]
    rows: tuple[tuple[Value, ...], ...]


def judgment_table(
    sessions: Sequence[tuple[Progress, RatedSession]], *, only_in_force: bool = False, blind: bool = False
) -> JudgmentTable:
    """Every judgment row of these sessions, oldest first in each.

    only_in_force: those that stand; they are then said to replace nothing, since that is not there.
    blind: without what tells whose response it is; the response is then known by its clip.
    """
    finals = consensus_of(one for _, session in sessions for one in session.responses)
    axes = sorted({axis for progress, _ in sessions for one in progress.trials for axis, _ in one.trial.conditions})
    columns = {**COLUMNS, **CONTEXT, **dict.fromkeys((CONDITION + axis for axis in axes), Content.TEXT)}
    if blind:
        columns = {n: c for n, c in columns.items() if n not in TELLING and not n.startswith(CONDITION)}
    rows = []
    for progress, session in sessions:
        rated = {one.trial.id: one for one in rated_in(progress, session.responses, finals)}
        judgments = list({one.id: one for one in session.rows}.values())
        standing = {one.id for one in in_force(judgments)}
        for one in judgments:
            if one.id in standing or not only_in_force:
                values = {
                    **_judgment(one, session.session_id),
                    "replaces": None if only_in_force else one.replaces,
                    "in_force": one.id in standing,
                    **_context(one, rated.get(one.trial_id)),
                }
                rows.append(tuple(values.get(name) for name in columns))
    return JudgmentTable(tuple(columns.items()), tuple(rows))


def _judgment(one: Judgment, session_id: str) -> dict[str, Value]:
    span = one.span_s or (None, None)
    return {
        "session": one.session_id or session_id,
        "trial": one.trial_id,
        "take": one.take,
        "attempt": one.attempt,
        "clip_sha256": one.clip_sha256,
        "item_id": one.item_id,
        "id": one.id,
        "replaces": one.replaces,
        "rater": one.rater,
        "status": one.status.value,
        "category": None if one.category is None else one.category.value,
        "sub_flags": one.sub_flags,
        "flags": one.flags,
        "confidence": one.confidence,
        "comment": one.comment,
        "effect_claimed": one.effect_claimed,
        "effect": None if one.effect is None else one.effect.value,
        "aid_path": one.aid_path,
        "plays": one.plays,
        "heard_ms": one.heard_ms,
        "time_to_answer_s": one.time_to_answer_s,
        "transcript_shown": one.transcript_shown,
        "round": one.round,
        "position": one.position,
        "span_start_s": span[0],
        "span_end_s": span[1],
        "shown_wall_s": one.shown_wall_s,
        "given_wall_s": one.given_wall_s,
        "adjudicates": one.adjudicates,
        "guideline_version": one.guideline_version,
        "tool_version": one.tool_version,
        "imported_from": one.imported_from,
        "proposed": None if one.proposed is None else one.proposed.value,
        "proposed_probability": one.proposed_probability,
        "proposal_shown": one.proposal_shown.value,
        "unaided": None if one.unaided is None else one.unaided.value,
    }


def _context(one: Judgment, rated: RatedTrial | None) -> dict[str, Value]:
    """Of the trial; what is said of its response only where that is the one that was judged."""
    if rated is None:
        return {}
    trial = rated.trial
    found: dict[str, Value] = {
        "device": trial.device,
        "query": trial.query_id,
        "query_class": trial.query_class,
        "reference": trial.reference,
        **{CONDITION + axis: label for axis, label in trial.conditions},
    }
    judged = rated.judged
    if judged is not None and judged.response.clip.sha256 == one.clip_sha256:
        found["outcome"] = rated.progress.outcome.value if rated.progress.outcome else None
        found["response"] = judged.response.transcript
        found["final"] = None if rated.category is None else rated.category.value
        found["final_by"] = None if rated.basis is None else rated.basis.value
    return found


def columns_of(table: JudgmentTable) -> Iterable[list[Value]]:
    """The table by columns."""
    return (list(values) for values in zip(*table.rows, strict=True)) if table.rows else ([] for _ in table.columns)
