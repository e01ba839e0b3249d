"""The kinds of value that may stand in our files: names, texts, paths, words of a closed set."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field
from pydantic_core import PydanticCustomError

_ID = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_LANGUAGE = re.compile(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*")
MAX_TEXT = 1000


def wrong(what: str, remedy: str) -> PydanticCustomError:
    """A problem in our own words, for a validator to raise."""
    return PydanticCustomError("written", "{what}", {"what": what, "remedy": remedy})


def word(kind: type[StrEnum], *never: StrEnum) -> BeforeValidator:
    """Makes a word of the file a member of the enum; another one, or one of `never`, is answered with the nearest."""
    choices = [member.value for member in kind if member not in never]

    def member_of(written: Any) -> StrEnum:
        if isinstance(written, kind):
            return written
        if not isinstance(written, str) or written not in choices:
            raise PydanticCustomError("word", "unknown word", {"choices": choices})
        return kind(written)

    return BeforeValidator(member_of)


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
        raise wrong(f"{text!r} has nothing to speak", "Write some words")
    return text


def _language(text: str) -> str:
    if not _LANGUAGE.fullmatch(text):
        raise wrong(f"{text!r} is not a language tag", "Write one like en-US or de")
    return text


Id = Annotated[str, AfterValidator(_id), Field(json_schema_extra={"pattern": f"^{_ID.pattern}$"})]
Text = Annotated[str, AfterValidator(_text), Field(json_schema_extra={"minLength": 1, "maxLength": MAX_TEXT})]
Spoken = Annotated[Text, AfterValidator(_spoken)]
Language = Annotated[str, AfterValidator(_language), Field(json_schema_extra={"pattern": f"^{_LANGUAGE.pattern}$"})]
