"""`harness understanding`: intents and slots, scored and predicted."""

from __future__ import annotations

from harness.cli import Verbs

VERBS = {
    "score": ("harness.cli.understanding.score:score", "Score predictions, or the devices of a session, against gold."),
    "merge": ("harness.cli.understanding.score:merge", "Add the counts of scored shards."),
    "distribution": ("harness.cli.understanding.corpora:distribution", "Count the labels of a corpus by split."),
    "generate": (
        "harness.cli.understanding.corpora:generate",
        "Generate an annotated corpus from a grammar and a seed.",
    ),
    "split": ("harness.cli.understanding.corpora:split", "Split a corpus into parts for training, dev and test."),
    "train": ("harness.cli.understanding.models:train", "Train an understander on a folder of annotated utterances."),
    "predict": ("harness.cli.understanding.models:predict", "Turn texts into intents and slots with a trained model."),
    "bench": ("harness.cli.understanding.models:bench", "Train and score several understanders on a corpus."),
    "cascade": ("harness.cli.understanding.cascade", "Measure how much recognition errors lower understanding."),
}

command = Verbs(
    VERBS,
    name="understanding",
    help="Score intents and slots, train models of them, and measure the effect of recognition errors.",
)
