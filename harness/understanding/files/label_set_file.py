"""Reads and checks label set files. Format: docs/reference/label-sets.md."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field

from harness.base.findings import Findings, Id, KeyPath, Keys, Text, preset, read_keys, validation_error
from harness.base.plain_json import is_integer
from harness.base.text_file import CsvRows, Problems, as_utf_8, read_text, separator_of
from harness.model.annotation import Example, Label, LabelSet
from harness.model.choices import FileKind
from harness.model.errors import InputError, Place, nearest
from harness.model.understanding import JOINT

MAX_LABEL_CHARS = 64
MAX_LABELS = 500
MAX_EXAMPLES = 50


def _check_label(text: str) -> str:
    if not text or len(text) > MAX_LABEL_CHARS or not text.isprintable() or JOINT in text or " " in text:
        raise validation_error(
            f"{text!r} is not a valid label",
            f"Use 1 to {MAX_LABEL_CHARS} characters without spaces or {JOINT}, which joins labels",
        )
    return text


def _check_key(value: object) -> object:
    """A key as text. A digit needs no quotes."""
    key = str(value) if is_integer(value) else value
    if not isinstance(key, str) or (len(key) == 1 and key.isprintable() and not key.isspace()):
        return key
    raise validation_error(f"{key!r} is not a single character", "Use a single character")


LabelId = Annotated[
    str, AfterValidator(_check_label), Field(json_schema_extra={"pattern": f"^[^\\s{JOINT}]{{1,{MAX_LABEL_CHARS}}}$"})
]
LabelKey = Annotated[str, BeforeValidator(_check_key), Field(json_schema_extra={"type": ["string", "integer"]})]


class ExampleKeys(Keys):
    """An utterance that has the label."""

    text: Text = Field(description="The utterance.")
    labels: list[LabelId] = preset([], "All labels of the example. Default: this label only.")
    why: Text = preset("", "The reason, if it is not obvious.")


class CounterexampleKeys(Keys):
    """An utterance that seems to have the label but does not."""

    text: Text = Field(description="The utterance.")
    labels: list[LabelId] = Field(description="The correct labels; [] means none.")
    why: Text = Field(description="The reason, shown to annotators.")


class LabelKeys(Keys):
    """A label with its description for annotators."""

    id: LabelId = Field(description="The label in files, without spaces or #.")
    title: Text = preset("", "Title. Default: the id.")
    description: Text = Field(description="When to give the label.")
    alone: bool = preset(False, "Whether the label excludes all others. Default false.")
    key: LabelKey = preset("", "One character that selects the label. Default: none.")
    examples: list[ExampleKeys] = preset([], "Utterances that have the label.", max_length=MAX_EXAMPLES)
    counterexamples: list[CounterexampleKeys] = preset(
        [], "Utterances that seem to have the label but do not.", max_length=MAX_EXAMPLES
    )


class ConceptKeys(Keys):
    """A concept of slots with its description for annotators."""

    id: LabelId = Field(description="The concept in files, without spaces or #.")
    title: Text = preset("", "Title. Default: the id.")
    description: Text = preset("", "Which words to mark.")
    key: LabelKey = preset("", "One character that marks the selected words. Default: the next free one.")


class LabelSetKeys(Keys):
    """The labels of an annotation project, and the guide that annotators work by."""

    label_set: Id = Field(description="Name of the label set.")
    title: Text = preset("", "Title. Default: the name.")
    intro: Text = preset("", "What annotators read first.")
    may_be_empty: bool = preset(False, "Whether an utterance may have no label. Default false.")
    labels: list[LabelKeys] = Field(min_length=1, max_length=MAX_LABELS, description="The labels, in display order.")
    never_together: list[list[LabelId]] = preset([], "Pairs of mutually exclusive labels: [[one, other], …].")
    concepts: list[ConceptKeys] = preset(
        [], "Concepts of slots to mark in the words. Default: no slots.", max_length=MAX_LABELS
    )


def load_label_set(path: Path) -> LabelSet:
    """The label set of a file. Raises InputProblems with every mistake, InputError."""
    keys, findings = read_keys(path, FileKind.LABEL_SET, LabelSetKeys)
    label_set = LabelSet(
        id=keys.label_set,
        title=keys.title or keys.label_set,
        labels=tuple(_label_of(label) for label in keys.labels),
        never_together=tuple((pair[0], pair[1]) for pair in keys.never_together if len(pair) == 2),
        may_be_empty=keys.may_be_empty,
        intro=keys.intro,
        concepts=tuple(
            Label(concept.id, concept.title or concept.id, concept.description, key=concept.key)
            for concept in keys.concepts
        ),
    )
    _check_label_set(keys, label_set, findings)
    findings.refuse()
    return label_set


def _label_of(keys: LabelKeys) -> Label:
    return Label(
        id=keys.id,
        title=keys.title or keys.id,
        description=keys.description,
        alone=keys.alone,
        key=keys.key,
        examples=tuple(map(_example_of, keys.examples)),
        counterexamples=tuple(map(_example_of, keys.counterexamples)),
    )


def _example_of(keys: ExampleKeys | CounterexampleKeys) -> Example:
    return Example(keys.text, tuple(sorted(set(keys.labels))), keys.why)


def _check_label_set(keys: LabelSetKeys, label_set: LabelSet, findings: Findings) -> None:
    """Notes mistakes that concern more than one key."""
    sections: tuple[tuple[str, Sequence[LabelKeys | ConceptKeys]], ...]
    sections = ("labels", keys.labels), ("concepts", keys.concepts)
    for section, entries in sections:
        _refuse_duplicates([entry.id for entry in entries], section, "id", findings)
        _refuse_duplicates([entry.key for entry in entries], section, "key", findings)
    for number, pair in enumerate(keys.never_together):
        key_path: KeyPath = ("never_together", number)
        if len(pair) != 2:
            findings.add(
                key_path,
                f"expected a pair of labels, found {len(pair)}",
                "Use [one, other], and split three labels into pairs",
            )
        elif pair[0] == pair[1]:
            findings.add(key_path, f"{pair[0]!r} cannot exclude itself", "Use two different labels")
        _check_known(pair, key_path, label_set, findings)
    for number, label in enumerate(keys.labels):
        for index, example in enumerate(label.examples):
            key_path = ("labels", number, "examples", index)
            _check_example(label.id, example.labels or [label.id], key_path, label_set, findings)
        for index, counterexample in enumerate(label.counterexamples):
            key_path = ("labels", number, "counterexamples", index)
            if label.id in counterexample.labels:
                findings.add(
                    (*key_path, "labels"),
                    f"the counterexample has the label {label.id!r}",
                    "Move the utterance to `examples`",
                )
            _check_rules(counterexample.labels, key_path, label_set, findings)


def _check_example(label: str, labels: list[str], key_path: KeyPath, label_set: LabelSet, findings: Findings) -> None:
    if label not in labels:
        findings.add(
            (*key_path, "labels"),
            f"an example of {label!r} does not have that label",
            f"Add {label!r} to `labels`, or remove `labels`",
        )
    _check_rules(labels, key_path, label_set, findings)


def _check_rules(labels: list[str], key_path: KeyPath, label_set: LabelSet, findings: Findings) -> None:
    if not _check_known(labels, (*key_path, "labels"), label_set, findings):
        return
    refusal = label_set.refusal(tuple(sorted(set(labels))))
    if refusal:
        findings.add(
            (*key_path, "labels"),
            f"the rules of this file forbid these labels: {refusal}",
            "Change the labels or the rules",
        )


def _check_known(labels: Iterable[str], key_path: KeyPath, label_set: LabelSet, findings: Findings) -> bool:
    """Notes unknown labels. Returns whether all are known."""
    unknown = [(index, label) for index, label in enumerate(labels) if label not in label_set.ids]
    for index, label in unknown:
        findings.add((*key_path, index), f"there is no label {label!r}", nearest(label, label_set.ids, listed="Labels"))
    return not unknown


def _refuse_duplicates(values: Sequence[str], kind: str, key: str, findings: Findings) -> None:
    for number, name in enumerate(values):
        if name and name in values[:number]:
            line = findings.place((kind, values.index(name), key)).line
            remedy = "Change one of the ids" if key == "id" else "Choose another key for one of the two"
            findings.add((kind, number, key), f"the {key} {name!r} is already on line {line}", remedy)


PRESETS: Mapping[str, Mapping[str, str]] = {
    "media": {
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
}
"""Label maps by name, from old to new labels.

