"""`harness annotate status`: how far a project is."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.annotation.ledger import Outcome, State, outcome
from harness.base.cells import counted
from harness.base.foreign import plain_text
from harness.cli.annotate.project_options import open_project, project_argument
from harness.cli.options import Command, json_option
from harness.cli.show import print_findings
from harness.cli.streams import standard_output

if TYPE_CHECKING:
    from harness.annotation.project import AnnotationRoom

SAID = {
    State.OPEN: "nobody has labelled them, and no labels are proposed",
    State.PROPOSED: "labels are proposed, to be reviewed",
    State.STRUCK: "the proposal was struck, to be labelled by hand",
    State.WAITING: "labelled once, and wait for a second annotator",
    State.DISPUTED: "annotators disagree, to be settled with --adjudicate",
    State.SINGLE: "final: labelled by the one who was wanted",
    State.AGREED: "final: two annotators agree",
    State.ADJUDICATED: "final: settled",
}
LISTED = 3


@click.command("status", cls=Command)
@project_argument
@json_option("as_json", "As one JSON object.")
@click.option("--check", "checking", is_flag=True, help="Check rows and files for damage and changes instead.")
def command(project: Path, as_json: bool, checking: bool) -> None:
    """Say how far a project is: utterances by state, and what each annotator did. Works while they are at it.

    Exit status: 0 done · 2 wrong usage or input · 3 the project cannot be read, or --check found damage.
    """
    from harness.annotation.project import check_annotation

    if checking:
        sys.exit(print_findings(check_annotation(project)))
    room = open_project(project)
    try:
        found = outcome(room.utterances, room.shares, room.ledger)
        out = standard_output()
        out.write(json.dumps(_object(room, found)) + "\n" if as_json else "\n".join(_lines(room, found)) + "\n")
    finally:
        room.close()


def _lines(room: AnnotationRoom, found: Outcome) -> Iterator[str]:
    labels = plain_text(room.label_set.id, 64)
    yield f"project {plain_text(room.project.id, 100)}: {counted(found.total, 'utterance')}, label set {labels}"
    if found.double:
        yield f"{counted(found.double, 'utterance')} for two annotators"
    yield f"{found.final} of {found.total} final"
    for state, many in found.states.items():
        if many:
            yield f"{many:>8}  {state.value:<12}{SAID[state]}"
    if found.changed:
        yield _changed(found.changed)
    yield f"batches of proposals: {found.batches}"
    for one in found.annotators:
        yield f"{plain_text(one.annotator, 64)}: {one.accepted} accepted, {one.by_hand} by hand"


def _changed(ids: tuple[str, ...]) -> str:
    shown = ", ".join(plain_text(one, 60) for one in ids[:LISTED]) + ", …" * (len(ids) > LISTED)
    was = "was" if len(ids) == 1 else "were"
    told = f"{len(ids)} of them {was} labelled otherwise since: {shown}; what was settled holds"
    return f"{'':10}{told}. Look again with: harness annotate review --adjudicate --utterance {plain_text(ids[0], 60)}"


def _object(room: AnnotationRoom, found: Outcome) -> dict[str, object]:
    return {
        "project": room.project.id,
        "label_set": room.label_set.id,
        "utterances": found.total,
        "final": found.final,
        "double": found.double,
        "batches": found.batches,
        "states": {state.value: many for state, many in found.states.items()},
        "changed_since_settled": list(found.changed),
        "annotators": [
            {"annotator": one.annotator, "accepted": one.accepted, "by_hand": one.by_hand} for one in found.annotators
        ],
    }
