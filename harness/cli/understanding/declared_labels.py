"""Labels that a person declares on the command line: a list, or a file of a label set."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click

from harness.base.cells import shown
from harness.model.annotation import LabelSet
from harness.model.errors import InputError
from harness.model.understanding import joined
from harness.understanding.reports.distribution import LabelCounts

SUFFIXES = (".yaml", ".yml")
NOT_ALLOWED = 1
MOST_TOLD = 20


@dataclass(frozen=True, slots=True)
class DeclaredLabels:
    """ids: in their order. label_set: None where only ids were declared."""

    ids: tuple[str, ...]
    label_set: LabelSet | None = None

    def refusals(self, counts: LabelCounts) -> Iterator[str]:
        """What is labelled otherwise than declared, with how often."""
        for together, utterances in sorted(counts.sets.items(), key=lambda one: (-one[1], one[0])):
            if self.label_set is not None:
                why = self.label_set.refusal(together)
            else:
                why = next((f"there is no label {one!r}" for one in together if one not in self.ids), "")
            if why:
                yield f"{utterances:,} × {shown(joined(together) or '(none)', 80)}: {shown(why, 80)}"

    def demand(self, counts: LabelCounts) -> None:
        """Ends with status 1, after saying why, when something is labelled otherwise than declared."""
        found = list(self.refusals(counts))
        for one in found[:MOST_TOLD]:
            click.echo(f"harness: {one}", err=True)
        if len(found) > MOST_TOLD:
            click.echo(f"harness: and {len(found) - MOST_TOLD:,} more", err=True)
        if found:
            sys.exit(NOT_ALLOWED)


def declared_labels(written: str) -> DeclaredLabels:
    """Of `a,b,c`, or of a .yaml file with a label set; InputError for neither."""
    if written.lower().endswith(SUFFIXES):
        from harness.understanding.files.label_set_file import load_label_set

        label_set = load_label_set(Path(written))
        return DeclaredLabels(label_set.ids, label_set)
    ids = tuple(dict.fromkeys(part.strip() for part in written.split(",") if part.strip()))
    if not ids:
        raise InputError("--labels names no label", remedy="Write a,b,c, or name a .yaml file of a label set")
    return DeclaredLabels(ids)
