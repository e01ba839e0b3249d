"""The columns of a file of judgments, and their contents."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from harness.base.typed_table import ColumnContent, TypedTable, Value
from harness.model.judgment import EXERCISE, Judgment, in_force
from harness.rating.figures.judged_responses import RatedSession, RatedTrial, rated_trials_of

TEXT, WHOLE, NUMBER, YES_NO, LIST = ColumnContent
COLUMNS: dict[str, ColumnContent] = {
    "session": TEXT, "trial": TEXT, "take": WHOLE, "attempt": WHOLE, "clip_sha256": TEXT, "item_id": TEXT, "id": TEXT,
    "replaces": TEXT, "rater": TEXT, "status": TEXT, "category": TEXT, "sub_flags": LIST, "flags": LIST,
    "confidence": WHOLE, "comment": TEXT, "effect_claimed": YES_NO, "effect": TEXT, "aid_path": LIST, "plays": WHOLE,
    "heard_ms": WHOLE, "time_to_answer_s": NUMBER, "transcript_shown": YES_NO, "round": TEXT, "position": WHOLE,
    "span_start_s": NUMBER, "span_end_s": NUMBER, "shown_wall_s": NUMBER, "given_wall_s": NUMBER, "adjudicates": LIST,
    "guideline_version": TEXT, "tool_version": TEXT, "imported_from": TEXT, "proposed": TEXT,
    "proposed_probability": NUMBER, "proposal_shown": TEXT, "unaided": TEXT, "program": YES_NO,
    "program_confidence": NUMBER,
}  # fmt: skip
"""Columns of a judgment, read and written."""

CONTEXT: dict[str, ColumnContent] = {
    "in_force": YES_NO, "final": TEXT, "final_by": TEXT, "device": TEXT, "query": TEXT, "query_class": TEXT,
    "reference": TEXT, "outcome": TEXT, "response": TEXT,
}  # fmt: skip
"""Columns about its response, written but not read."""

CONDITION = "condition."
"""Prefix of the columns of conditions, before the name of the axis; also written but not read."""

REVEALING = ("session", "trial", "device", "item_id", "span_start_s", "span_end_s", "imported_from")
"""Columns that a blind file leaves out, besides conditions: they reveal the session or the device.

An item's id is a hash of the session and the trial: it confirms a guess.
"""


def judgment_table(sessions: Sequence[RatedSession], *, only_in_force: bool = False, blind: bool = False) -> TypedTable:
    """Every judgment row of these sessions, oldest first in each.

    - only_in_force: whether to leave out judgments that were changed or taken back, and to leave `replaces` empty.
    - blind: whether to leave out columns that reveal the session or the device, and to sort by clip, which then
      identifies the response. Exercises are left out too, since they would look like responses.
    """
    axes = sorted({axis for session in sessions for trial in session.trials for axis, _ in trial.trial.conditions})
    columns = {**COLUMNS, **CONTEXT, **dict.fromkeys((CONDITION + axis for axis in axes), ColumnContent.TEXT)}
    if blind:
        columns = {
            name: content
            for name, content in columns.items()
            if name not in REVEALING and not name.startswith(CONDITION)
        }
    rows: list[dict[str, Value]] = []
    for session in sessions:
        rated = {
            trial.trial.id: trial for trial in rated_trials_of(session.session_id, session.trials, session.responses)
        }
        judgments = list({judgment.id: judgment for judgment in session.rows}.values())
        ids_in_force = {judgment.id for judgment in in_force(judgments)}
        for judgment in judgments:
            if blind and judgment.trial_id.startswith(EXERCISE):
                continue
            if judgment.id in ids_in_force or not only_in_force:
                values = {
                    **_judgment_values(judgment, session.session_id),
                    "replaces": None if only_in_force else judgment.replaces,
                    "in_force": judgment.id in ids_in_force,
                    **_context_values(judgment, rated.get(judgment.trial_id)),
                }
                rows.append(values)
    if blind:
        # In the order of the sessions, rows would show which responses belong to the same session.
        rows.sort(key=lambda values: str(values["clip_sha256"]))
    return TypedTable(tuple(columns.items()), tuple(tuple(values.get(name) for name in columns) for values in rows))


def count_in_force(table: TypedTable) -> int:
    """Number of judgments of responses with a category that were neither changed nor taken back."""
    names = [name for name, _ in table.columns]
    rows = [dict(zip(names, row, strict=True)) for row in table.rows]
    return sum(
        bool(row["in_force"]) and row["category"] is not None and not str(row.get("trial")).startswith(EXERCISE)
        for row in rows
    )


def _judgment_values(judgment: Judgment, session_id: str) -> dict[str, Value]:
    start_s, end_s = judgment.span_s or (None, None)
    values: dict[str, Value] = {}
    for name in _JUDGMENT_FIELDS:
        value = getattr(judgment, name)
        values[name] = value.value if isinstance(value, StrEnum) else value
    session = judgment.session_id or session_id
    return {**values, "session": session, "trial": judgment.trial_id, "span_start_s": start_s, "span_end_s": end_s}


_JUDGMENT_FIELDS = [name for name in COLUMNS if name not in ("session", "trial", "span_start_s", "span_end_s")]
"""Columns that are fields of a judgment, with the same name."""


def _context_values(judgment: Judgment, rated: RatedTrial | None) -> dict[str, Value]:
    """Columns about the trial, and about its response if that is the judged one."""
    if rated is None:
        return {}
    trial = rated.trial
    cells: dict[str, Value] = {
        "device": trial.device,
        "query": trial.query_id,
        "query_class": trial.query_class,
        "reference": trial.reference,
        **{CONDITION + axis: label for axis, label in trial.conditions},
    }
    judged = rated.judged
    if judged is not None and judged.response.clip.sha256 == judgment.clip_sha256:
        cells["outcome"] = rated.progress.outcome.value if rated.progress.outcome else None
        cells["response"] = judged.response.transcript
        cells["final"] = None if rated.category is None else rated.category.value
        cells["final_by"] = None if rated.basis is None else rated.basis.value
    return cells
