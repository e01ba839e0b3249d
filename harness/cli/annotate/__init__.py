"""`harness understand annotate`: label utterances with intents."""

from __future__ import annotations

from harness.cli import LazyGroup

VERBS = {
    "new": ("harness.cli.annotate.projects:new", "Create a project from utterances and a label set."),
    "propose": (
        "harness.cli.annotate.propose",
        "Train three classifiers on the labelled utterances; propose labels for the rest.",
    ),
    "review": ("harness.cli.annotate.review", "Review proposals in groups and label the rest, in a browser."),
    "status": ("harness.cli.annotate.figures:status", "Show the progress of a project."),
    "report": (
        "harness.cli.annotate.figures:report",
        "Show how utterances were labelled, and the distribution of labels.",
    ),
    "agreement": ("harness.cli.annotate.figures:agreement", "Measure how well annotators agree."),
    "import": ("harness.cli.annotate.projects:import_intents", "Import labels from a file of intents, by id."),
    "export": ("harness.cli.annotate.projects:export", "Write the final labels as a corpus or a file of intents."),
}

command = LazyGroup(
    VERBS,
    name="annotate",
    help="Label utterances with intents: proposals by tri-training, review in groups, agreement.",
)
