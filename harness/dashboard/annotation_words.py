"""Which keys an annotator is offered at a moment."""

from __future__ import annotations

from harness.annotation.view import AnnotationPhase, AnnotationView
from harness.model.annotation import LINE_KEYS, AnnotationAction, LabelSet, action_key, label_keys


def offered(view: AnnotationView, labels: LabelSet) -> tuple[tuple[str, str], ...]:
    """(key, what it does) of those that do something now."""
    match view.phase:
        case AnnotationPhase.REVIEWING:
            return _reviewing(view)
        case AnnotationPhase.LABELLING:
            return _labelling(view, labels)
        case AnnotationPhase.FINISHED:
            found = [("u", "undo")] if view.can_undo else []
            return (*found, ("?", "guide"), ("q", "quit"))


def _reviewing(view: AnnotationView) -> tuple[tuple[str, str], ...]:
    struck = sum(line.struck for line in view.page)
    kept = len(view.page) - struck
    words = f"accept {'all ' if kept and not struck else ''}{kept}" if kept else "accept none"
    if struck:
        words += f", label {struck} by hand"
    last = min(len(view.page), len(LINE_KEYS))
    lines = _range(LINE_KEYS[:last])
    found = [("enter", words), (lines, "strike"), ("space", "strike ›"), ("↑ ↓ j k", "move"), ("v", "whole")]
    found += [("u", "undo")] * view.can_undo
    found.append(("x", "group later"))
    found += [("l", "label by hand now")] * bool(view.count.to_label)
    return (*found, ("?", "guide"), ("q", "quit"))


def _labelling(view: AnnotationView, labels: LabelSet) -> tuple[tuple[str, str], ...]:
    def key(action: AnnotationAction) -> str:
        return action_key(action, labels)

    saved = view.item is not None and view.item.saved
    keys = [one for one in label_keys(labels).values() if one]
    found = [("enter", "go on" if saved else "save"), (_range(tuple(keys)), "labels"), ("space", "label ›")]
    found += [("↑ ↓", "move"), (key(AnnotationAction.SKIP), "skip"), (key(AnnotationAction.COMMENT), "comment")]
    found += [(key(AnnotationAction.WHOLE), "whole")]
    found += [(key(AnnotationAction.UNDO), "undo")] * view.can_undo
    found += [(key(AnnotationAction.REVIEW), "review")] * bool(view.count.to_review)
    return (*found, (key(AnnotationAction.GUIDE), "guide"), (key(AnnotationAction.QUIT), "quit"))


def _range(keys: tuple[str, ...]) -> str:
    """Keys in short: those that follow each other in the order of lines are named by their ends."""
    if len(keys) < 4:
        return " ".join(keys)
    if keys == LINE_KEYS[: len(keys)]:
        return f"{keys[0]}-{keys[-1]}" if len(keys) < 10 else f"1-9 0{f' a-{keys[-1]}' if len(keys) > 10 else ''}"
    return " ".join(keys) if len(keys) < 12 else "its key"
