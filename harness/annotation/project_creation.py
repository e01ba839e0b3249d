"""Makes an annotation project, with labels that come with its data. If that fails, no folder is left behind."""

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

MAX_LISTED = 20


@frozen
class LabelImport:
    """The result of reading a file of labels.

    - rows: rows to add.
    - same: number of utterances that had the same imported labels before.
    - without_text: ids in the file that no utterance has.
    - without_labels: ids of utterances that the file does not contain, or for which it has no labels.
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
    """Makes a row for each utterance that gets labels or slots that differ from those in `before`.

    - utterances: those of the project.
    - annotated: those of the file.
    - before: earlier imported labels and slots by id. An utterance without slots in the file keeps its earlier ones.
    - mapping: label of the file → label of the set; other labels stay as they are.
    - source: name of the file.

    Raises InputProblems if labels or concepts are unknown, or if the rules forbid the labels, each with its place.
    Raises InputError if no utterance of the project gets labels.
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
            continue  # The set needs a label, so no labels mean "unknown": a file has no other way to say so.
        if refusal:
            problems.append(_label_problem(utterance, intents, refusal, label_set, source))
            continue
        before_intents, before_slots = before.get(utterance.id, (None, None))
        slots = _slots_of(utterance) if label_set.concepts else None
        if slots is None:  # a file without slots leaves them as they are
            slots = before_slots
        concept_problem = _concept_problem(utterance, slots or (), label_set, source)
        if concept_problem is not None:
            problems.append(concept_problem)
            continue
        labelled.add(utterance.id)
        if (before_intents, before_slots) == (intents, slots):
            same_count += 1
        else:
            row = Labelled(
                str(uuid.uuid4()), IMPORTED, utterance.id, intents, source=source, given_wall_s=now_s, slots=slots
            )
            rows.append(row)
    if problems:
        raise InputProblems(_distinct_problems(problems))
    if not labelled:
        raise _nothing_labelled(utterances, annotated, source)
    return LabelImport(
        tuple(rows),
        same_count,
        tuple(utterance.id for utterance in annotated if utterance.id not in ids),
        tuple(utterance.id for utterance in utterances if utterance.id not in labelled),
    )


def _nothing_labelled(utterances: Sequence[Utterance], annotated: Sequence[Utterance], source: str) -> InputError:
    """The error for a file from which no utterance of the project gets labels; arguments as for `import_rows`."""
    ids = {utterance.id for utterance in utterances}
    if any(utterance.id in ids for utterance in annotated):
        return InputError("no utterance has labels", place=Place(source), remedy="Take the labels from another file")
    first = next((utterance.id for utterance in annotated), "")
    return InputError(
        f"no id of this file occurs in the data: the first is {first!r}",
        place=Place(source),
        remedy=f"Use the ids of the data, such as {utterances[0].id!r}",
    )


def import_file(room: AnnotationRoom, path: Path, mapping: Mapping[str, str]) -> LabelImport:
    """Adds the labels of a file to a project, all or none. Returns when they are on the disk. Errors: `import_rows`."""
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
    room.write(import_result.rows)
    return import_result


def _slots_of(utterance: Utterance) -> Slots | None:
    """The slots of an utterance, without values; None if its slots are not annotated.

    Raises InputError if they are wrong.
    """
    tags = tags_of(utterance)
    if tags is None:
        return None
    return tuple(replace(slot, value=None) for slot in slots_of(replace(utterance, tags=tags)))


def _concept_problem(utterance: Utterance, slots: Slots, label_set: LabelSet, source: str) -> InputError | None:
    """The error for slots with a concept that the label set does not have; None if it has all."""
    known = tuple(concept.id for concept in label_set.concepts)
    unknown = {slot.concept for slot in slots} - {*known}
    if not unknown:
        return None
    problem = f"the label set has no concept {min(unknown)!r}"
    remedy = nearest(min(unknown), known, listed="Concepts")
    return InputError(problem, place=utterance.place or Place(source), remedy=remedy)


