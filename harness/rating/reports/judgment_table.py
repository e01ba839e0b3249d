"""The columns of a file of judgments, and what stands in them."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from importlib.util import find_spec
from typing import Any

from harness.base.safe_csv import safe_csv
from harness.model.errors import HarnessError
from harness.model.judgment import Judgment, in_force
from harness.rating.figures.judged import RatedSession, RatedTrial, consensus_of, rated_in


class ColumnContent(StrEnum):
    """What a column holds. LIST: texts; in CSV with ; between them, or as a JSON list where one holds a ;."""

    TEXT = "text"
    WHOLE = "whole number"
    NUMBER = "number"
    YES_NO = "true or false"
    LIST = "list"


TEXT, WHOLE, NUMBER, YES_NO, LIST = ColumnContent
COLUMNS: dict[str, ColumnContent] = {
    "session": TEXT, "trial": TEXT, "take": WHOLE, "attempt": WHOLE, "clip_sha256": TEXT, "item_id": TEXT, "id": TEXT,
    "replaces": TEXT, "rater": TEXT, "status": TEXT, "category": TEXT, "sub_flags": LIST, "flags": LIST,
    "confidence": WHOLE, "comment": TEXT, "effect_claimed": YES_NO, "effect": TEXT, "aid_path": LIST, "plays": WHOLE,
    "heard_ms": WHOLE, "time_to_answer_s": NUMBER, "transcript_shown": YES_NO, "round": TEXT, "position": WHOLE,
    "span_start_s": NUMBER, "span_end_s": NUMBER, "shown_wall_s": NUMBER, "given_wall_s": NUMBER, "adjudicates": LIST,
    "guideline_version": TEXT, "tool_version": TEXT, "imported_from": TEXT, "proposed": TEXT,
    "proposed_probability": NUMBER, "proposal_shown": TEXT, "unaided": TEXT,
}  # fmt: skip
"""What a judgment is: read and written."""

CONTEXT: dict[str, ColumnContent] = {
    "in_force": YES_NO, "final": TEXT, "final_by": TEXT, "device": TEXT, "query": TEXT, "query_class": TEXT,
    "reference": TEXT, "outcome": TEXT, "response": TEXT,
}  # fmt: skip
"""What is known of its response: written, and not read back."""

CONDITION = "condition."
"""What a column of a condition is called before the name of its axis; of the context, too."""

TELLING = ("trial", "device")
"""Columns that a blind file goes without, besides conditions: they say whose response it is."""


Value = str | int | float | bool | tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class JudgmentTable:
    """rows: a value for each column. An absent value is None, and an absent list is empty."""

    columns: tuple[tuple[str, ColumnContent], ...]
    rows: tuple[tuple[Value, ...], ...]


def judgment_table(
    sessions: Sequence[RatedSession], *, only_in_force: bool = False, blind: bool = False
) -> JudgmentTable:
    """Every judgment row of these sessions, oldest first in each.

    only_in_force: those that stand; they are then said to replace nothing, since that is not there.
    blind: without what tells whose response it is; the response is then known by its clip.
    """
    finals = consensus_of(one for session in sessions for one in session.responses)
    axes = sorted({axis for session in sessions for one in session.trials for axis, _ in one.trial.conditions})
    columns = {**COLUMNS, **CONTEXT, **dict.fromkeys((CONDITION + axis for axis in axes), ColumnContent.TEXT)}
    if blind:
        columns = {n: c for n, c in columns.items() if n not in TELLING and not n.startswith(CONDITION)}
    rows = []
    for session in sessions:
        rated = {one.trial.id: one for one in rated_in(session.session_id, session.trials, session.responses, finals)}
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
    start_s, end_s = one.span_s or (None, None)
    own = {name: value.value if isinstance(value := getattr(one, name), StrEnum) else value for name in _OWN}
    session = one.session_id or session_id
    return {**own, "session": session, "trial": one.trial_id, "span_start_s": start_s, "span_end_s": end_s}


_OWN = [name for name in COLUMNS if name not in ("session", "trial", "span_start_s", "span_end_s")]
"""Columns that are fields of a judgment as they stand."""


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


def csv_of(table: JudgmentTable) -> bytes:
    """Comma-separated text with a header, in UTF-8; safe to open in a spreadsheet (`safe_csv`)."""
    header = [name for name, _ in table.columns]
    return safe_csv([header, *([_cell(value) for value in row] for row in table.rows)]).encode("utf-8", "replace")


def jsonl_of(table: JudgmentTable) -> bytes:
    """An object in each line, in ASCII; what is absent is null."""
    names = [name for name, _ in table.columns]
    lines = (json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=True) for row in table.rows)
    return "".join(line + "\n" for line in lines).encode("ascii")


def parquet_of(table: JudgmentTable) -> bytes:
    """Parquet with typed columns; HarnessError when the library for it is not installed."""
    demand_parquet()
    import pyarrow
    import pyarrow.parquet

    types = {
        ColumnContent.TEXT: pyarrow.string(),
        ColumnContent.WHOLE: pyarrow.int64(),
        ColumnContent.NUMBER: pyarrow.float64(),
        ColumnContent.YES_NO: pyarrow.bool_(),
        ColumnContent.LIST: pyarrow.list_(pyarrow.string()),
    }
    schema = pyarrow.schema([(name, types[content]) for name, content in table.columns])
    arrays: list[Any] = [
        pyarrow.array(values, field.type) for values, field in zip(columns_of(table), schema, strict=True)
    ]
    target = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.Table.from_arrays(arrays, schema=schema), target)
    return target.getvalue()


def demand_parquet() -> None:
    """HarnessError, with the extra's name, when the library for Parquet is not installed."""
    if find_spec("pyarrow") is None:
        raise HarnessError(
            "Parquet files need the library pyarrow, which is not installed",
            remedy='Install it with: pip install "voice-harness[parquet]", or use CSV or JSON lines',
        )


def _cell(value: Value) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case tuple():
            plain = not any(";" in one or one.startswith("[") or one != one.strip() or not one for one in value)
            return ";".join(value) if plain else json.dumps(list(value), ensure_ascii=False)
        case float():
            return repr(value)
    return str(value)
