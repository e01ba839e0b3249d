"""How frames are read before they are compared."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from harness.model.understanding import Chunking, Detail
from harness.transcripts.readings import plain_texts


class Values(StrEnum):
    """When two values are the same. NONE: values are not looked at. PLAIN: in lower case and without punctuation."""

    NONE = "none"
    VERBATIM = "verbatim"
    PLAIN = "plain"


@dataclass(frozen=True, slots=True)
class Rule:
    """separator, attributes: how RELAX finds a specifier: the longest known attribute that the concept is, or begins
    with before a separator, stays; a concept of no known attribute loses what stands after its last separator.

    values: how they are compared, beside the figures without; a gold slot without value is right with any. spoken: the
    words of a slot are its value where an utterance has tags and lists no slots. ordered: False where
    slots have no order, as those of live devices: both sides are then ordered by concept and value. places: False
    where words of the two sides are not the same words, as in transcripts; slot F1 is then n/a.
    """

    chunking: Chunking = Chunking.CONLLEVAL
    detail: Detail = Detail.FULL
    separator: str = "-"
    attributes: tuple[str, ...] = ()
    values: Values = Values.VERBATIM
    spoken: bool = False
    ordered: bool = True
    places: bool = True

    def __post_init__(self) -> None:
        if not self.separator:
            raise ValueError("the separator of specifiers is empty")

    def concept(self, name: str) -> str:
        """A concept as it is compared."""
        if self.detail is Detail.FULL:
            return name
        known = [one for one in self.attributes if name == one or name.startswith(one + self.separator)]
        if known:
            return max(known, key=len)
        attribute, _, _ = name.rpartition(self.separator)
        return attribute or name

    def value(self, written: str | None) -> str | None:
        """A value as it is compared; None where none is given."""
        if written is None or self.values is not Values.PLAIN:
            return written
        return plain_texts([written])[0]