def _label_problem(
    utterance: Utterance, intents: Intents, refusal: str, label_set: LabelSet, source: str
) -> InputError:
    """The error for labels that the label set does not have, or forbids. refusal: why it forbids them."""
    unknown = next((label for label in intents if label not in label_set.ids), None)
    place = utterance.place or Place(source)
    if unknown is None:
        remedy = "Change the labels, or the rules of the label set"
        return InputError(f"the label set forbids {joined(intents)}: {refusal}", place=place, remedy=remedy)
    remedy = f"{nearest(unknown, label_set.ids, listed='Labels')}; or map labels with --rename-labels"
    preset = next((name for name, names in PRESETS.items() if names.get(unknown) in label_set.ids), None)
    if preset is not None:
        remedy = f"Add --rename-labels {preset}, which maps this label"
    return InputError(f"there is no label {unknown!r}", place=place, remedy=remedy)


def _distinct_problems(problems: Sequence[InputError]) -> list[InputError]:
    """The first occurrence of each problem, at most MAX_LISTED. A file may repeat a wrong label many times."""
    first: dict[str, InputError] = {}
    for problem in problems:
        first.setdefault(problem.what, problem)
    return list(first.values())[:MAX_LISTED]


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
    """Makes the folder. Also returns the label set, and a `LabelImport` for each source of labels.

    - splits: which splits to take from folders of data, () for all.
    - take_labels: labels in the data become rows. Their `LabelImport` comes first.
    - intents: a file of intents by id, which become rows as well; None for no file.
    - mapping: label of the files → label of the set.
    - double_share: share of the utterances that two annotators label, 0 for none.
    - settings: other fields of `AnnotationProject`.

    InputError and InputProblems come before anything is written. Raises LogError if the folder cannot be made.
    """
    label_set = load_label_set(labels)
    utterances = _utterances(data, splits or (None,))
    if folder.exists() or folder.is_symlink():
        raise InputError("the path already exists", place=Place(str(folder)), remedy="Choose a new folder")
    demand_folder(folder)
    mapping = mapping or {}
    imported: list[LabelImport] = []
    if take_labels:
        imported.append(import_rows(utterances, utterances, label_set, {}, mapping, "the data"))
    if intents is not None:
        annotated = read_corpus(intents).utterances
        before = {row.utterance: (row.intents, row.slots) for import_result in imported for row in import_result.rows}
        imported.append(import_rows(utterances, annotated, label_set, before, mapping, str(intents)))
    # Labels are kept only in rows, so the copy of the data gets none.
    unlabelled = tuple(replace(utterance, intents=None, scores=()) for utterance in utterances)
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
    with disk_errors(f"{folder} cannot be created"), atomic_folder(folder) as part:
        for name, content in files.items():
            write_atomically(part / name, content)
        write_atomically(AnnotationFolder(part).project, project_text(project))
        log = AnnotationLog(part)
        log.add([row for import_result in imported for row in import_result.rows])
        log.close()


def _utterances(data: Sequence[Path], splits: Sequence[str | None]) -> tuple[Utterance, ...]:
    """All utterances of the data. Raises InputError if an id occurs twice, or if no utterance has words."""
    by_id: dict[str, tuple[Utterance, Path]] = {}
    for path in data:
        for split in splits:
            for utterance in read_corpus(path, split=split).utterances:
                _, first_path = by_id.get(utterance.id, (utterance, None))
                if first_path is not None:
                    raise InputError(
                        f"the id {utterance.id!r} is already in {first_path}",
                        place=utterance.place or Place(str(path)),
                        remedy="Change one of the ids",
                    )
                by_id[utterance.id] = utterance, path
    utterances = tuple(utterance for utterance, _ in by_id.values())
    if not any(utterance.words for utterance in utterances):
        problem = "no utterance has a text to annotate"
        raise InputError(
            problem, place=Place(str(data[0])), remedy="Pass the texts with --data, and the intents with --intents"
        )
    return utterances


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
