"""Lines of an external program: every line is a JSON object. A ProtocolFault states what is wrong with one."""

from __future__ import annotations

import json
from typing import Any

from harness.base.foreign import plain_text
from harness.base.plain_json import is_integer
from harness.model.numbers import exact

MAX_NUMBER = 1e15
"""The greatest number that is accepted; whole numbers up to it are exact as floats."""
MAX_NAME_CHARS = 200


class ProtocolFault(ValueError):
    """A line that a program must not write. The text continues "the engine …", "the program …"."""


def parse_object(text: str) -> dict[str, Any]:
    """The message in a line."""
    try:
        message = json.loads(text)
    except (ValueError, RecursionError):
        message = None
    if not isinstance(message, dict):
        raise ProtocolFault(f"wrote a line that is not a JSON object: {short(text)}")
    return message


def demand_protocol(message: dict[str, Any], text: str, protocol: int) -> None:
    """Raises ProtocolFault if the first line names another protocol than this one."""
    if "protocol" not in message:
        raise ProtocolFault(f"does not begin with a hello of protocol {protocol}, but with {short(text)}")
    if message["protocol"] != protocol:
        raise ProtocolFault(f"speaks protocol {short(str(message['protocol']))}, not {protocol}")


def demand_number(message: dict[str, Any], key: str, low: float, high: float) -> float:
    """The number of a key, from low to high. Raises ProtocolFault for anything else."""
    value = message.get(key)
    if not (isinstance(value, float) or is_integer(value)) or not abs(value) < MAX_NUMBER:  # also if NaN
        raise ProtocolFault(f"sent {key} that is not a finite number: {short(json.dumps(value))}")
    if not low <= value <= high:
        raise ProtocolFault(f"sent {key} {exact(value)}, which is not between {exact(low)} and {exact(high)}")
    return float(value)


def demand_name(message: dict[str, Any], key: str, otherwise: str | None = None) -> str:
    """A name in a program's first line, at most 200 characters. otherwise: the name if it is missing; None: error."""
    value = message.get(key, otherwise)
    if not isinstance(value, str) or not value.strip() or len(value) > MAX_NAME_CHARS:
        raise ProtocolFault(f"sent a hello without a valid {key}")
    return value


def short(text: str) -> str:
    """The beginning of a text, quoted and sanitised for a terminal."""
    return repr(plain_text(text, 80))
