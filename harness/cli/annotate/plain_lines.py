"""What an annotator sees, as labelled lines that a screen reader can read."""

from __future__ import annotations

from collections.abc import Iterator

from harness.annotation.view import AnnotationPhase, AnnotationView
from harness.base.cells import counted
from harness.base.foreign import plain_text
from harness.model.annotation import Example, Intents, Label, LabelSet
from harness.model.understanding import joined

LONGEST = 2000


def sight_lines(view: AnnotationView, labels: LabelSet) -> Iterator[str]:
    """The page or the utterance in sight."""
    match view.phase:
        case AnnotationPhase.REVIEWING:
            yield from _page_lines(view)
        case AnnotationPhase.LABELLING:
            yield from _item_lines(view, labels)
        case AnnotationPhase.FINISHED:
            yield "nothing is left to settle" if view.adjudicating else "nothing is left to do"


def status_lines(view: AnnotationView) -> Iterator[str]:
    """How far the annotator is."""
    count = view.count
    yield f"{plain_text(view.annotator)}: {count.done} of {count.total} done, {count.left} left"
    if not view.adjudicating:
        yield f"of those left: {count.to_review} to review, {count.to_label} to label; struck so far: {count.struck}"
    yield f"left for the end: {count.skipped}"
    if view.pace_s is not None and view.left_s is not None:
        yield f"pace: {view.pace_s:.1f} s an utterance, about {max(1, round(view.left_s / 60))} min left"


def guide_lines(labels: LabelSet) -> Iterator[str]:
    """The label set in short."""
    yield shown(labels.title)
    if labels.intro:
        yield shown(labels.intro)
    for label in labels.labels:
        key = f" (key {label.key})" if label.key else ""
        alone = ", stands alone" if label.alone else ""
        yield shown(f"{label.id}{key}{alone}: {label.description or label.title}")
    for first, second in labels.never_together:
        yield shown(f"never together: {first} and {second}")


def label_lines(label: Label) -> Iterator[str]:
    """One label with its examples."""
    yield shown(f"{label.id}: {label.title}")
    if label.description:
        yield shown(label.description)
    for one in label.examples:
        yield shown(f"yes: {_example(one, (label.id,))}")
    for one in label.counterexamples:
        yield shown(f"not: {_example(one, ())}")


def shown(text: str) -> str:
    return plain_text(text, LONGEST)


def labelled(intents: Intents) -> str:
    """Labels of an utterance as they stand in files, or that there are none."""
    return plain_text(joined(intents) or "no label", LONGEST)


def _page_lines(view: AnnotationView) -> Iterator[str]:
    group = view.group
    if group is not None:
        left = f"{group.left} of {group.total} left"
        yield f"group {group.number} of {group.groups}, proposed: {labelled(group.intents)} ({left})"
    for line in view.page:
        yield f"{line.number}{' struck' if line.struck else ''}: {shown(line.text)}"
    yield "accept, or numbers of what is wrong"


def _item_lines(view: AnnotationView, labels: LabelSet) -> Iterator[str]:
    item, count = view.item, view.count
    if item is None:
        return
    yield f"utterance {count.done + 1} of {count.total}: {shown(item.text)}"
    for number, given in enumerate(item.inputs, 1):
        comment = f", comment: {shown(given.comment)}" if given.comment else ""
        yield f"given {number}: {labelled(given.intents)}{comment}"
    if item.struck:
        yield f"struck: {labelled(item.proposal or ())}"
    elif item.proposal is not None:
        yield f"proposed: {labelled(item.proposal)}"
    if item.saved:
        yield f"yours: {labelled(item.chosen)}; `keep`, or labels again"
    else:
        yield f"labels? ({counted(len(labels.labels), 'label')}, `guide` lists them)"


def _example(one: Example, own: Intents) -> str:
    labels = "" if one.labels in ((), own) else f" [{joined(one.labels)}]"
    return f"{one.text}{labels}{f' ({one.why})' if one.why else ''}"
