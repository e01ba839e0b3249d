"""Which key does what for an annotator; the same keys in the terminal and in the browser."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from string import ascii_lowercase, ascii_uppercase, digits

from harness.model.label_set import LabelSet


class AnnotationAction(StrEnum):
    """What an annotator can do. ENTER: accepts a page, or saves the labels. MARK: strikes a line, or gives a label."""

    ENTER = "enter"
    MARK = "mark"
    UP = "up"
    DOWN = "down"
    UNDO = "undo"
    SKIP = "skip"
    COMMENT = "comment"
    WHOLE = "whole"
    GUIDE = "guide"
    FIND = "find"
    REVIEW = "review"
    LABEL = "label"
    QUIT = "quit"


KEYS: dict[AnnotationAction, tuple[str, ...]] = {
    AnnotationAction.ENTER: ("enter",),
    AnnotationAction.MARK: ("space",),
    AnnotationAction.UP: ("up", "k"),
    AnnotationAction.DOWN: ("down", "j"),
    AnnotationAction.UNDO: ("u", "backspace"),
    AnnotationAction.SKIP: ("x", "f8"),
    AnnotationAction.COMMENT: ("c", "f2"),
    AnnotationAction.WHOLE: ("v", "f4"),
    AnnotationAction.GUIDE: ("?", "f1"),
    AnnotationAction.FIND: ("/", "f3"),
    AnnotationAction.REVIEW: ("r", "f9"),
    AnnotationAction.LABEL: ("l", "f7"),
    AnnotationAction.QUIT: ("q", "ctrl+q", "ctrl+c"),
}
"""A label may take a key that is one character; the named ones work everywhere."""

MEANINGS: dict[AnnotationAction, tuple[str, str]] = {
    AnnotationAction.ENTER: ("accepts all that is not struck, and the next page comes", "saves, and goes on"),
    AnnotationAction.MARK: ("strikes the line under the cursor, or takes that back", "gives or takes that label"),
    AnnotationAction.UP: ("moves the cursor", "the same"),
    AnnotationAction.DOWN: ("moves the cursor", "the same"),
    AnnotationAction.UNDO: ("takes back the last page as a whole, or the last utterance", "the same"),
    AnnotationAction.SKIP: ("leaves the group for later", "leaves the utterance for the end"),
    AnnotationAction.COMMENT: ("", "a comment, kept with the labels"),
    AnnotationAction.WHOLE: ("in the terminal: a long utterance in full", "the same"),
    AnnotationAction.GUIDE: ("the guide; letters search it in the terminal, a field in the browser", "the same"),
    AnnotationAction.FIND: ("in the browser: finds utterances of yours, to be labelled again", "the same"),
    AnnotationAction.REVIEW: ("", "goes to the groups"),
    AnnotationAction.LABEL: ("goes to labelling by hand", ""),
    AnnotationAction.QUIT: ("leaves; nothing that was saved is lost", "the same"),
}
"""What an action does on a page of a group, and on an utterance that is labelled by hand."""

_TAKEN = {key for keys in KEYS.values() for key in keys}
LINE_KEYS = tuple(key for key in (*digits[1:], "0", *ascii_lowercase, *ascii_uppercase) if key not in _TAKEN)
"""Keys of the lines of a page, in their order; a line beyond them is struck by the cursor alone."""


def action_of(key: str) -> AnnotationAction | None:
    """What a key does."""
    return next((action for action, keys in KEYS.items() if key in keys), None)


def line_of(key: str) -> int | None:
    """The line of a page that a key strikes, from 0."""
    return LINE_KEYS.index(key) if key in LINE_KEYS else None


def label_keys(labels: LabelSet) -> dict[str, str]:
    """Label → key: those of the set first, the others in order 1 … 9, 0, letters, capitals; "" when none is left."""
    own = {label.id: label.key for label in labels.labels if label.key}
    free: Iterator[str] = (key for key in LINE_KEYS if key not in own.values())
    return {id_: own.get(id_) or next(free, "") for id_ in labels.ids}


def action_key(action: AnnotationAction, labels: LabelSet | None = None) -> str:
    """The key by which an action is offered: the first one that no label has taken. labels: None on a page's review."""
    taken = set(label_keys(labels).values()) if labels is not None else set()
    return next(key for key in KEYS[action] if key not in taken)
