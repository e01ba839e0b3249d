"""Writes annotated utterances as files that `read_corpus` reads: JSONL, BIO folders, and CSV of intents."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from harness.base.plain_json import picked
from harness.base.text_file import safe_csv
from harness.base.whole_file import atomic_folder, disk_errors, write_atomically
from harness.model.choices import SPLIT
from harness.model.errors import InputError, Place
from harness.model.numbers import counted
from harness.model.understanding import JOINT, Chunking, Corpus, Slot, Utterance, joined
from harness.understanding.tag_chunks import OUTSIDE, chunks


def tags_of(utterance: Utterance) -> tuple[str, ...] | None:
    """An utterance's tags, or tags made from its slots. None if slots are not annotated.

    Raises InputError for slots that BIO cannot represent: without a position, that overlap, or with a blank in their
    concept.
    """
    if utterance.tags is not None or utterance.slots is None:
        return utterance.tags
    tags = [OUTSIDE] * len(utterance.words)
    for slot in utterance.slots:
        start, end = slot.start, slot.end
        if start is None or end is None:
            remedy = "Add `start` and `end`, counted in words. Only JSONL can have slots without a position"
            raise _untaggable(utterance, slot, "has no position", remedy)
        if end > len(tags):
            raise _untaggable(utterance, slot, f"ends at word {end}, but the text has {counted(len(tags), 'word')}")
        if any(tag != OUTSIDE for tag in tags[start:end]):
            raise _untaggable(utterance, slot, "shares a word with another slot")
        if len(slot.concept.split()) != 1:
            raise _untaggable(utterance, slot, "contains a space")
        tags[start:end] = [f"B-{slot.concept}", *[f"I-{slot.concept}"] * (end - start - 1)]
    return tuple(tags)


def _untaggable(
    utterance: Utterance,
    slot: Slot,
    problem: str,
    remedy: str = "Correct the slot, or use JSONL: BIO tags cannot represent such a slot",
) -> InputError:
    return InputError(f"the slot {slot.concept!r} of {utterance.id!r} {problem}", place=utterance.place, remedy=remedy)


def slots_of(utterance: Utterance) -> tuple[Slot, ...]:
    """Slots from an utterance's tags (conlleval), with their words as values. () without tags."""
    tag_chunks = chunks(utterance.tags or (), Chunking.CONLLEVAL)
    return tuple(
        Slot(chunk.concept, " ".join(utterance.words[chunk.start : chunk.end]), chunk.start, chunk.end)
        for chunk in tag_chunks
    )


def jsonl(corpus: Corpus) -> str:
    """The text of a JSONL file: one object per line. Missing annotations have no key."""
    return "".join(jsonl_line(utterance) + "\n" for utterance in corpus.utterances)


def jsonl_line(utterance: Utterance) -> str:
    """One utterance as a line without its end, in ASCII."""
    entry: dict[str, object] = {"id": utterance.id}
    if utterance.words or utterance.tags is not None:
        entry["text"] = utterance.text
    if utterance.intents is not None:
        entry["intents"] = list(utterance.intents)
    if utterance.tags is not None:
        entry["tags"] = list(utterance.tags)
    if utterance.slots is not None:
        entry["slots"] = [_slot_entry(slot) for slot in utterance.slots]
    if utterance.groups:
        entry["groups"] = dict(utterance.groups)
    if utterance.scores:
        entry["scores"] = dict(utterance.scores)
    if utterance.cost is not None:
        entry["cost"] = asdict(utterance.cost)
    return json.dumps(entry, ensure_ascii=True)


def write_jsonl(corpus: Corpus, path: Path) -> None:
    """Writes a JSONL file, completely or not at all. Raises LogError."""
    write_atomically(path, jsonl(corpus).encode("utf-8"))


def _slot_entry(slot: Slot) -> dict[str, object]:
    entry = picked(slot, "concept", "value", "start", "end")
    return {key: value for key, value in entry.items() if value is not None}


