"""The guide of a label set as an annotator reads it."""

from __future__ import annotations

from rich.text import Text

from harness.base.foreign import plain_text
from harness.dashboard import palette
from harness.dashboard.widgets.label_grid import label_name
from harness.model.annotation import Example, Label, LabelSet, label_keys
from harness.model.understanding import joined

LONGEST = 2000


def guide_text(labels: LabelSet, wanted: str = "") -> Text:
    """The rules, and each label with key, description, examples and counterexamples.

    wanted: only labels in which all of its words stand somewhere, in whatever case.
    """
    text, keys = Text(), label_keys(labels)
    words = wanted.casefold().split()
    if not words:
        text.append(f"{plain_text(labels.title or labels.id, 200)}\n", style=f"bold {palette.TEXT}")
        for line in labels.intro.splitlines():
            text.append(f"{plain_text(line, LONGEST)}\n", style=palette.TEXT)
        for rule in rules(labels):
            text.append(f"· {rule}\n", style=palette.TEXT)
    found = [label for label in labels.labels if _has(label, words)]
    for label in found:
        text.append(f"\n{plain_text(keys[label.id], 1) if keys[label.id] else ' '} ", style=f"bold {palette.BLUE}")
        text.append(label_name(label), style=f"bold {palette.TEXT}")
        text.append("  stands alone\n" if label.alone else "\n", style=palette.ORANGE)
        if label.description:
            text.append(f"  {plain_text(label.description, LONGEST)}\n", style=palette.TEXT)
        for one in label.examples:
            _example(text, "yes", one, (label.id,), palette.GREEN)
        for one in label.counterexamples:
            _example(text, "not", one, (), palette.RED)
    if not found:
        text.append("\nno label of the guide has these words\n", style=palette.YELLOW)
    return text


def rules(labels: LabelSet) -> list[str]:
    """Which labels go together, in words; harmless."""
    alone = [plain_text(label.id, 60) for label in labels.labels if label.alone]
    found = [f"never beside another label: {', '.join(alone)}"] if alone else []
    found += [
        f"never together: {plain_text(first, 60)} and {plain_text(second, 60)}"
        for first, second in labels.never_together
    ]
    return [*found, "an utterance may have no label" if labels.may_be_empty else "an utterance has at least one label"]


def _example(text: Text, word: str, one: Example, labels: tuple[str, ...], colour: str) -> None:
    text.append(f"  {word} ", style=colour)
    text.append(f"“{plain_text(one.text, LONGEST)}”", style=palette.TEXT)
    if one.labels and one.labels != labels:
        text.append(f"  is {plain_text(joined(one.labels), 200)}", style=palette.VIOLET)
    if one.why:
        text.append(f"  {plain_text(one.why, LONGEST)}", style=palette.QUIET)
    text.append("\n")


def _has(label: Label, words: list[str]) -> bool:
    examples = (*label.examples, *label.counterexamples)
    parts = [label.id, label.title, label.description]
    parts += [part for one in examples for part in (one.text, one.why, *one.labels)]
    whole = " ".join(parts).casefold()
    return all(word in whole for word in words)
