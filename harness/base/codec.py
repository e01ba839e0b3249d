"""Domain types to JSON and back; the `kind` of a message names its type."""

from __future__ import annotations

from typing import Annotated, TypeVar

from pydantic import TypeAdapter, ValidationError

from harness.base.garbage_collection import return_freed_memory
from harness.model.errors import HarnessError
from harness.model.record import ByKind, Record

T = TypeVar("T")

EVENTS_SCHEMA = "voice-harness.events.1"
"""The schema of rows as JSON lines. Kinds and fields may be added; any other change makes another schema."""
_LONG = 1_000_000
"""Length of a long message in bytes or characters; only the plan of a session with hundreds of trials is longer."""
RECORDS: TypeAdapter[Record] = TypeAdapter(Annotated[Record, ByKind()])


class CodecError(HarnessError):
    """A text is not a message of the expected kind."""


def encode(adapter: TypeAdapter[T], value: T) -> bytes:
    """One line of UTF-8 JSON without a newline."""
    return adapter.serializer.to_json(value)  # past the adapter's options, as `decode`


def decode(adapter: TypeAdapter[T], text: bytes | str) -> T:
    """The value. Raises CodecError if the text is not JSON or not of the type."""
    try:
        # Past the adapter's options, which take as long as a short row.
        value: T = adapter.validator.validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        location = ".".join(str(part) for part in first["loc"])
        raise CodecError(f"not a valid message: {location or 'text'}: {first['msg']}") from error
    if len(text) > _LONG:
        return_freed_memory()
    return value
