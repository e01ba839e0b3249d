"""`harness understanding`: intents and slots, scored and predicted."""

from __future__ import annotations

import click

from harness.cli.verbs import Verbs

VERBS = {
    "score": (
        "harness.cli.understanding.score:score",
        "Score predicted intents and slots, or a session's, against gold.",
    ),
    "merge": ("harness.cli.understanding.score:merge", "Add the counts of scored shards."),
    "distribution": (
        "harness.cli.understanding.corpora:distribution",
        "Count labels by split: files of intents, or a corpus.",
    ),
    "generate": ("harness.cli.understanding.corpora:generate", "Make an annotated corpus from a grammar and a seed."),
    "train": ("harness.cli.understanding.models:train", "Train an understander on a folder of annotated utterances."),
    "predict": ("harness.cli.understanding.models:predict", "Turn texts into intents and slots with a trained model."),
    "bench": (
        "harness.cli.understanding.models:bench",
        "Train and score understanders on a corpus: a row of figures each.",
    ),
    "cascade": ("harness.cli.understanding.cascade", "Say what recognition cost: the reference beside what was heard."),
}


@click.command("understanding", cls=Verbs, verbs=VERBS)
def command() -> None:
    """Score intents and slots; train and use a model of them; say what recognition cost. docs/understanding.md"""
