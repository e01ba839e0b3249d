"""Converts our frozen types to plain JSON and back, by their declared fields."""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")


def plain(value: Any, *, sparse: bool = False) -> Any:
    """A value as dicts, lists, texts and numbers: a dataclass by its fields, an enum by its value.

    The names of fields are the keys of the JSON output. sparse: leaves out fields with their default value.
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            field.name: plain(told, sparse=sparse)
            for field in dataclasses.fields(value)
            if (told := getattr(value, field.name)) != field.default or not sparse
        }
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, Mapping):
        return {str(plain(key)): plain(one, sparse=sparse) for key, one in value.items()}
    if isinstance(value, (tuple, list)):
        return [plain(one, sparse=sparse) for one in value]
    if isinstance(value, (set, frozenset)):
        return sorted(plain(one, sparse=sparse) for one in value)
    return value


def picked(value: Any, *names: str) -> dict[str, Any]:
    """Some fields or properties of a value by their names, as `plain` gives them."""
    return {name: plain(getattr(value, name)) for name in names}


def restored(kind: type[T], told: Any) -> T:
    """The value of a type from the output of `plain`. ValueError, TypeError or KeyError if that is impossible.

    Ignores keys that the type lacks: a later version may have written them.
    """
    found: T = _restored(kind, told)
    return found


def _restored(kind: Any, told: Any) -> Any:
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):
        inner = [one for one in get_args(kind) if one is not type(None)]
        return None if told is None else _restored(inner[0], told)
    if origin is tuple:
        inside = get_args(kind)
        if not isinstance(told, list):
            raise ValueError(f"a list is needed, not {told!r}")
        if len(inside) == 2 and inside[1] is Ellipsis:
            return tuple(_restored(inside[0], one) for one in told)
        return tuple(_restored(each, one) for each, one in zip(inside, told, strict=True))
    if dataclasses.is_dataclass(kind):
        if not isinstance(told, Mapping):
            raise ValueError(f"{kind} is not {told!r}")
        hints = get_type_hints(kind)
        known = [field.name for field in dataclasses.fields(kind) if field.name in told]
        return kind(**{name: _restored(hints[name], told[name]) for name in known})  # type: ignore[operator]
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind(told)
    if kind is float and isinstance(told, int) and not isinstance(told, bool):
        return float(told)
    if not isinstance(told, kind):
        raise ValueError(f"{told!r} is not of {kind}")
    return told
