"""The protocol of external engines (docs/how-to/measure-a-program.md). Bytes and text only, no process.

Every line is a JSON object. A ProtocolFault states what is wrong with a line.

    engine ─► harness   once: a hello with protocol, name, version, kind, rate_hz and more
    harness ─► engine   per file: begin, samples (each line followed by 2·n bytes, PCM16, little endian), end
    engine ─► harness   per file: any number of phrase, text, intents or scores, then done or error

An engine may send its results while it still receives sound, but none beyond the sound that it was sent.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from harness.base.plain_json import is_integer
from harness.base.program_lines import (
    MAX_NAME_CHARS,
    MAX_NUMBER,
    ProtocolFault,
    demand_name,
    demand_number,
    demand_protocol,
    parse_object,
    short,
)
from harness.base.text_file import fault_in
from harness.model.errors import Place
from harness.model.frozen import frozen
from harness.model.numbers import moment
from harness.model.offline import EngineKind
from harness.model.understanding import JOINT, Slot

PROTOCOL = 1
"""The version of this protocol."""
TOLERANCE_S = 0.02
"""A time may lie this far beyond the sound that was sent, since an engine rounds it to its own step."""
_MAX_TEXT_CHARS = 100_000
_RATES_HZ = (4000, 192_000)


@frozen
class DeclaredScores:
    """How an engine reports scores (0–1): one every `step` samples; a detection is a score above the threshold."""

    threshold: float
    step: int


@frozen
class EngineHello:
    """The engine's description of itself.

    - lead_in_ms: length of its lead-in; None if it has none.
    - scores: None if it reports events instead of scores.
    - carries_state: whether its state is carried from file to file.
    """

    name: str
    version: str
    kind: EngineKind
    rate_hz: int
    phrases: tuple[str, ...] = ()
    licence: str = "not stated"
    lead_in_ms: float | None = None
    scores: DeclaredScores | None = None
    carries_state: bool = False


@frozen
class EngineEvent:
    """A detected phrase, a recognised text, or a frame with its text.

    - start, end: in samples; None if not sent.
    - intents, slots: None unless the engine reports frames.
    """

    text: str
    start: int | None
    end: int | None
    score: float | None
    intents: tuple[str, ...] | None = None
    slots: tuple[Slot, ...] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class EngineScores:
    """Scores of a phrase, shape (n,). end: the sample at which the first one was computed."""

    phrase: str
    end: int
    scores: npt.NDArray[np.float32]


@frozen
class FileCompletion:
    """All results of this file have been sent."""

    file: int


@frozen
class FileRefusal:
    """The engine could not process this file."""

    why: str


Line = EngineEvent | EngineScores | FileCompletion | FileRefusal


def begin(file: int) -> bytes:
    """The line with which a file begins. file: number of the file, from 1."""
    return _line({"begin": file})


def sound(samples: npt.NDArray[np.int16]) -> bytes:
    """A piece of the file, shape (n,): its head, and 2·n bytes, little endian."""
    return _line({"samples": len(samples)}) + samples.astype("<i2", copy=False).tobytes()


def end(file: int) -> bytes:
    """The line with which a file ends."""
    return _line({"end": file})


def parse_hello(text: str) -> EngineHello:
    """The hello in an engine's first line. Raises ProtocolFault for another line."""
    message = parse_object(text)
    demand_protocol(message, text, PROTOCOL)
    kinds = [kind.value for kind in EngineKind]
    if message.get("kind") not in kinds:
        raise ProtocolFault(f"sent a hello without a valid kind; it is one of: {', '.join(kinds)}")
    rate_hz = message.get("rate_hz")
    if not is_integer(rate_hz) or not _RATES_HZ[0] <= rate_hz <= _RATES_HZ[1]:
        raise ProtocolFault(f"sent a hello without a valid rate_hz, an integer from {_RATES_HZ[0]} to {_RATES_HZ[1]}")
    phrases = message.get("phrases", [])
    if not isinstance(phrases, list) or not all(isinstance(phrase, str) and phrase.strip() for phrase in phrases):
        raise ProtocolFault("sent a hello whose phrases are not a list of strings")
    kind = EngineKind(message["kind"])
    carries_state = message.get("carries_state", False)
    if not isinstance(carries_state, bool):
        raise ProtocolFault("sent a hello whose carries_state is neither true nor false")
    lead_in_ms = None if "lead_in_ms" not in message else demand_number(message, "lead_in_ms", 0, 60_000)
    return EngineHello(
        name=demand_name(message, "name"),
        version=demand_name(message, "version"),
        kind=kind,
        rate_hz=rate_hz,
        phrases=tuple(phrases),
        licence=demand_name(message, "licence", "not stated"),
        lead_in_ms=lead_in_ms,
        scores=_parse_declaration(message, kind, phrases),
        carries_state=carries_state,
    )


def parse_line(text: str, rate_hz: int, sent_samples: int, *, frames: bool = False) -> Line:
    """The content of any other line. Raises ProtocolFault for a line of another form.

    - sent_samples: number of samples of the file that were sent so far; no result may lie beyond them.
    - frames: whether the engine reports frames. Other engines may use such keys for something else; they are ignored.
    """
    message = parse_object(text)
    if "done" in message:
        if not is_integer(message["done"]):
            raise ProtocolFault(f"sent done without the number of a file: {short(text)}")
        return FileCompletion(message["done"])
    if message.get("error") is not None:
        return FileRefusal(str(message["error"])[:_MAX_TEXT_CHARS])
    if "scores" in message:
        return _parse_scores(message, sent_samples)
    if frames and ("intents" in message or "slots" in message):
        intents, slots = _parse_frame(message)
        if not _is_text(message.get("text", "")):
            raise ProtocolFault("sent a text that is not valid Unicode")
        event = _parse_event({"text": "", **message}, "text", rate_hz, sent_samples)
        return replace(event, intents=intents, slots=slots)
    for key in ("phrase", "text"):
        if key in message:
            return _parse_event(message, key, rate_hz, sent_samples)
    results = "intents" if frames else "phrase, text, scores"
    raise ProtocolFault(f"wrote a line without {results}, done or error: {short(text)}")


