"""Frozen dataclasses: what the standard library's do, in a tenth of the time."""

from __future__ import annotations

import copy
import inspect
import pickle
import sys
from collections.abc import Callable
from dataclasses import FrozenInstanceError, asdict, dataclass, field, fields, is_dataclass, replace
from typing import Any, Generic, TypeVar

import pytest

from harness.model.frozen import frozen

T = TypeVar("T")


def classes(make: Callable[[type], type]) -> tuple[type[Any], ...]:
    @make
    class Empty:
        pass

    @make
    class Level:
        db: float
        at: str = "ear"

        def __post_init__(self) -> None:
            if self.db > 130:
                raise ValueError(f"{self.db} dB")

    @make
    class Levels(Generic[T]):
        """Of a day."""

        name: str
        all: list[Level] = field(default_factory=list)
        of: tuple[T, ...] = field(default=(), repr=False, compare=False)
        hidden: int = field(init=False, repr=False, compare=False)
        note: str = field(default="", kw_only=True)

        def __post_init__(self) -> None:
            object.__setattr__(self, "hidden", len(self.name))

    @make
    class Dated(Level):
        day: str = "Monday"

        def __repr__(self) -> str:
            return self.day

    @make
    class Loose:
        word: str

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Loose) and self.word.lower() == other.word.lower()

        def __hash__(self) -> int:
            return hash(self.word.lower())

    return Empty, Level, Levels, Dated, Loose


THEIRS, OURS = classes(dataclass(frozen=True, slots=True)), classes(frozen)
CALLS: list[Callable[[tuple[type[Any], ...]], object]] = [
    lambda kinds: kinds[0](),
    lambda kinds: kinds[1](70.0),
    lambda kinds: kinds[1](db=70.0, at="desk"),
    lambda kinds: kinds[1](),
    lambda kinds: kinds[1](1.0, "ear", 3),
    lambda kinds: kinds[1](1.0, far=2),
    lambda kinds: kinds[1](140.0),
    lambda kinds: kinds[2]("a", note="n"),
    lambda kinds: kinds[2]("a", [], (1,), "n"),
    lambda kinds: kinds[2]("a", [1, 2], of=(1, 2)),
    lambda kinds: kinds[2]("abc").hidden,
    lambda kinds: kinds[2]("a").all is kinds[2]("a").all,
    lambda kinds: kinds[3](70.0, day="Friday"),
    lambda kinds: asdict(kinds[3](70.0)),
    lambda kinds: replace(kinds[3](70.0), day="Friday", db=80.0),
    lambda kinds: replace(kinds[3](70.0), month="May"),
    lambda kinds: kinds[0]() == kinds[0](),
    lambda kinds: kinds[1](70.0) == kinds[1](70.0),
    lambda kinds: kinds[1](70.0) == kinds[1](71.0),
    lambda kinds: kinds[1](70.0) == kinds[3](70.0),
    lambda kinds: kinds[1](70.0).__eq__(70.0),
    lambda kinds: kinds[2]("a", of=(1,)) == kinds[2]("a", of=(2,)),
    lambda kinds: kinds[4]("A") == kinds[4]("a"),
    lambda kinds: len({kinds[4]("A"), kinds[4]("a")}),
    lambda kinds: len({kinds[1](70.0), kinds[1](70.0), kinds[1](71.0)}),
    lambda kinds: hash(kinds[1](70.0)),
    lambda kinds: hash(kinds[2]("a")),
    lambda kinds: setattr(kinds[1](70.0), "db", 1.0),
    lambda kinds: delattr(kinds[1](70.0), "db"),
    lambda kinds: copy.deepcopy(kinds[1](70.0)),
    lambda kinds: copy.copy(kinds[2]("a")),
    lambda kinds: [kind.__slots__ for kind in kinds],
    lambda kinds: [kind.__match_args__ for kind in kinds],
    lambda kinds: [kind.__doc__ for kind in kinds[2:3]],
    lambda kinds: [is_dataclass(kind) for kind in kinds],
    lambda kinds: [list(inspect.signature(kind).parameters) for kind in kinds],
    lambda kinds: [kind.__init__.__annotations__ for kind in kinds],
    lambda kinds: [[(entry.name, entry.type) for entry in fields(kind)] for kind in kinds],
]


