"""A set of labels for annotation, with the guide that annotators work by."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Example:
    """An utterance of the guide. labels: what it is given, () is the label explained alone; why: the reason."""

    text: str
    labels: tuple[str, ...] = ()
    why: str = ""


@dataclass(frozen=True, slots=True)
class Label:
    """id: as it stands in files. alone: it never stands beside another label. key: one character that gives it, or "".

    examples: utterances that have it; counterexamples: utterances that one might give it to, with what they have.
    """

    id: str
    title: str = ""
    description: str = ""
    alone: bool = False
    key: str = ""
    examples: tuple[Example, ...] = ()
    counterexamples: tuple[Example, ...] = ()


@dataclass(frozen=True, slots=True)
class LabelSet:
    """The labels of an annotation project, in the order in which they are shown.

    never_together: pairs of labels that exclude each other. may_be_empty: whether an utterance may have no label.
    """

    id: str
    title: str
    labels: tuple[Label, ...]
    never_together: tuple[tuple[str, str], ...] = ()
    may_be_empty: bool = False
    intro: str = ""

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(label.id for label in self.labels)

    def label(self, id_: str) -> Label | None:
        return next((label for label in self.labels if label.id == id_), None)

    def refusal(self, intents: tuple[str, ...]) -> str:
        """Why these labels cannot stand together; "" when they can."""
        unknown = next((one for one in intents if one not in self.ids), None)
        if unknown is not None:
            return f"there is no label {unknown!r}"
        if not intents and not self.may_be_empty:
            return "an utterance has at least one label"
        for label in self.labels:
            if label.alone and label.id in intents and len(intents) > 1:
                return f"{label.id} stands alone"
        for first, second in self.never_together:
            if first in intents and second in intents:
                return f"{first} and {second} exclude each other"
        return ""