- media: from the French labels of the public files to the English ones in the tables of the MEDIA paper.
"""

_MAP_EXAMPLE = "Begin with the header `from,to`, then add a row for each label"


def load_label_map(name: str) -> Mapping[str, str]:
    """A label map (old label → new label). name: a preset, or a CSV file. Raises InputError, InputProblems."""
    if name in PRESETS:
        return PRESETS[name]
    path = Path(name)
    if not path.is_file():
        remedy = f"Choose a CSV file or a preset. {nearest(name, list(PRESETS), listed='Presets')}"
        raise InputError(f"{name!r} is not a file or a preset", remedy=remedy)
    problems = Problems(name)
    try:
        rows = iter(CsvRows.of(read_text(path), problems, separator_of(name)))
    except InputError as error:
        raise as_utf_8(error) from error
    _, header = next(rows, (1, [""]))
    problems.refuse()
    if [cell.strip().lower() for cell in header] != ["from", "to"]:
        raise InputError(
            f"the header is {','.join(header)!r}, not 'from,to'", place=Place(name, 1), remedy=_MAP_EXAMPLE
        )
    label_map: dict[str, str] = {}
    for line, row in rows:
        if len(row) != 2 or not row[0].strip() or not row[1].strip():
            problems.add(line, 0, "a row needs two labels", _MAP_EXAMPLE)
        elif row[0].strip() in label_map:
            problems.add(line, 0, f"{row[0].strip()!r} already occurs above", "Remove one of the rows")
        else:
            label_map[row[0].strip()] = row[1].strip()
    problems.refuse()
    return label_map
