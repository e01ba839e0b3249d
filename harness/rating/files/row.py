"""One row of a file of judgments: its cells made values, each checked, and together."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum

from harness.base.findings import nearest
from harness.base.problems import shown
from harness.model.effect import EffectWord
from harness.model.errors import did_you_mean
from harness.model.judgment import SUB_FLAGS_OF, Category, Flag, JudgmentStatus, ProposalShown, SubFlag
from harness.rating.files.cells import Value, WrongCell

LONGEST_NAME = 100
_AT_LEAST = {"take": 1, "attempt": 1, "position": 1, "plays": 0, "heard_ms": 0, "time_to_answer_s": 0}
_WORDS: dict[str, type[StrEnum]] = {
    "status": JudgmentStatus, "effect": EffectWord, "proposed": Category, "proposal_shown": ProposalShown,
    "unaided": Category,
}  # fmt: skip
_LISTS: dict[str, type[StrEnum]] = {"sub_flags": SubFlag, "flags": Flag}


@dataclass(frozen=True, slots=True)
class WrittenJudgment:
    """A row whose values are right by themselves; whose response it is, is still to be found.

    line: of the file, from 1; of Parquet the row. values: by column, what is absent left out. category: None unless
    the status is SUBMITTED.
    """

    line: int
    values: Mapping[str, Value]
    status: JudgmentStatus
    category: Category | None

    def text(self, column: str) -> str:
        """A text; "" when it is absent."""
        return str(self.values.get(column, ""))

    def whole(self, column: str) -> int | None:
        found = self.values.get(column)
        return found if isinstance(found, int) else None


def row_of(line: int, values: dict[str, Value], categories: Mapping[str, Category]) -> WrittenJudgment:
    """The row; WrongCell. categories: by every word that stands for one, in small letters; the first of them are shown.

    values: by column, as their columns hold them.
    """
    rater = str(values.get("rater", "")).strip()
    if not rater:
        raise WrongCell("the row names no rater", "Write who judged, the same name in every row")
    if len(rater) > LONGEST_NAME or not rater.isprintable():
        raise WrongCell(f"{shown(rater)} is no name", f"Write at most {LONGEST_NAME} printable characters")
    values["rater"] = rater
    if not values.get("trial") and not values.get("clip_sha256"):
        raise WrongCell("the row names no response", "Write its trial, or the SHA-256 of its clip (clip_sha256)")
    for column, least in _AT_LEAST.items():
        found = values.get(column)
        if isinstance(found, int | float) and found < least:
            raise WrongCell(f"{column} is {found}", f"Write at least {least}")
    if values.get("confidence", 1) not in (1, 2, 3):
        raise WrongCell(f"the confidence is {values['confidence']}", "Write 1 (unsure), 2 or 3 (sure)")
    share = values.get("proposed_probability")
    if isinstance(share, int | float) and not 0 <= share <= 1:
        raise WrongCell(f"proposed_probability is {share}", "Write a number from 0 to 1")
    if ("span_start_s" in values) != ("span_end_s" in values):
        raise WrongCell("a span has a start and an end, and one of them is missing", "Write both, or neither")
    for column, kind in _WORDS.items():
        if column in values:
            values[column] = _word(str(values[column]), kind, column)
    for column, kind in _LISTS.items():
        listed = values.get(column)
        if isinstance(listed, tuple):
            values[column] = tuple(_word(one, kind, column) for one in listed)
    category = _category(str(values.pop("category", "")), categories)
    status = _status(values.pop("status", None), category)
    _check_sub_flags(values.get("sub_flags", ()), category)
    return WrittenJudgment(line, values, status, category)


def _word(written: str, kind: type[StrEnum], column: str) -> str:
    word = written.strip().lower().replace(" ", "_")
    known = [member.value for member in kind]
    if word not in known:
        raise WrongCell(f"{shown(written)} is no word for {column}", nearest(word, known))
    return word


def _category(written: str, categories: Mapping[str, Category]) -> Category | None:
    word = " ".join(written.lower().split())
    if not word:
        return None
    found = categories.get(word)
    if found is None:
        raise WrongCell(f"{shown(written)} is no category", _nearest_category(word, categories))
    return found


def _nearest_category(word: str, known: Collection[str]) -> str:
    meant = did_you_mean(word, known)
    return f"{meant}Categories: {', '.join(Category)}; or their keys 1 to 9, 0 and -"


def _status(written: Value | None, category: Category | None) -> JudgmentStatus:
    if written is None:
        if category is None:
            raise WrongCell("the row has no category", "Write one, or a status such as skipped")
        return JudgmentStatus.SUBMITTED
    status = JudgmentStatus(str(written))
    if status is JudgmentStatus.SUBMITTED and category is None:
        raise WrongCell("the row is submitted, and has no category", "Write one, or another status")
    if status is not JudgmentStatus.SUBMITTED and category is not None:
        raise WrongCell(f"the row is {status} and has a category", "Leave the category out, or write submitted")
    return status


def _check_sub_flags(written: Value, category: Category | None) -> None:
    allowed = SUB_FLAGS_OF.get(category, ()) if category is not None else ()
    for one in written if isinstance(written, tuple) else ():
        if one not in allowed:
            of = category.value if category is not None else "a row without a category"
            listed = ", ".join(allowed) or "none"
            raise WrongCell(f"the sub-flag {one} does not go with {of}", f"It may carry: {listed}")
