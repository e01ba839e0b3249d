"""Makes an annotation project: a folder that is there whole or not at all, with labels that come with its data."""

from __future__ import annotations

import hashlib
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness import __version__
from harness.annotation.project import AnnotationFolder, AnnotationLog, AnnotationRoom, project_text
from harness.base.whole_file import atomic_folder, demand_folder, disk_errors, write_atomically
from harness.model.annotation import IMPORTED, AnnotationProject, Intents, Labelled, LabellingOrder, LabelSet, Slots
from harness.model.errors import InputError, InputProblems, Place, nearest
from harness.model.frozen import frozen
from harness.model.understanding import Corpus, Utterance, joined
from harness.understanding.files.corpus_file import read_corpus
from harness.understanding.files.corpus_writing import jsonl, slots_of, tags_of
from harness.understanding.files.label_set_file import PRESETS, load_label_set

MOST_LISTED = 20


@frozen
class LabelImport:
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
    annotated: Sequence[Utterance],
    label_set: LabelSet,
    before: Mapping[str, tuple[Intents, Slots | None]],
    mapping: Mapping[str, str],
    source: str,
) -> LabelImport:
    """Rows for all that is given labels or slots other than those before.

    mapping: label of the file → label of the set; others stand as they are. InputProblems for unknown labels and
    concepts, and for those that the rules forbid, each with its place; InputError when nothing fits.
    """
    ids = {utterance.id for utterance in utterances}
    problems: list[InputError] = []
    rows: list[Labelled] = []
    labelled: set[str] = set()
    same_count = 0
    now_s = time.time()
    for utterance in annotated:
        if utterance.intents is None or utterance.id not in ids:
            continue
        intents = tuple(sorted({mapping.get(label, label) for label in utterance.intents}))
        refusal = label_set.refusal(intents)
        if refusal and not intents:
            continue  # a file has no other way to say that it does not know
        if refusal:
            problems.append(_problem(utterance, intents, refusal, label_set, source))
            continue
        slots = _slots_of(utterance) if label_set.concepts else None
        unknown = {slot.concept for slot in slots or ()} - {concept.id for concept in label_set.concepts}
        if unknown:
            known_ones = tuple(concept.id for concept in label_set.concepts)
            remedy = nearest(min(unknown), known_ones, listed="Concepts")
            problem = f"the label set has no concept {min(unknown)!r}"
            problems.append(InputError(problem, place=utterance.place or Place(source), remedy=remedy))
            continue
        labelled.add(utterance.id)
        if before.get(utterance.id) == (intents, slots):
            same_count += 1
        else:
            row = Labelled(
                str(uuid.uuid4()), IMPORTED, utterance.id, intents, source=source, given_wall_s=now_s, slots=slots
            )
            rows.append(row)
    if problems:
        raise InputProblems(_distinct_problems(problems))
    if not labelled:
        first = next((utterance.id for utterance in annotated), "")
        raise InputError(
            f"no id of this file occurs in the data: the first is {first!r}",
            place=Place(source),
            remedy=f"Use the ids of the data, such as {utterances[0].id!r}",
        )
    return LabelImport(
        tuple(rows),
        same_count,
        tuple(utterance.id for utterance in annotated if utterance.id not in ids),
        tuple(utterance.id for utterance in utterances if utterance.id not in labelled),
    )


def import_file(room: AnnotationRoom, path: Path, mapping: Mapping[str, str]) -> LabelImport:
    """Adds the labels of a file to a project, all or none; returns when they are on the disk."""
    room.refresh()
    ledger = room.ledger
    before = {
        utterance.id: (row.intents, ledger.slots(utterance.id, row))
        for utterance in room.utterances
        if (row := ledger.choices(utterance.id).get(IMPORTED)) is not None
    }
    import_result = import_rows(
        room.utterances, read_corpus(path).utterances, room.label_set, before, mapping, str(path)
    )
    room.keep(import_result.rows)
    return import_result


def _slots_of(utterance: Utterance) -> Slots | None:
    """The slots of an annotated utterance, without values; None if slots are not annotated. InputError."""
    tags = tags_of(utterance)
    return (
        None if tags is None else tuple(replace(slot, value=None) for slot in slots_of(replace(utterance, tags=tags)))
    )


def _problem(utterance: Utterance, intents: Intents, refusal: str, label_set: LabelSet, source: str) -> InputError:
    unknown = next((label for label in intents if label not in label_set.ids), None)
    place = utterance.place or Place(source)
    if unknown is None:
        remedy = "Change the labels, or the rules of the label set"
        return InputError(f"the label set forbids {joined(intents)}: {refusal}", place=place, remedy=remedy)
    remedy = f"{nearest(unknown, label_set.ids, listed='Labels')}; give other names with --rename-labels"
    preset = next((name for name, names in PRESETS.items() if names.get(unknown) in label_set.ids), None)
    if preset is not None:
        remedy = f"Add --rename-labels {preset}, which has it"
    return InputError(f"there is no label {unknown!r}", place=place, remedy=remedy)