def write_jsonl_folder(corpus: Corpus, folder: Path) -> None:
    """Writes a new folder with a JSONL file for each split, completely or not at all. Raises LogError."""
    with disk_errors(f"{folder} cannot be written"), atomic_folder(folder) as new_folder:
        for split, utterances in _by_split(corpus).items():
            write_jsonl(Corpus(corpus.path, tuple(utterances)), new_folder / f"{split}.jsonl")


def write_bio(corpus: Corpus, folder: Path) -> None:
    """Writes seq.in, seq.out and label into a new folder, or into one per split if all utterances name a split.

    The folder is written completely or not at all. If no utterance has slots, there is no seq.out. If none has intents,
    there is no label. Slots without tags become tags.

    Raises InputError if the folder is not empty, only some utterances are annotated, or BIO cannot represent a slot.
    Raises LogError if it cannot be written.
    """
    parts = _by_split(corpus)
    contents = {split: _bio_files(utterances, corpus.path) for split, utterances in parts.items()}
    with disk_errors(f"{folder} cannot be written"):
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise InputError("the folder is not empty", place=Place(str(folder)), remedy="Choose a new folder")
        with atomic_folder(folder) as new_folder:
            for split, files in contents.items():
                (new_folder / split).mkdir(exist_ok=not split)
                for name, text in files.items():
                    write_atomically(new_folder / split / name, text.encode("utf-8"))


def intents_csv(corpus: Corpus, id_header: str = "id") -> str:
    """The text of a CSV file with rows `id,intent`, with intents sorted and joined with #.

    Raises InputError for an utterance whose intents are not annotated.
    """
    rows: list[Sequence[str]] = [(id_header, "intent")]
    for utterance in corpus.utterances:
        if utterance.intents is None:
            problem = f"the intents of {utterance.id!r} are not annotated"
            raise InputError(problem, place=utterance.place, remedy="Annotate the utterance, or remove it")
        rows.append((utterance.id, joined(utterance.intents)))
    return safe_csv(rows)


def _by_split(corpus: Corpus) -> dict[str, list[Utterance]]:
    """The utterances by split; all under "" unless each names a split."""
    splits = [dict(utterance.groups).get(SPLIT, "") for utterance in corpus.utterances]
    if not splits or not all(splits):
        return {"": list(corpus.utterances)}
    parts: dict[str, list[Utterance]] = {}
    for split, utterance in zip(splits, corpus.utterances, strict=True):
        refuse_split_path(split, utterance.place)
        parts.setdefault(split, []).append(utterance)
    return parts


def refuse_split_path(split: str, place: Place | None) -> None:
    """Raises InputError for the name of a split that would lead out of the folder that is written."""
    if split in (".", "..") or "/" in split or "\0" in split:
        raise InputError(f"{split!r} cannot be a folder name", place=place, remedy="Rename the split")


def _bio_files(utterances: Sequence[Utterance], source: str) -> dict[str, str]:
    """The contents of the files of one folder, by file name. source: path of the corpus, for errors."""
    tags = [tags_of(utterance) for utterance in utterances]
    labels = [utterance.intents for utterance in utterances]
    files = {"seq.in": "".join(f"{utterance.text}\n" for utterance in utterances)}
    for name, column, annotation in (("seq.out", tags, "slots"), ("label", labels, "intents")):
        annotated = sum(cell is not None for cell in column)
        if 0 < annotated < len(column):
            unannotated = next(utterance for utterance, cell in zip(utterances, column, strict=True) if cell is None)
            message = (
                f"{unannotated.id!r} is not annotated with {annotation}, unlike {annotated} of {len(column)} utterances"
            )
            raise InputError(
                message, place=unannotated.place or Place(source), remedy="Use JSONL, or annotate all utterances"
            )
        if annotated:
            separator = " " if name == "seq.out" else JOINT
            files[name] = "".join(f"{separator.join(cell or ())}\n" for cell in column)
    return files
