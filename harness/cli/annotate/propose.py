"""`harness annotate propose`: proposals by tri-training for unlabelled utterances."""

from __future__ import annotations

import secrets
import time
from contextlib import closing
from pathlib import Path

import click

from harness.base.foreign import plain_text
from harness.cli.annotate.projects import open_project, project_argument
from harness.cli.options import seed_option, setting_option
from harness.model.choices import DEFAULT_CLASSIFIER as DEFAULT
from harness.model.choices import MOST_EPISODES, SEED_SHARE
from harness.model.errors import InputError


@click.command("propose")
@project_argument
@click.option("--classifier", default=DEFAULT, show_default=True, help="Plug-in: tfidf, transformer, …")
@setting_option("given", "Setting of the classifier; repeatable.")
@seed_option("Seed of all random draws.", 0, most=2**31)
@click.option(
    "--triads",
    type=click.IntRange(1, 20),
    default=1,
    show_default=True,
    help="Triads to train; the best on the held-out utterances is kept.",
)
@click.option(
    "--sample",
    type=click.FloatRange(0.05, 1),
    default=SEED_SHARE,
    show_default="1000/1240",
    help="Share of the training utterances that each classifier sees.",
)
@click.option(
    "--episodes", type=click.IntRange(0, 100), default=MOST_EPISODES, show_default=True, help="Most episodes."
)
@click.option(
    "--held-out",
    type=click.FloatRange(0.01, 0.5),
    default=0.2,
    show_default=True,
    help="Share of the labelled utterances that is kept out of training.",
)
@click.option("--held-out-split", metavar="SPLIT", help="Keep this split out of training instead.")
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
    """Train three classifiers on the labelled utterances, and propose labels for the rest where two of them agree.

    The proposals are saved as one batch at the end. An interrupted run saves nothing. Review them with `harness
    annotate review`. Background: docs/explanation/tri-training.md

    Exit status: 0 proposed · 2 wrong usage or input, or too few labels · 3 the project cannot be read or written.
    """  # fmt: skip
    from harness.annotation.ledger import State, outcome
    from harness.annotation.proposing import batch, episode_line, material, material_lines, training_lines
    from harness.understanding.models.tritraining import TriRule, classifier_maker, tri_train

    make = classifier_maker(classifier, [_setting(one) for one in given])
    with closing(open_project(project)) as room:
        now = outcome(room.utterances, room.shares, room.ledger).standing
        used = material(
            room.utterances,
            {id_: one.intents for id_, one in now.items() if one.intents is not None},  # also of one of two
            frozenset(id_ for id_, one in now.items() if one.state in (State.OPEN, State.PROPOSED, State.STRUCK)),
            room.label_set,
            seed=seed,
            share=held_out,
            split=held_out_split,
        )
        for line in material_lines(used, classifier):
            click.echo(line)
        found = tri_train(
            used.train,
            used.held_out,
            used.unlabelled,
            make,
            room.label_set.ids,
            rule=TriRule(seed, triads, sample, episodes),
            refusal=room.label_set.refusal,
            tell=lambda one: click.echo(episode_line(one, triads)),
        )
        row = batch(found, used, id_=secrets.token_hex(8), classifier=classifier, wall_s=time.time())
        room.keep([row])
    for line in training_lines(found):
        click.echo(line)
    click.echo(f"next: harness annotate review {plain_text(str(project), 300)}")


def _setting(written: str) -> tuple[str, str]:
    name, equals, value = written.partition("=")
    if not equals or not name.strip():
        raise InputError(f"-s {written}: there is no value", remedy="Write -s name=value")
    return name.strip(), value.strip()
