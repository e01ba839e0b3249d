"""`harness annotate`: give utterances their intents with less work."""

from __future__ import annotations

import click

from harness.cli.verbs import Verbs

VERBS = {
    "new": ("harness.cli.annotate.projects:new", "Make a project of utterances and a set of labels."),
    "propose": (
        "harness.cli.annotate.propose",
        "Train three classifiers on what is labelled; propose labels for the rest.",
    ),
    "review": (
        "harness.cli.annotate.review",
        "Accept or strike proposals by groups, and label the rest; also in a browser.",
    ),
    "status": ("harness.cli.annotate.figures:status", "Say how far a project is."),
    "report": (
        "harness.cli.annotate.figures:report",
        "Say what was labelled how: consensus, without, struck; the distribution.",
    ),
    "agreement": ("harness.cli.annotate.figures:agreement", "Say how far two annotators agree."),
    "import": ("harness.cli.annotate.projects:import_intents", "Take labels from a file of intents, by id."),
    "export": ("harness.cli.annotate.projects:export", "Write the final labels as a corpus or as a file of intents."),
}


@click.command("annotate", cls=Verbs, verbs=VERBS)
def command() -> None:
    """Give utterances their intents: proposals by tri-training, review by groups, agreement. docs/annotation.md"""
