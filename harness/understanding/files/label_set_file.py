"""Label set files: read, checked as a whole, and made the model's. Format: docs/format-labels.md."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field

from harness.base.findings import Findings, Id, Keys, Text, nearest, read_keys, wrong
from harness.base.problems import Problems
from harness.model.annotation import Example, Label, LabelSet
from harness.model.choices import FileKind
from harness.model.errors import InputError, Place
from harness.model.understanding import JOINT
from harness.transcripts.files.encoding import read_text
from harness.transcripts.files.lists import filled_rows

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


At = tuple[str | int, ...]


def load_label_set(path: Path) -> LabelSet:
    """The label set of a file; InputProblems with all that is wrong, InputError."""
    keys, found = read_keys(path, FileKind.LABEL_SET, LabelSetKeys)
    label_set = LabelSet(
        id=keys.label_set,
        title=keys.title or keys.label_set,
        labels=tuple(_label_of(one) for one in keys.labels),
        never_together=tuple((one[0], one[1]) for one in keys.never_together if len(one) == 2),
        may_be_empty=keys.may_be_empty,
        intro=keys.intro,
    )
    _check(keys, label_set, found)
    found.refuse()
    return label_set


def _label_of(keys: LabelKeys) -> Label:
    return Label(keys.id, keys.title or keys.id, keys.description, keys.alone, keys.key,
                 tuple(map(_example_of, keys.examples)), tuple(map(_example_of, keys.counterexamples)))  # fmt: skip


def _example_of(keys: ExampleKeys | CounterexampleKeys) -> Example:
    return Example(keys.text, tuple(sorted(set(keys.labels))), keys.why)


def _check(keys: LabelSetKeys, label_set: LabelSet, found: Findings) -> None:
    _refuse_twins([one.id for one in keys.labels], "id", found)
    _refuse_twins([one.key for one in keys.labels], "key", found)
    for number, pair in enumerate(keys.never_together):
        at: At = ("never_together", number)
        if len(pair) != 2:
            found.add(at, f"{len(pair)} labels, where a pair is wanted", "Write [one, other]; of three, all pairs")
        elif pair[0] == pair[1]:
            found.add(at, f"{pair[0]!r} cannot exclude itself", "Write two labels")
        _check_known(pair, at, label_set, found)
    for number, label in enumerate(keys.labels):
        for place, example in enumerate(label.examples):
            at = ("labels", number, "examples", place)
            _check_example(label.id, example.labels or [label.id], at, label_set, found)
        for place, other in enumerate(label.counterexamples):
            at = ("labels", number, "counterexamples", place)
            if label.id in other.labels:
                found.add((*at, "labels"), f"it is given {label.id!r} all the same", "Move it to `examples`")
            _check_rules(other.labels, at, label_set, found)


def _check_example(label: str, labels: list[str], at: At, label_set: LabelSet, found: Findings) -> None:
    if label not in labels:
        found.add((*at, "labels"), f"an example of {label!r} is not given it", f"Add {label!r}, or leave `labels` out")
    _check_rules(labels, at, label_set, found)


def _check_rules(labels: list[str], at: At, label_set: LabelSet, found: Findings) -> None:
    if not _check_known(labels, (*at, "labels"), label_set, found):
        return
    refusal = label_set.refusal(tuple(sorted(set(labels))))
    if refusal:
        found.add((*at, "labels"), f"the rules of this file forbid these labels: {refusal}", "Change one of the two")


def _check_known(labels: Iterable[str], at: At, label_set: LabelSet, found: Findings) -> bool:
    unknown = [(place, one) for place, one in enumerate(labels) if one not in label_set.ids]
    for place, one in unknown:
        found.add((*at, place), f"there is no label {one!r}", nearest(one, label_set.ids, listed="Labels"))
    return not unknown


def _refuse_twins(values: Sequence[str], key: str, found: Findings) -> None:
    for number, one in enumerate(values):
        if one and one in values[:number]:
            line = found.place(("labels", values.index(one), key)).line
            remedy = "Remove one of the two" if key == "id" else "Give one of them another key"
            found.add(("labels", number, key), f"the {key} {one!r} is there already, in line {line}", remedy)


MEDIA = "media"
PRESETS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        MEDIA: MappingProxyType(
            {
                "annulation": "cancellation",
                "incomprehension": "incomprehension",
                "marqueur_discursif": "discourse_marker",
                "modification": "modification",
                "remercier": "thanking",
                "renseignements": "information",
                "reponse_affirmative": "affirmative_answer",
                "reponse_indecise": "indecisive_answer",
                "reponse_negative": "negative_answer",
                "reservation": "booking",
                "saluer": "greeting",
            }
        )
    }
)
"""media: from the French of the public files to the English of the tables (spec understanding, Labels)."""

_MAP_EXAMPLE = "Write a header `from,to`, then a row for each label"


def load_label_map(named: str) -> Mapping[str, str]:
    """A preset, or the map of a file; InputError, InputProblems."""
    if named in PRESETS:
        return PRESETS[named]
    path = Path(named)
    if not path.is_file():
        remedy = f"Name a CSV file; {nearest(named, list(PRESETS), listed='presets')}"
        raise InputError(f"{named!r} is neither a file nor a preset", remedy=remedy)
    problems = Problems(named)
    rows = filled_rows(read_text(path), problems)
    _, header = next(rows, (1, [""]))
    if [one.strip().lower() for one in header] != ["from", "to"]:
        raise InputError(f"the header is {','.join(header)!r}", place=Place(named, 1), remedy=_MAP_EXAMPLE)
    found: dict[str, str] = {}
    for line, row in rows:
        if len(row) != 2 or not row[0].strip() or not row[1].strip():
            problems.add(line, 0, "the row has not two names", _MAP_EXAMPLE)
        elif row[0].strip() in found:
            problems.add(line, 0, f"{row[0].strip()!r} is there already", "Remove one of the rows")
        else:
            found[row[0].strip()] = row[1].strip()
    problems.refuse()
    return found
