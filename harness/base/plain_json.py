"""Converts the harness's frozen types to plain JSON and back, by their declared fields."""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Any, TypeGuard, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")
Json = dict[str, Any]


def is_integer(value: object) -> TypeGuard[int]:
    """Whether a value is a whole number; true and false are not numbers in JSON or YAML."""
    return isinstance(value, int) and not isinstance(value, bool)


def to_plain(value: Any, *, sparse: bool = False) -> Any:
    """A value as dicts, lists, texts and numbers: a dataclass by its fields, an enum by its value.

    The names of fields are the keys of the JSON output. sparse: leaves out fields with their default value.
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            field.name: to_plain(field_value, sparse=sparse)
            for field in dataclasses.fields(value)
            if (field_value := getattr(value, field.name)) != field.default or not sparse
        }
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, Mapping):
        return {str(to_plain(key)): to_plain(entry, sparse=sparse) for key, entry in value.items()}
    if isinstance(value, (tuple, list)):
        return [to_plain(entry, sparse=sparse) for entry in value]
    if isinstance(value, (set, frozenset)):
        return sorted(to_plain(entry, sparse=sparse) for entry in value)
    return value


def picked(value: Any, *names: str) -> dict[str, Any]:
    """Some fields or properties of a value by their names, as `to_plain` gives them."""
    return {name: to_plain(getattr(value, name)) for name in names}


def from_plain(kind: type[T], plain_value: Any) -> T:
    """The value of a type from the output of `to_plain`.

    Raises ValueError, TypeError or KeyError if that is impossible.

    Ignores keys that the type lacks: a later version may have written them.
    """
    instance: T = _from_plain(kind, plain_value)
    return instance


def _from_plain(kind: Any, plain_value: Any) -> Any:
    """As `from_plain`, also for the types of fields: unions with None, tuples, enums, numbers and texts."""
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):
        inner = [member for member in get_args(kind) if member is not type(None)]
        return None if plain_value is None else _from_plain(inner[0], plain_value)
    if origin is tuple:
        members = get_args(kind)
        if not isinstance(plain_value, list):
            raise ValueError(f"a list is needed, not {plain_value!r}")
        if len(members) == 2 and members[1] is Ellipsis:
            return tuple(_from_plain(members[0], entry) for entry in plain_value)
        return tuple(_from_plain(member, entry) for member, entry in zip(members, plain_value, strict=True))
    if dataclasses.is_dataclass(kind):
        if not isinstance(plain_value, Mapping):
            raise ValueError(f"{kind} is not {plain_value!r}")
        hints = get_type_hints(kind)
        names = [field.name for field in dataclasses.fields(kind) if field.name in plain_value]
        return kind(**{name: _from_plain(hints[name], plain_value[name]) for name in names})  # type: ignore[operator]
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind(plain_value)
    if kind is float and is_integer(plain_value):
        return float(plain_value)
    if not isinstance(plain_value, kind):
        raise ValueError(f"{plain_value!r} is not of {kind}")
    return plain_value


def refuse_constant(name: str) -> float:
    """The `parse_constant` of a strict reader: raises ValueError, since NaN and Infinity are not JSON."""
    raise ValueError(f"{name} is not JSON")
