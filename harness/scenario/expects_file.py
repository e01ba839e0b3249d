"""The keys of what a trial's device should understand."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, Discriminator, Field, Tag

from harness.base.file_words import Text, wrong
from harness.base.findings import Keys
from harness.model.understanding import intent_set


def _intents(text: str) -> str:
    if not intent_set(text):
        raise wrong(f"{text!r} names no intent", "Write names, with # between two: set_timer#add_to_list")
    return text


Intents = Annotated[Text, AfterValidator(_intents)]


class SlotKeys(Keys):
    """A slot, where a concept comes twice."""

    concept: Text = Field(description="Its name, as the device or its profile has it.")
    value: Text | None = Field(default=None, description="Its value; without it, any.")


def _list_or_one(written: Any) -> str:
    return "<list>" if isinstance(written, list) else "<one>"


class ExpectsKeys(Keys):
    """What a device should understand of a query."""

    intents: Annotated[
        Annotated[Intents, Tag("<one>")] | Annotated[list[Intents], Tag("<list>")], Discriminator(_list_or_one)
    ] = Field(description="All intents that it should tell, and no other: [a, b] or a#b; [] when it should find none.")
    slots: (
        Annotated[
            Annotated[dict[Text, Text | None], Tag("<one>")] | Annotated[list[SlotKeys], Tag("<list>")],
            Discriminator(_list_or_one),
        ]
        | None
    ) = Field(
        default=None,
        description="All slots that it should tell: {concept: value}, null is any value; {} when it should find none; "
        "a list of {concept, value} where one comes twice. Default: slots are not looked at.",
    )