def _distinct_problems(problems: Sequence[InputError]) -> list[InputError]:
    """The first occurrence of each problem, since a file may repeat a wrong label many times."""
    first: dict[str, InputError] = {}
    for problem in problems:
        first.setdefault(problem.what, problem)
    return list(first.values())[:MOST_LISTED]


def make_project(
    folder: Path,
    data: Sequence[Path],
    labels: Path,
    *,
    splits: Sequence[str] = (),
    take_labels: bool = False,
    intents: Path | None = None,
    mapping: Mapping[str, str] | None = None,
    double_share: float = 0.0,
    order: LabellingOrder = LabellingOrder.DOUBT,
    **settings: Any,
) -> tuple[AnnotationProject, LabelSet, list[LabelImport]]:
    """Makes the folder; InputError and InputProblems before anything is written, LogError when it cannot be.

    splits: of folders, () for all. take_labels: those in the data become rows. intents: a file of intents by id, which
    become rows as well. mapping: label of files → label of the set. settings: other fields of `AnnotationProject`.
    Also returns what became of the labels in the data and in the file of intents, in this order.
    """
    label_set = load_label_set(labels)
    utterances = _utterances(data, splits or (None,))
    if folder.exists() or folder.is_symlink():
        raise InputError("this already exists", place=Place(str(folder)), remedy="Name a new folder")
    demand_folder(folder)
    mapping = mapping or {}
    imported: list[LabelImport] = []
    if take_labels:
        imported.append(import_rows(utterances, utterances, label_set, {}, mapping, "the data"))
    if intents is not None:
        annotated = read_corpus(intents).utterances
        before = {row.utterance: (row.intents, row.slots) for import_result in imported for row in import_result.rows}
        imported.append(import_rows(utterances, annotated, label_set, before, mapping, str(intents)))
    # Labels stand in rows and nowhere else: the copy of the data has none.
    unlabelled = tuple(replace(utterance, intents=None) for utterance in utterances)
    if label_set.concepts:
        unlabelled = tuple(replace(utterance, tags=None, slots=None) for utterance in unlabelled)
    text = jsonl(Corpus("", unlabelled)).encode("utf-8")
    with disk_errors(f"{labels} cannot be read"):
        label_text = labels.read_bytes()
    project = AnnotationProject(
        tied=True,
        id=folder.absolute().name,
        utterances=len(utterances),
        per_utterance=2 if double_share else 1,
        double_share=double_share,
        order=order,
        files=(("utterances.jsonl", _hash(text)), ("labels.yaml", _hash(label_text))),
        facts=(
            ("data", ", ".join(map(str, data))),
            ("splits", ", ".join(splits)),
            ("labels", str(labels)),
            ("intents", "" if intents is None else str(intents)),
            ("tool", __version__),
            ("made", time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())),
        ),
        **settings,
    )
    _write(folder, {"utterances.jsonl": text, "labels.yaml": label_text}, project, imported)
    return project, label_set, imported


def _write(
    folder: Path, files: Mapping[str, bytes], project: AnnotationProject, imported: Sequence[LabelImport]
) -> None:
    with disk_errors(f"{folder} cannot be made"), atomic_folder(folder) as part:
        for name, content in files.items():
            write_atomically(part / name, content)
        write_atomically(AnnotationFolder(part).project, project_text(project))
        log = AnnotationLog(part)
        log.add([row for import_result in imported for row in import_result.rows])
        log.close()


def _utterances(data: Sequence[Path], splits: Sequence[str | None]) -> tuple[Utterance, ...]:
    """All of the data, each id once; InputError."""
    by_id: dict[str, tuple[Utterance, Path]] = {}
    for path in data:
        for split in splits:
            for utterance in read_corpus(path, split=split).utterances:
                _, first_path = by_id.get(utterance.id, (utterance, None))
                if first_path is not None:
                    raise InputError(
                        f"the id {utterance.id!r} is already in {first_path}",
                        place=utterance.place or Place(str(path)),
                        remedy="Rename one of the two",
                    )
                by_id[utterance.id] = utterance, path
    utterances = tuple(utterance for utterance, _ in by_id.values())
    if not any(utterance.words for utterance in utterances):
        problem = "no utterance has a text to annotate"
        raise InputError(
            problem, place=Place(str(data[0])), remedy="Name the texts with --data, and the intents with --intents"
        )
    return utterances


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
