"""`harness annotate propose`: proposals by tri-training for what nobody has labelled."""

from __future__ import annotations

import secrets
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.annotation.ledger import State, outcome
from harness.base.cells import counted, shown
from harness.cli.annotate.project_options import open_project, project_argument
from harness.model.choices import DEFAULT_CLASSIFIER as DEFAULT
from harness.model.choices import MOST_EPISODES, SEED_SHARE, Ending
from harness.model.errors import InputError
from harness.understanding.reports.score_text import per_cent

if TYPE_CHECKING:
    from harness.annotation.proposing import Material
    from harness.understanding.figures import Averages
    from harness.understanding.models.tritraining import Episode, TriTraining

OPEN = (State.OPEN, State.PROPOSED, State.STRUCK)
ENDINGS = {
    Ending.SETTLED: "as good as nothing changed any more",
    Ending.CIRCLING: "what they teach each other came round to that of an earlier episode",
    Ending.MOST: "the most episodes",
}


@click.command("propose")
@project_argument
@click.option("--classifier", default=DEFAULT, show_default=True, help="A plug-in: tfidf, transformer, …")
@click.option("-s", "--setting", "given", multiple=True, metavar="NAME=VALUE", help="Of the classifier; repeatable.")
@click.option("--seed", type=click.IntRange(0, 2**31), default=0, show_default=True, help="Of all that is drawn.")
@click.option(
    "--triads",
    type=click.IntRange(1, 20),
    default=1,
    show_default=True,
    help="Try so many, and keep the one that is best on the held-out utterances.",
)
@click.option(
    "--sample",
    type=click.FloatRange(0.05, 1),
    default=SEED_SHARE,
    show_default="1000/1240",
    help="Share of the training utterances that each classifier is shown.",
)
@click.option("--episodes", type=click.IntRange(0, 100), default=MOST_EPISODES, show_default=True, help="At most.")
@click.option(
    "--held-out",
    type=click.FloatRange(0.01, 0.5),
    default=0.2,
    show_default=True,
    help="Share of the labelled utterances that are kept from training.",
)
@click.option("--held-out-split", metavar="SPLIT", help="Keep the labelled utterances of this split from training.")
def command(
    project: Path,
    classifier: str,
    given: tuple[str, ...],
    seed: int,
    triads: int,
    sample: float,
    episodes: int,
    held_out: float,
    held_out_split: str | None,
) -> None:
    """Train three classifiers on what is labelled, and propose labels for the rest where two of them agree.

    Proposals are kept as one batch when all is done; interrupted before, nothing is kept. Review them with `harness
    annotate review`. docs/tri-training.md

    Exit status: 0 proposed · 2 wrong usage or input, too little is labelled · 3 the project cannot be read or written.
    """  # fmt: skip
    from harness.annotation.proposing import batch, material
    from harness.understanding.models.tritraining import TriRule, classifier_maker, tri_train

    make = classifier_maker(classifier, [_setting(one) for one in given])
    room = open_project(project)
    try:
        now = outcome(room.utterances, room.shares, room.ledger)
        used = material(
            room.utterances,
            {id_: one.intents for id_, one in now.standing.items() if one.intents is not None},  # also of one of two
            frozenset(id_ for id_, one in now.standing.items() if one.state in OPEN),
            room.label_set,
            seed=seed,
            share=held_out,
            split=held_out_split,
        )
        for line in _before(used, classifier):
            click.echo(line)
        found = tri_train(
            used.train,
            used.held_out,
            used.unlabelled,
            make,
            room.label_set.ids,
            rule=TriRule(seed, triads, sample, episodes),
            refusal=room.label_set.refusal,
            tell=lambda one: click.echo(_episode(one, triads)),
        )
        row = batch(found, used, id_=secrets.token_hex(8), classifier=classifier, wall_s=time.time())
        room.keep([row])
    finally:
        room.close()
    for line in _after(found):
        click.echo(line)
    click.echo(f"next: harness annotate review {shown(str(project), 300)}")


def _setting(written: str) -> tuple[str, str]:
    name, equals, value = written.partition("=")
    if not equals or not name.strip():
        raise InputError(f"-s {written!r} sets nothing", remedy="Write -s name=value")
    return name.strip(), value.strip()


def _before(used: Material, classifier: str) -> Iterator[str]:
    yield (
        f"{shown(classifier, 60)}: trained on {len(used.train)}, held out {len(used.held_out)}, "
        f"{counted(len(used.unlabelled), 'utterance')} to propose for"
    )
    if used.wordless:
        yield f"{counted(used.wordless, 'utterance')} without words left out"


def _episode(one: Episode, triads: int) -> str:
    triad = f"triad {one.triad + 1}, " if triads > 1 else ""
    exact = f"{one.exact.count} of {one.exact.total} held-out right"
    if not one.number:
        return f"{triad}on the samples alone: {exact}, {one.cpu_s:.1f} CPU s"
    taught = " + ".join(map(str, one.taught))
    return f"{triad}episode {one.number}: taught {taught} texts, {one.changed} changed, {exact}, {one.cpu_s:.1f} CPU s"


def _after(found: TriTraining) -> Iterator[str]:
    figures = found.figures
    if found.rule.triads > 1:
        yield f"kept triad {found.kept.number + 1}, the best on the held-out utterances"
    yield f"ended: {ENDINGS[found.kept.ending]}"
    exact = figures.exact
    yield (
        f"held out: EMR {per_cent(exact.count / exact.total)} ({exact.count} of {exact.total}, "
        f"{found.held_out_without_consensus} without consensus, counted as wrong)"
    )
    yield f"  averaged over utterances: {_averages(figures.samples)}"
    yield f"  averaged over {len(figures.labels)} declared labels: {_averages(figures.macro)}"
    never = [name for name in figures.never_predicted if name not in found.absent]
    if never:
        yield f"  never given there: {', '.join(shown(one, 60) for one in never)}"
    if found.absent:
        yield f"no labelled utterance has, so never proposed: {', '.join(shown(one, 60) for one in found.absent)}"
    if found.known_texts:
        yield f"{found.known_texts} of those proposed for have a text that a labelled utterance has, too"
    if found.shared_texts:
        yield f"{found.shared_texts} of the held-out have a text that a training utterance has: figures flatter"
    labelled = [one for one in found.voted if one.intents is not None]
    number = len(found.voted)
    yield (
        f"proposed for {len(labelled)} of {number} by consensus ({per_cent(len(labelled) / number)}), "
        f"all three agree on {sum(one.unanimous for one in labelled)}; without consensus {number - len(labelled)}"
    )
    for why, many in Counter(one.refused for one in found.voted if one.refused).most_common(3):
        yield f"  of these {many} agree on what the label set refuses: {shown(why, 120)}"
    yield f"{found.cpu_s:.1f} CPU s"


def _averages(one: Averages) -> str:
    return f"precision {per_cent(one.precision)}, recall {per_cent(one.recall)}, F1 {per_cent(one.f1)}"
