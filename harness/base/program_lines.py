"""Lines of an external program: every line is a JSON object. A ProtocolFault states what is wrong with one."""

from __future__ import annotations

import json
from typing import Any

from harness.base.foreign import plain_text
from harness.base.plain_json import is_integer
from harness.model.numbers import exact

GREATEST = 1e15
LONGEST_NAME = 200


class ProtocolFault(ValueError):
    """A line that a program must not write. The text continues "the engine …", "the program …"."""


def object_of(text: str) -> dict[str, Any]:
    try:
        message = json.loads(text)
    except (ValueError, RecursionError):
        message = None
    if not isinstance(message, dict):
        raise ProtocolFault(f"wrote a line that is not a JSON object: {short(text)}")
    return message


def demand_protocol(message: dict[str, Any], text: str, protocol: int) -> None:
    """The first line names the protocol that the program speaks."""
    if message.get("protocol") != protocol:
        raise ProtocolFault(
            f"does not begin with a hello of protocol {protocol}, but with {short(text)}"
            if "protocol" not in message
            else f"speaks protocol {short(str(message['protocol']))}, not {protocol}"
        )


def number_of(message: dict[str, Any], name: str, low: float, high: float) -> float:
    """A number from low to high."""
    value = message.get(name)
    if not (isinstance(value, float) or is_integer(value)) or not abs(value) < GREATEST:
        raise ProtocolFault(f"sent {name} that is not a finite number: {short(json.dumps(value))}")
    if not low <= value <= high:
        raise ProtocolFault(f"sent {name} {exact(value)}, which is not between {exact(low)} and {exact(high)}")
    return float(value)


def name_of(message: dict[str, Any], name: str, otherwise: str | None = None) -> str:
    """A name of a hello, at most 200 characters."""
    value = message.get(name, otherwise)
    if not isinstance(value, str) or not value.strip() or len(value) > LONGEST_NAME:
        raise ProtocolFault(f"sent a hello without a valid {name}")
    return value


def short(text: str) -> str:
    """The beginning of a text, quoted, escaped for a terminal."""
    return repr(plain_text(text, 80))
