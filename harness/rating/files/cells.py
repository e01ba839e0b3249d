"""One cell of a file of judgments: text of a CSV file, or a value of JSON or Parquet, made what its column holds."""

from __future__ import annotations

import json
import math
import re
from datetime import datetime

from harness.base.problems import shown
from harness.model.judgment import Content

Value = str | int | float | bool | tuple[str, ...]
LONGEST_CELL = 100_000
"""Characters. A longer one is no comment any more."""
_WHOLE = re.compile(r"[-+]?[0-9]{1,15}(\.0+)?")
_NUMBER = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?")
_HALF = re.compile("[\ud800-\udfff]")
_LARGEST = 1 << 53
_YES = frozenset({"true", "yes", "1"})
_NO = frozenset({"false", "no", "0"})


class WrongCell(Exception):
    """A cell that its column cannot hold; noted with its line by whoever reads the row."""

    def __init__(self, what: str, remedy: str) -> None:
        super().__init__(what)
        self.what = what
        self.remedy = remedy


def value_of(written: object, content: Content) -> Value | None:
    """The value of a cell; None when it is empty. WrongCell."""
    if written is None or written == "" or (isinstance(written, float) and math.isnan(written)):
        return None
    if isinstance(written, str):
        if len(written) > LONGEST_CELL:
            raise WrongCell(f"a cell of {len(written):,} characters", f"At most {LONGEST_CELL:,} are taken")
        _refuse_halves(written)
    match content:
        case Content.TEXT:
            return _text(written)
        case Content.WHOLE:
            return _whole(written)
        case Content.NUMBER:
            return _number(written)
        case Content.YES_NO:
            return _yes_no(written)
        case Content.LIST:
            return _list(written)


def _refuse_halves(written: str) -> None:
    if not written.isascii() and _HALF.search(written):
        raise WrongCell(f"half a character in {shown(written)}", "Write whole characters")


def _text(written: object) -> str | None:
    match written:
        case str():
            return written if written.strip() else None
        case bool() | list() | dict():
            raise WrongCell(f"{shown(str(written))} is no text", "Write it in quotes")
    return str(written)


def _whole(written: object) -> int | None:
    match written:
        case bool():
            pass
        case int() if abs(written) < _LARGEST:
            return written
        case float() if written.is_integer() and abs(written) < _LARGEST:
            return int(written)
        case str() if not written.strip():
            return None
        case str() if _WHOLE.fullmatch(written.strip()):
            return int(written.strip().partition(".")[0])
    raise WrongCell(f"{shown(str(written))} is not a whole number", "Write digits alone")


def _number(written: object) -> float | None:
    found = math.nan
    match written:
        case bool():
            pass
        case int() | float():
            found = float(written) if abs(written) < 1e300 else math.inf
        case str() if not written.strip():
            return None
        case str() if _NUMBER.fullmatch(written.strip()):
            found = float(written.strip())
        case str():
            found = _moment(written.strip())
        case datetime():
            found = _moment(written.isoformat())
    if not math.isfinite(found):
        remedy = "Write a number, such as 12.5; a moment is a Unix time, or 2026-01-31T10:00:00Z"
        raise WrongCell(f"{shown(str(written))} is not a number", remedy)
    return found


def _moment(written: str) -> float:
    """Unix time of an ISO 8601 moment with a zone; NaN of all else."""
    try:
        moment = datetime.fromisoformat(written)
    except ValueError:
        return math.nan
    return moment.timestamp() if moment.tzinfo is not None else math.nan


def _yes_no(written: object) -> bool | None:
    if isinstance(written, bool):
        return written
    word = str(written).strip().lower()
    if not word:
        return None
    if word in _YES or word in _NO:
        return word in _YES
    raise WrongCell(f"{shown(str(written))} is neither true nor false", "Write true or false")


def _list(written: object) -> tuple[str, ...] | None:
    items: object = written
    if isinstance(written, str):
        text = written.strip()
        if text.startswith("["):
            try:
                items = json.loads(text)
            except (ValueError, RecursionError) as error:
                remedy = 'Write one;two, or a JSON list: ["one", "two"]'
                raise WrongCell(f"{shown(text)} is no list", remedy) from error
        else:
            items = [one.strip() for one in text.split(";")]
    if not isinstance(items, list) or not all(isinstance(one, str) for one in items):
        raise WrongCell(f"{shown(str(written))} is no list of words", "Write one;two")
    for one in items:
        _refuse_halves(one)
    return tuple(one for one in items if one) or None
