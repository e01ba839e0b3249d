"""Frozen dataclasses with slots that are made in a tenth of the usual time.

The standard library compiles six methods of each class one by one, from their texts: that was half of the start-up of a
command. Here one is compiled, when it is first used. See docs/decisions/code.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field, fields, is_dataclass
from operator import attrgetter
from typing import Any, NoReturn, TypeVar, dataclass_transform

T = TypeVar("T")
_METHODS = {"__init__", "__setattr__", "__delattr__", "__getstate__", "__setstate__"}


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: type[T]) -> type[T]:
    """`dataclass(frozen=True, slots=True)`, also for `fields`, `replace`, `asdict`, `pickle` and type checkers.

    The standard library makes the few classes that inherit from a dataclass, or have one of the methods of their own.
    """
    if any(map(is_dataclass, cls.__bases__)) or vars(cls).keys() & _METHODS:
        return dataclass(frozen=True, slots=True)(cls)
    undocumented = cls.__doc__ is None
    if undocumented:
        cls.__doc__ = cls.__name__  # else the standard library takes as long again, for a signature
    made: Any = dataclass(init=False, repr=False, eq=False, slots=True)(cls)
    made.__dataclass_params__.frozen = True  # so that frozen classes may inherit from it
    methods = vars(made)
    of = fields(made)
    made.__init__ = _Initialiser(made, of)
    compared = _values([each.name for each in of if each.compare])
    if "__eq__" not in methods:
        made.__eq__ = _equality(made, compared)
    if methods.get("__hash__") is None:
        made.__hash__ = lambda self: hash(compared(self))
    if "__repr__" not in methods:
        made.__repr__ = _text
    made.__setattr__, made.__delattr__ = _refuse_to_set, _refuse_to_delete
    made.__getstate__, made.__setstate__ = _state, _set_state
    if undocumented:
        made.__doc__ = None
    return made  # type: ignore[no-any-return]


class _Initialiser:
    """Stands for `__init__` until that is first used. Most programs make objects of few of the classes they import."""

    def __init__(self, cls: Any, fields: tuple[Field[Any], ...]) -> None:
        self._cls, self._of = cls, fields
        for each in fields:
            if not each.init and (each.default is not MISSING or each.default_factory is not MISSING):
                raise TypeError(f"{cls.__qualname__}.{each.name}: a field without init has no default here")

    def __get__(self, instance: object, owner: type) -> Callable[..., None]:
        self._cls.__init__ = made = _compile_init(self._cls, self._of)
        method: Callable[..., None] = made.__get__(instance, owner)
        return method


def _compile_init(cls: type, fields: tuple[Field[Any], ...]) -> Any:
    names: dict[str, Any] = {"__absent__": MISSING}
    parameters, lines = ["self"], list[str]()
    for each in sorted(fields, key=lambda each: each.kw_only is True):
        parameter = value = each.name
        if each.kw_only is True and "*" not in parameters:
            parameters.append("*")
        if each.default is not MISSING:
            names[f"__default_{each.name}__"] = each.default
            parameter = f"{each.name}=__default_{each.name}__"
        elif each.default_factory is not MISSING:
            names[f"__make_{each.name}__"] = each.default_factory
            parameter = f"{each.name}=__absent__"
            value = f"__make_{each.name}__() if {each.name} is __absent__ else {each.name}"
        if each.init:
            parameters.append(parameter)
            names[f"__set_{each.name}__"] = getattr(cls, each.name).__set__  # of the slot: no name is looked up
            lines.append(f" __set_{each.name}__(self, {value})")
    if hasattr(cls, "__post_init__"):
        lines.append(" self.__post_init__()")
    exec(f"def __init__({', '.join(parameters)}):\n" + "\n".join(lines or [" pass"]), names)
    made = names["__init__"]
    made.__qualname__ = f"{cls.__qualname__}.__init__"
    made.__annotations__ = {each.name: each.type for each in fields if each.init} | {"return": None}
    return made


def _values(names: list[str]) -> Callable[[object], tuple[object, ...]]:
    if len(names) > 1:
        return attrgetter(*names)
    return lambda self: tuple(getattr(self, name) for name in names)


def _equality(cls: type, compared: Callable[[object], tuple[object, ...]]) -> Callable[[object, object], object]:
    def equal(self: object, other: object) -> object:
        return compared(self) == compared(other) if other.__class__ is self.__class__ else NotImplemented

    return equal


def _text(self: Any) -> str:
    values = ", ".join(f"{each.name}={getattr(self, each.name)!r}" for each in fields(self) if each.repr)
    return f"{type(self).__qualname__}({values})"


def _refuse_to_set(self: object, name: str, value: object) -> NoReturn:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(self: object, name: str) -> NoReturn:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[object]:
    return [getattr(self, each.name) for each in fields(self)]


def _set_state(self: Any, state: list[object]) -> None:
    for each, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, each.name, value)
