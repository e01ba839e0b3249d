"""What an external engine is told and says: docs/engine-process.md. Bytes and text only, no process.

Every line is a JSON object. ProtocolFault says what is wrong with one.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from harness.base.foreign import plain_text
from harness.model.offline import EngineKind

PROTOCOL = 1
# An engine rounds a time to its own step, and may give a time just past the last sample.
TOLERANCE_S = 0.02
_LONGEST_TEXT = 100_000
_RATES_HZ = (4000, 192_000)
_GREATEST = 1e15


class ProtocolFault(ValueError):
    """A line that an engine may not write; the text goes on from "the engine …"."""


@dataclass(frozen=True, slots=True)
class DeclaredScores:
    """Scores from 0 to 1, one every `step` samples; spots are those above the threshold."""

    threshold: float
    step: int


@dataclass(frozen=True, slots=True)
class EngineHello:
    """What an engine says of itself. lead_in_ms: None where it says nothing of it."""

    name: str
    version: str
    kind: EngineKind
    rate_hz: int
    phrases: tuple[str, ...] = ()
    licence: str = "not stated"
    lead_in_ms: float | None = None
    scores: DeclaredScores | None = None


@dataclass(frozen=True, slots=True)
class EngineEvent:
    """A phrase that was found, or a text that was understood; start and end in samples, start None where not said."""

    text: str
    start: int | None
    end: int | None
    score: float | None


@dataclass(frozen=True, slots=True, eq=False)
class EngineScores:
    """Scores of a phrase, shape (n,); the first was known at sample `end`."""

    phrase: str
    end: int
    scores: npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Done:
    """Everything about this file has been said."""

    file: int


@dataclass(frozen=True, slots=True)
class Refused:
    """The engine could not take this file."""

    why: str


Line = EngineEvent | EngineScores | Done | Refused


def begin(file: int) -> bytes:
    """A file begins; files are numbered from 1."""
    return _line({"begin": file})


def sound(samples: npt.NDArray[np.int16]) -> bytes:
    """A piece of the file, shape (n,): its head, and 2·n bytes, little endian."""
    return _line({"samples": len(samples)}) + samples.astype("<i2", copy=False).tobytes()


def end(file: int) -> bytes:
    """The file ends."""
    return _line({"end": file})


def hello_of(text: str) -> EngineHello:
    """The first line."""
    said = _object(text)
    if said.get("protocol") != PROTOCOL:
        raise ProtocolFault(
            f"does not begin with a hello of protocol {PROTOCOL}, but with {_short(text)}"
            if "protocol" not in said
            else f"speaks protocol {_short(str(said['protocol']))}, not {PROTOCOL}"
        )
    kinds = [kind.value for kind in EngineKind]
    if said.get("kind") not in kinds:
        raise ProtocolFault(f"says no kind in its hello; it is one of: {', '.join(kinds)}")
    rate_hz = said.get("rate_hz")
    if not isinstance(rate_hz, int) or isinstance(rate_hz, bool) or not _RATES_HZ[0] <= rate_hz <= _RATES_HZ[1]:
        raise ProtocolFault(f"says no rate_hz in its hello, a whole number from {_RATES_HZ[0]} to {_RATES_HZ[1]}")
    phrases = said.get("phrases", [])
    if not isinstance(phrases, list) or not all(isinstance(one, str) and one.strip() for one in phrases):
        raise ProtocolFault("says phrases in its hello that are no list of texts")
    kind = EngineKind(said["kind"])
    lead_in_ms = None if "lead_in_ms" not in said else _number(said, "lead_in_ms", 0, 60_000)
    return EngineHello(
        _named(said, "name"), _named(said, "version"), kind, rate_hz, tuple(phrases),
        _named(said, "licence", "not stated"), lead_in_ms, _declared(said, kind, phrases),
    )  # fmt: skip


def line_of(text: str, rate_hz: int, sent: int) -> Line:
    """Any other line. sent: samples of the file so far; nothing can be known beyond them."""
    said = _object(text)
    if "done" in said:
        if not isinstance(said["done"], int):
            raise ProtocolFault(f"says done without the number of a file: {_short(text)}")
        return Done(said["done"])
    if "error" in said:
        return Refused(str(said["error"])[:_LONGEST_TEXT])
    if "scores" in said:
        return _scores(said, sent)
    for key in ("phrase", "text"):
        if key in said:
            return _event(said, key, rate_hz, sent)
    raise ProtocolFault(f"wrote a line without phrase, text, scores, done or error: {_short(text)}")


def is_hello(text: str) -> bool:
    """True for a line that says a protocol."""
    return "protocol" in _object(text)


def _event(said: dict[str, Any], key: str, rate_hz: int, sent: int) -> EngineEvent:
    text = said[key]
    if not isinstance(text, str) or len(text) > _LONGEST_TEXT:
        raise ProtocolFault(f"says a {key} that is no text")
    if key == "phrase" and not text.strip():
        raise ProtocolFault("found a phrase without a name")
    start, end_ = _position(said, "start", rate_hz, sent), _position(said, "end", rate_hz, sent)
    if key == "phrase" and end_ is None:
        raise ProtocolFault(f"does not say where {_short(text)} ends, with end (samples) or end_s")
    if start is not None and end_ is not None and start > end_:
        raise ProtocolFault(f"found {_short(text)} from sample {start} to {end_}")
    score = None if said.get("score") is None else _number(said, "score", -_GREATEST, _GREATEST)
    return EngineEvent(text, start, end_, score)


def _position(said: dict[str, Any], name: str, rate_hz: int, sent: int) -> int | None:
    """In samples, from `name` (samples) or `name`_s (seconds); at most what was sent, give or take the tolerance."""
    seconds = f"{name}_s"
    if name in said and seconds in said:
        raise ProtocolFault(f"says both {name} and {seconds} of one event")
    if name in said:
        found = _number(said, name, 0, _GREATEST)
    elif seconds in said:
        found = _number(said, seconds, 0, _GREATEST) * rate_hz
    else:
        return None
    if found > sent + TOLERANCE_S * rate_hz:
        raise ProtocolFault(
            f"says {name} at {found / rate_hz:.3f} s, and only {sent / rate_hz:.3f} s of the file have been sent"
        )
    return min(round(found), sent)


def _scores(said: dict[str, Any], sent: int) -> EngineScores:
    phrase, values = said.get("phrase"), said["scores"]
    if not isinstance(phrase, str):
        raise ProtocolFault("says scores without their phrase")
    try:
        scores = np.asarray(values, dtype=np.float32)
    except (TypeError, ValueError, OverflowError):
        scores = np.zeros((0, 0), np.float32)
    if scores.ndim != 1 or not len(scores) or not np.all((scores >= 0) & (scores <= 1)):
        raise ProtocolFault(f"says scores of {_short(phrase)} that are no list of numbers from 0 to 1")
    return EngineScores(phrase, round(_number(said, "end", 0, sent)), scores)


def _declared(said: dict[str, Any], kind: EngineKind, phrases: list[str]) -> DeclaredScores | None:
    if said.get("scores") is None:
        return None
    declared = said["scores"]
    if kind is not EngineKind.WAKE or not isinstance(declared, dict) or not phrases:
        raise ProtocolFault("declares scores in its hello that are no object, or has no phrases that they are of")
    threshold = _number(declared, "threshold", 0, 1)
    step = declared.get("step")
    if not isinstance(step, int) or step < 1 or not 0 < threshold < 1:
        raise ProtocolFault("declares scores without a step (samples) and a threshold between 0 and 1")
    return DeclaredScores(threshold, step)


def _number(said: dict[str, Any], name: str, low: float, high: float) -> float:
    value = said.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < _GREATEST:
        raise ProtocolFault(f"says {name} that is no finite number: {_short(json.dumps(value))}")
    if not low <= value <= high:
        raise ProtocolFault(f"says {name} {value:g}, which is not from {low:g} to {high:g}")
    return float(value)


def _named(said: dict[str, Any], name: str, otherwise: str | None = None) -> str:
    value = said.get(name, otherwise)
    if not isinstance(value, str) or not value.strip() or len(value) > 200:
        raise ProtocolFault(f"says no {name} in its hello")
    return value


def _object(text: str) -> dict[str, Any]:
    try:
        said = json.loads(text)
    except (ValueError, RecursionError):
        said = None
    if not isinstance(said, dict):
        raise ProtocolFault(f"wrote a line that is no JSON object: {_short(text)}")
    return said


def _short(text: str) -> str:
    return repr(plain_text(text, 80))


def _line(content: dict[str, int]) -> bytes:
    return json.dumps(content, separators=(",", ":")).encode() + b"\n"
