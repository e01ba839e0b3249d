"""Label set files: read, checked as a whole, and made the model's. Format: docs/format-labels.md."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from harness.base import file_kinds as kinds
from harness.base import strict_yaml
from harness.base.findings import Findings, nearest
from harness.model.annotation import Example, Label, LabelSet
from harness.model.choices import FileKind
from harness.understanding.files.label_set_keys import CounterexampleKeys, ExampleKeys, LabelKeys, LabelSetKeys

At = tuple[str | int, ...]


def load_label_set(path: Path) -> LabelSet:
    """The label set of a file; InputProblems with all that is wrong, InputError."""
    tree = strict_yaml.parse(strict_yaml.read_bytes(path), str(path))
    kinds.expect(FileKind.LABEL_SET, tree, str(path))
    found = Findings(str(path), tree)
    found.refuse_empty(tree, lambda _: False)
    written = tree.plain()
    found.check(LabelSetKeys, written)
    found.refuse()
    keys = LabelSetKeys.model_validate(written)
    label_set = LabelSet(
        id=keys.label_set,
        title=keys.title or keys.label_set,
        labels=tuple(_label(one) for one in keys.labels),
        never_together=tuple((one[0], one[1]) for one in keys.never_together if len(one) == 2),
        may_be_empty=keys.may_be_empty,
        intro=keys.intro,
    )
    _check(keys, label_set, found)
    found.refuse()
    return label_set


def _label(keys: LabelKeys) -> Label:
    return Label(
        id=keys.id,
        title=keys.title or keys.id,
        description=keys.description,
        alone=keys.alone,
        key=keys.key,
        examples=tuple(_example(one) for one in keys.examples),
        counterexamples=tuple(_example(one) for one in keys.counterexamples),
    )


def _example(keys: ExampleKeys | CounterexampleKeys) -> Example:
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
