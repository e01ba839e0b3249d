"""Labels that come with the data or from a file of intents, as rows of their own annotator."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.annotation.annotation_room import AnnotationRoom
from harness.base.findings import nearest
from harness.model.annotation import IMPORTED, Intents, Labelled, LabelSet
from harness.model.errors import InputError, InputProblems, Place
from harness.model.understanding import Utterance, joined
from harness.understanding.files.corpus_file import read_corpus
from harness.understanding.files.label_map import PRESETS

MOST_TOLD = 20


@dataclass(frozen=True, slots=True)
class Import:
    """What became of a file of labels. rows: to be added; same: utterances that were given the same before.

    without_text: ids of the file that no utterance has; without_labels: utterances that the file does not name, or
    gives no labels.
    """

    rows: tuple[Labelled, ...]
    same: int
    without_text: tuple[str, ...]
    without_labels: tuple[str, ...]


def import_rows(
    utterances: Sequence[Utterance],
    given: Sequence[Utterance],
    label_set: LabelSet,
    before: Mapping[str, Intents],
    mapping: Mapping[str, str],
    source: str,
) -> Import:
    """Rows for all that is given labels other than those before.

    mapping: label of the file → label of the set; others stand as they are. InputProblems for unknown labels and for
    those that the rules forbid, each with its place; InputError when nothing fits.
    """
    known = {one.id for one in utterances}
    problems: list[InputError] = []
    rows: list[Labelled] = []
    labelled: set[str] = set()
    same = 0
    now_s = time.time()
    for one in given:
        if one.intents is None or one.id not in known:
            continue
        intents = tuple(sorted({mapping.get(label, label) for label in one.intents}))
        refusal = label_set.refusal(intents)
        if refusal and not intents:
            continue  # a file has no other way to say that it does not know
        if refusal:
            problems.append(_problem(one, intents, refusal, label_set, source))
            continue
        labelled.add(one.id)
        if before.get(one.id) == intents:
            same += 1
        else:
            row = Labelled(str(uuid.uuid4()), IMPORTED, one.id, intents, source=source, given_wall_s=now_s)
            rows.append(row)
    if problems:
        raise InputProblems(_first_of_each(problems))
    if not labelled:
        first = next((one.id for one in given), "")
        raise InputError(
            f"no utterance is given labels here; its first id is {first!r}",
            place=Place(source),
            remedy=f"Write ids as the data does, such as {utterances[0].id!r}",
        )
    return Import(
        tuple(rows),
        same,
        tuple(one.id for one in given if one.id not in known),
        tuple(one.id for one in utterances if one.id not in labelled),
    )


def import_file(room: AnnotationRoom, path: Path, mapping: Mapping[str, str]) -> Import:
    """Adds the labels of a file to a project, all or none; returns when they are on the disk."""
    room.refresh()
    ledger = room.ledger
    before = {
        one.id: row.intents for one in room.utterances if (row := ledger.choices(one.id).get(IMPORTED)) is not None
    }
    found = import_rows(room.utterances, read_corpus(path).utterances, room.label_set, before, mapping, str(path))
    room.keep(found.rows)
    return found


def _problem(one: Utterance, intents: Intents, refusal: str, label_set: LabelSet, source: str) -> InputError:
    unknown = next((label for label in intents if label not in label_set.ids), None)
    place = one.place or Place(source)
    if unknown is None:
        remedy = "Change the labels, or the rules of the label set"
        return InputError(
            f"{joined(intents)} is against the rules of the label set: {refusal}", place=place, remedy=remedy
        )
    remedy = f"{nearest(unknown, label_set.ids, listed='Labels')}; other names are told with --map"
    preset = next((name for name, names in PRESETS.items() if names.get(unknown) in label_set.ids), None)
    if preset is not None:
        remedy = f"Add --map {preset}, which knows it"
    return InputError(f"there is no label {unknown!r}", place=place, remedy=remedy)


def _first_of_each(problems: Sequence[InputError]) -> list[InputError]:
    """A wrong label is told where it stands first: a file may have it a thousand times."""
    first: dict[str, InputError] = {}
    for one in problems:
        first.setdefault(one.what, one)
    return list(first.values())[:MOST_TOLD]
