"""The keys of a label set file, as they are written."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field

from harness.base.file_words import Id, Text, wrong
from harness.base.findings import Keys
from harness.model.understanding import JOINT

LONGEST_LABEL = 64
MOST_LABELS = 500
MOST_EXAMPLES = 50


def _label(text: str) -> str:
    if not text or len(text) > LONGEST_LABEL or not text.isprintable() or JOINT in text or " " in text:
        raise wrong(
            f"{text!r} cannot stand as a label in files",
            f"Write 1 to {LONGEST_LABEL} characters without blanks and without {JOINT}, which joins labels",
        )
    return text


def _key(written: object) -> object:
    """A key; a digit may stand without quotes."""
    key = str(written) if isinstance(written, int) and not isinstance(written, bool) else written
    if not isinstance(key, str) or (len(key) == 1 and key.isprintable() and not key.isspace()):
        return key
    raise wrong(f"{key!r} is no key", "Write one character")


LabelId = Annotated[
    str, AfterValidator(_label), Field(json_schema_extra={"pattern": f"^[^\\s{JOINT}]{{1,{LONGEST_LABEL}}}$"})
]
LabelKey = Annotated[str, BeforeValidator(_key), Field(json_schema_extra={"type": ["string", "integer"]})]


class ExampleKeys(Keys):
    """An utterance that has the label."""

    text: Text = Field(description="The utterance.")
    labels: list[LabelId] = Field(default=[], description="All its labels. Default: this label alone.")
    why: Text = Field(default="", description="What makes it one, when that is not plain.")


class CounterexampleKeys(Keys):
    """An utterance that one might give the label to."""

    text: Text = Field(description="The utterance.")
    labels: list[LabelId] = Field(description="What it is given instead; [] is none.")
    why: Text = Field(description="The reason, which annotators read.")


class LabelKeys(Keys):
    """A label, with what annotators go by."""

    id: LabelId = Field(description="The label as it stands in files; without blanks and #.")
    title: Text = Field(default="", description="For people. Default: the id.")
    description: Text = Field(description="When an utterance is given it.")
    alone: bool = Field(default=False, description="Whether it never stands beside another label. Default false.")
    key: LabelKey = Field(default="", description="One character that gives it. Default: none.")
    examples: list[ExampleKeys] = Field(default=[], max_length=MOST_EXAMPLES, description="Utterances that have it.")
    counterexamples: list[CounterexampleKeys] = Field(
        default=[], max_length=MOST_EXAMPLES, description="Utterances that seem to have it, and have not."
    )


class LabelSetKeys(Keys):
    """The labels of an annotation project, and the guide that annotators work by."""

    label_set: Id = Field(description="Name of the label set.")
    title: Text = Field(default="", description="For people. Default: the name.")
    intro: Text = Field(default="", description="What annotators read first.")
    may_be_empty: bool = Field(default=False, description="Whether an utterance may have no label. Default false.")
    labels: list[LabelKeys] = Field(
        min_length=1, max_length=MOST_LABELS, description="The labels, in the order in which they are shown."
    )
    never_together: list[list[LabelId]] = Field(
        default=[], description="Pairs of labels that exclude each other: [[one, other], …]."
    )
