"""Frozen dataclasses with slots that are created in a tenth of the usual time.

The standard library compiles six methods of each class one by one, from source text. That was half of the start-up time
of a command. Here only `__init__` is compiled, when it is first used. See docs/decisions/code.md.
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

    Classes that inherit from a dataclass, or that define one of its methods, are left to the standard library.
    """
    if any(map(is_dataclass, cls.__bases__)) or vars(cls).keys() & _METHODS:
        return dataclass(frozen=True, slots=True)(cls)
    undocumented = cls.__doc__ is None
    if undocumented:
        cls.__doc__ = cls.__name__  # else the standard library takes as long again, for a signature
    new_class: Any = dataclass(init=False, repr=False, eq=False, slots=True)(cls)
    new_class.__dataclass_params__.frozen = True  # so that frozen classes may inherit from it
    methods = vars(new_class)
    class_fields = fields(new_class)
    new_class.__init__ = _Initialiser(new_class, class_fields)
    compared = _values([attribute.name for attribute in class_fields if attribute.compare])
    if "__eq__" not in methods:
        new_class.__eq__ = _equality(new_class, compared)
    if methods.get("__hash__") is None:
        new_class.__hash__ = lambda self: hash(compared(self))
    if "__repr__" not in methods:
        new_class.__repr__ = _text
    new_class.__setattr__, new_class.__delattr__ = _refuse_to_set, _refuse_to_delete
    new_class.__getstate__, new_class.__setstate__ = _state, _set_state
    if undocumented:
        new_class.__doc__ = None
    return new_class  # type: ignore[no-any-return]


class _Initialiser:
    """Stands in for `__init__` until that is first used. Most programs create objects of few classes they import."""

    def __init__(self, cls: Any, fields: tuple[Field[Any], ...]) -> None:
        self._cls, self._fields = cls, fields
        for attribute in fields:
            if not attribute.init and (attribute.default is not MISSING or attribute.default_factory is not MISSING):
                raise TypeError(f"{cls.__qualname__}.{attribute.name}: a field without init has no default here")

    def __get__(self, instance: object, owner: type) -> Callable[..., None]:
        self._cls.__init__ = initialiser = _compile_init(self._cls, self._fields)
        method: Callable[..., None] = initialiser.__get__(instance, owner)
        return method


def _compile_init(cls: type, fields: tuple[Field[Any], ...]) -> Any:
    """The `__init__` of a class, compiled from source text as the standard library does it."""
    names: dict[str, Any] = {"__absent__": MISSING}
    parameters, lines = ["self"], list[str]()
    for attribute in sorted(fields, key=lambda attribute: attribute.kw_only is True):
        parameter = value = attribute.name
        if attribute.kw_only is True and "*" not in parameters:
            parameters.append("*")
        if attribute.default is not MISSING:
            names[f"__default_{attribute.name}__"] = attribute.default
            parameter = f"{attribute.name}=__default_{attribute.name}__"
        elif attribute.default_factory is not MISSING:
            names[f"__make_{attribute.name}__"] = attribute.default_factory
            parameter = f"{attribute.name}=__absent__"
            value = f"__make_{attribute.name}__() if {attribute.name} is __absent__ else {attribute.name}"
        if attribute.init:
            parameters.append(parameter)
            slot = getattr(cls, attribute.name)
            names[f"__set_{attribute.name}__"] = slot.__set__  # no name is looked up
            lines.append(f" __set_{attribute.name}__(self, {value})")
    if hasattr(cls, "__post_init__"):
        lines.append(" self.__post_init__()")
    exec(f"def __init__({', '.join(parameters)}):\n" + "\n".join(lines or [" pass"]), names)
    initialiser = names["__init__"]
    initialiser.__qualname__ = f"{cls.__qualname__}.__init__"
    annotations = {attribute.name: attribute.type for attribute in fields if attribute.init}
    initialiser.__annotations__ = annotations | {"return": None}
    return initialiser


def _values(names: list[str]) -> Callable[[object], tuple[object, ...]]:
    """A function that returns the values of these fields; attrgetter does not return a tuple for a single name."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda self: tuple(getattr(self, name) for name in names)


def _equality(cls: type, compared: Callable[[object], tuple[object, ...]]) -> Callable[[object, object], object]:
    def equal(self: object, other: object) -> object:
        return compared(self) == compared(other) if other.__class__ is self.__class__ else NotImplemented

    return equal


def _text(self: Any) -> str:
    values = ", ".join(
        f"{attribute.name}={getattr(self, attribute.name)!r}" for attribute in fields(self) if attribute.repr
    )
    return f"{type(self).__qualname__}({values})"


def _refuse_to_set(self: object, name: str, value: object) -> NoReturn:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(self: object, name: str) -> NoReturn:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[object]:
    # For pickle and copy, as `dataclass(frozen=True, slots=True)` has it.
    return [getattr(self, attribute.name) for attribute in fields(self)]


def _set_state(self: Any, state: list[object]) -> None:
    for attribute, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, attribute.name, value)
