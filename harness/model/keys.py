"""What a frozen type says of its keys in a file: description, bounds, checks. Pydantic is imported to read only."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any

MAX_TEXT = 1000
_ID = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_LANGUAGE = re.compile(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*")


def described(description: str, **limits: Any) -> dict[str, Any]:
    """The metadata of a field; limits: as for pydantic's `Field`."""
    return {"description": description, **limits}


def preset(default: Any, description: str, **limits: Any) -> Any:
    """The field of a key with a default."""
    return field(default=default, metadata=described(description, **limits))


@dataclass(frozen=True, slots=True, eq=False)
class KeyCheck:
    """A check of a written value, which may change it; raises `wrong`. schema: what the JSON schema says of it."""

    check: Callable[[Any], Any]
    schema: dict[str, Any] = field(default_factory=dict)

    def __get_pydantic_core_schema__(self, kind: Any, handler: Any) -> Any:
        from pydantic_core import core_schema

        return core_schema.no_info_after_validator_function(self.check, handler(kind))

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> dict[str, Any]:
        return {**handler(schema), **self.schema}


def wrong(what: str, remedy: str) -> ValueError:
    """A problem in our own words, for a check to raise."""
    from pydantic_core import PydanticCustomError

    return PydanticCustomError("written", "{what}", {"what": what, "remedy": remedy})


def _id(text: str) -> str:
    if not _ID.fullmatch(text):
        raise wrong(
            f"{text!r} is not a name",
            "Use small letters, digits, - and _, at most 64, beginning with a letter or digit",
        )
    return text


def _text(text: str) -> str:
    text = text.strip()
    if not text:
        raise wrong("the text is empty", "Write some words")
    if len(text) > MAX_TEXT:
        raise wrong(f"the text has more than {MAX_TEXT} characters", "Shorten it")
    if any(ord(letter) < 0x20 for letter in text):
        raise wrong("the text contains a line break or a tab", "Write it as one line; > instead of | joins lines")
    return text


def _spoken(text: str) -> str:
    if not any(letter.isalnum() for letter in text):
        raise wrong(f"{text!r} contains nothing to speak", "Write some words")
    return text


def _language(text: str) -> str:
    if not _LANGUAGE.fullmatch(text):
        raise wrong(f"{text!r} is not a language tag", "Write one like en-US or de")
    return text


Id = Annotated[str, KeyCheck(_id, {"pattern": f"^{_ID.pattern}$"})]
Text = Annotated[str, KeyCheck(_text, {"minLength": 1, "maxLength": MAX_TEXT})]
Spoken = Annotated[Text, KeyCheck(_spoken)]
Language = Annotated[str, KeyCheck(_language, {"pattern": f"^{_LANGUAGE.pattern}$"})]