def outcome(call: Callable[[tuple[type[Any], ...]], object], kinds: tuple[type[Any], ...]) -> str:
    try:
        return repr(call(kinds))
    except (TypeError, ValueError, AttributeError) as error:
        return f"{type(error).__name__}: {error}"


@pytest.mark.parametrize("call", CALLS)
def test_frozen_behaves_like_the_standard_library(call: Callable[[tuple[type[Any], ...]], object]) -> None:
    assert outcome(call, OURS) == outcome(call, THEIRS)


def test_compared_calls_include_errors() -> None:
    wrong = {outcome(call, OURS).partition(":")[0] for call in CALLS}
    assert {"TypeError", "FrozenInstanceError", "ValueError"} <= wrong


@frozen
class Kept:
    name: str
    parts: tuple[int, ...] = ()


def test_a_frozen_object_survives_pickling() -> None:
    instance = Kept("a", (1, 2))
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(instance, protocol)) == instance


def test_a_standard_library_dataclass_may_inherit_from_a_frozen_class() -> None:
    @dataclass(frozen=True, slots=True)
    class Longer(Kept):
        length: int = 1

    assert repr(Longer("a", length=3)).endswith("Longer(name='a', parts=(), length=3)")
    with pytest.raises(FrozenInstanceError):
        Longer("a").name = "b"  # type: ignore[misc]


def test_class_keeps_its_own_special_methods() -> None:
    @frozen
    class Counted:
        count: int

        def __getstate__(self) -> list[object]:
            return [self.count + 1]

    assert Counted(1).__getstate__() == [2]
    with pytest.raises(FrozenInstanceError):
        Counted(1).count = 2  # type: ignore[misc]


def test_a_class_without_a_docstring_has_none() -> None:
    assert Kept.__doc__ is None


def test_no_attribute_can_be_added() -> None:
    with pytest.raises(FrozenInstanceError):
        Kept("a").other = 1  # type: ignore[attr-defined]
    assert not hasattr(Kept("a"), "__dict__")


def test_a_default_without_a_parameter_is_refused() -> None:
    with pytest.raises(TypeError, match="a field without init has no default here"):

        @frozen
        class _Wrong:
            count: int = field(init=False, default=3)


def test_methods_are_compiled_only_on_first_use() -> None:
    """What it exists for, without a clock: the standard library compiles six methods, and this one when it is used."""
    compiled: list[str] = []

    def note(frame: object, event: str, argument: object) -> None:
        if event == "c_call" and getattr(argument, "__name__", "") == "exec":
            compiled.append("text")

    sys.setprofile(note)
    try:
        small: Any = frozen(type("Small", (), {"__annotations__": {"a": "int", "b": "str"}}))
        when_made = len(compiled)
        small(1, "x")
        small(2, "y")
    finally:
        sys.setprofile(None)
    assert (when_made, len(compiled)) == (0, 1)


@pytest.mark.parametrize("use", [inspect.signature, lambda kind: kind.__init__.__annotations__])
def test_signature_of_an_unused_class_can_be_inspected(use: Callable[[type[Any]], object]) -> None:
    assert repr(use(classes(frozen)[1])) == repr(use(classes(dataclass(frozen=True, slots=True))[1]))


def test_first_instance_may_be_of_a_subclass() -> None:
    @frozen
    class Base:
        a: int = 1

    class Inheriting(Base):
        __slots__ = ()

    assert (Inheriting(2).a, Base(3).a, Inheriting().a) == (2, 3, 1)