def is_hello(text: str) -> bool:
    """Whether the line names a protocol."""
    return "protocol" in parse_object(text)


def _parse_event(message: dict[str, Any], key: str, rate_hz: int, sent_samples: int) -> EngineEvent:
    """The event in a message. key: the one that holds its text, `phrase` or `text`.

    Raises ProtocolFault for invalid values.
    """
    text = message[key]
    if not isinstance(text, str):
        raise ProtocolFault(f"sent a {key} that is not a string")
    if len(text) > _MAX_TEXT_CHARS:
        raise ProtocolFault(f"sent a {key} of {len(text)} characters; at most {_MAX_TEXT_CHARS} are accepted")
    if key == "phrase" and not text.strip():
        raise ProtocolFault("sent a phrase without a name")
    start = _parse_position(message, "start", rate_hz, sent_samples)
    end_sample = _parse_position(message, "end", rate_hz, sent_samples)
    if key == "phrase" and end_sample is None:
        raise ProtocolFault(f"did not report where {short(text)} ends, as end (samples) or end_s")
    if start is not None and end_sample is not None and start > end_sample:
        raise ProtocolFault(f"sent {short(text)} with its start, sample {start}, after its end, sample {end_sample}")
    score = None if message.get("score") is None else demand_number(message, "score", -MAX_NUMBER, MAX_NUMBER)
    return EngineEvent(text, start, end_sample, score)


def _parse_frame(message: dict[str, Any]) -> tuple[tuple[str, ...], tuple[Slot, ...]]:
    """The intents, sorted and each once, and the slots in their order; () if there are none."""
    intents, slots = message.get("intents"), message.get("slots", [])
    if not isinstance(intents, list) or not all(_is_name(intent) and JOINT not in intent for intent in intents):
        raise ProtocolFault(f"sent intents that are not a list of names: {short(json.dumps(intents))}")
    if not isinstance(slots, list) or not all(map(_is_slot, slots)):
        raise ProtocolFault(
            f'sent slots that are not a list of {{"concept": "city", "value": "nice"}}: {short(json.dumps(slots))}'
        )
    return tuple(sorted(set(intents))), tuple(Slot(slot["concept"], slot.get("value")) for slot in slots)


def _is_slot(value: object) -> bool:
    if not isinstance(value, dict) or not _is_name(value.get("concept")):
        return False
    return value.get("value") is None or _is_text(value["value"])


def _is_name(value: object) -> bool:
    return _is_text(value) and isinstance(value, str) and bool(value.strip()) and len(value) <= MAX_NAME_CHARS


def _is_text(value: object) -> bool:
    """Whether a value is a text that a file of predictions can contain."""
    return isinstance(value, str) and fault_in(value, Place(""), "utf-8") is None


def _parse_position(message: dict[str, Any], name: str, rate_hz: int, sent_samples: int) -> int | None:
    """A position in samples, from `name` (samples) or `name`_s (seconds); at most those sent, within the tolerance."""
    seconds_name = f"{name}_s"
    if name in message and seconds_name in message:
        raise ProtocolFault(f"sent both {name} and {seconds_name} for one event")
    if name in message:
        position = demand_number(message, name, 0, MAX_NUMBER)
    elif seconds_name in message:
        position = demand_number(message, seconds_name, 0, MAX_NUMBER) * rate_hz
    else:
        return None
    if position > sent_samples + TOLERANCE_S * rate_hz:
        raise ProtocolFault(
            f"sent {name} at {moment(position / rate_hz)}, after only {moment(sent_samples / rate_hz)} of the file"
        )
    return min(round(position), sent_samples)


def _parse_scores(message: dict[str, Any], sent_samples: int) -> EngineScores:
    phrase, values = message.get("phrase"), message["scores"]
    if not isinstance(phrase, str):
        raise ProtocolFault("sent scores without their phrase")
    try:
        scores = np.asarray(values, dtype=np.float32)
    except (TypeError, ValueError, OverflowError):
        scores = np.zeros((0, 0), np.float32)  # refused below
    if scores.ndim != 1 or not len(scores) or not np.all((scores >= 0) & (scores <= 1)):
        raise ProtocolFault(f"sent scores of {short(phrase)} that are not a list of numbers from 0 to 1")
    return EngineScores(phrase, round(demand_number(message, "end", 0, sent_samples)), scores)


def _parse_declaration(message: dict[str, Any], kind: EngineKind, phrases: list[str]) -> DeclaredScores | None:
    if message.get("scores") is None:
        return None
    declaration = message["scores"]
    if kind is not EngineKind.WAKE or not isinstance(declaration, dict) or not phrases:
        raise ProtocolFault("declares scores in its hello that are not an object, or declares no phrases for them")
    threshold = demand_number(declaration, "threshold", 0, 1)
    step = declaration.get("step")
    if not is_integer(step) or step < 1 or not 0 < threshold < 1:
        raise ProtocolFault("declares scores without a step (samples) and a threshold between 0 and 1")
    return DeclaredScores(threshold, step)


def _line(content: dict[str, int]) -> bytes:
    return json.dumps(content, separators=(",", ":")).encode() + b"\n"
