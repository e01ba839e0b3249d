"""Annotated utterances as lines of JSON, which `harness.understanding.files.jsonl` reads."""

from __future__ import annotations

import json
from collections.abc import Iterator

from harness.model.understanding import Corpus, Utterance


def jsonl_lines(corpus: Corpus) -> Iterator[str]:
    """The lines of a JSONL file, with their ends."""
    for one in corpus.utterances:
        yield jsonl_line(one) + "\n"


def jsonl_line(one: Utterance) -> str:
    """One utterance as an object in a line, without its end; ASCII."""
    written: dict[str, object] = {"id": one.id}
    if one.words or one.tags is not None:
        written["text"] = one.text
    if one.intents is not None:
        written["intents"] = list(one.intents)
    if one.tags is not None:
        written["tags"] = list(one.tags)
    if one.slots is not None:
        written["slots"] = [
            {key: value for key in ("concept", "value", "start", "end") if (value := getattr(slot, key)) is not None}
            for slot in one.slots
        ]
    if one.groups:
        written["groups"] = dict(one.groups)
    return json.dumps(written, ensure_ascii=True)
