"""`harness understand annotate propose`: proposals by tri-training for unlabelled utterances."""

from __future__ import annotations

import secrets
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from harness.base.foreign import plain_text
from harness.cli.annotate.projects import open_project, project_argument
from harness.cli.options import option, parse_settings, seed_option, setting_option, verb
from harness.model.choices import DEFAULT_CLASSIFIER as DEFAULT
from harness.model.choices import MAX_EPISODES, SEED_SHARE, ProposalMethod
from harness.model.errors import InputError
from harness.model.numbers import counted, percent

if TYPE_CHECKING:
    from harness.annotation.project import AnnotationRoom
    from harness.model.annotation import Proposed

_OF_TRI_TRAINING = ("classifier", "settings", "triads", "sample", "episodes", "held_out", "held_out_split")


@verb("propose")
def command(
    *,
    project: Path = project_argument,
    classifier: str = option("Classifier plug-in: tfidf, transformer, …", default=DEFAULT),
    settings: tuple[str, ...] = setting_option("Classifier setting; repeatable."),
    seed: int = seed_option("Seed for all random draws.", 0, max_seed=2**31),
    method: ProposalMethod = option(
        "tri-training, or classifier: a single classifier learns from all labels and labels the rest.",
        default=ProposalMethod.TRI_TRAINING,
    ),
    triads: int = option(
        "Number of triads to train; the one that does best on the held-out utterances is kept.",
        within=(1, 20),
        default=1,
    ),
    sample: float = option(
        "Share of the training utterances given to each classifier.",
        within=(0.05, 1),
        default=SEED_SHARE,
        show_default="1000/1240",
    ),
    episodes: int = option("Maximum number of training episodes.", within=(0, 100), default=MAX_EPISODES),
    held_out: float = option(
        "Share of the labelled utterances to hold out of training.", within=(0.01, 0.5), default=0.2
    ),
    held_out_split: str | None = option(
        "Hold this split out of training, instead of a share (--held-out).", metavar="SPLIT"
    ),
) -> None:
    """Train three classifiers on the labelled utterances, and propose labels for the rest where two of them agree.

    If the label set has concepts, slots are proposed too. The proposals are saved as one batch at the end; an
    interrupted run saves nothing. Review them with `harness understand annotate review`. Background:
    docs/explanation/tri-training.md

    Exit status: 0 proposed · 2 wrong usage or input, or too few labels · 3 the project cannot be read or written.
    """  # fmt: skip
    from harness.annotation.ledger import project_outcome
    from harness.annotation.proposal_batch import training_material, vote_batch
    from harness.annotation.report_text import episode_line, material_lines, training_lines
    from harness.annotation.uncertainty import UNLABELLED
    from harness.understanding.models.tritraining import TriRule, classifier_maker, tri_train

    if method is ProposalMethod.CLASSIFIER:
        _propose_with_one(project, seed)
        return
    if held_out_split is not None and _is_given("held_out"):
        raise InputError(
            "--held-out cannot be combined with --held-out-split", remedy="Use only one of the two options"
        )
    make_classifier = classifier_maker(classifier, parse_settings(settings))
    with closing(open_project(project)) as room:
        statuses = project_outcome(room.utterances, room.assignment, room.ledger).statuses
        # Labels count for training even if the second annotator's are still missing.
        intents_by_id = {id_: status.intents for id_, status in statuses.items() if status.intents is not None}
        open_ids = frozenset(id_ for id_, status in statuses.items() if status.state in UNLABELLED)
        material = training_material(
            room.utterances, intents_by_id, open_ids, room.label_set, seed=seed, share=held_out, split=held_out_split
        )
        for line in material_lines(material, classifier):
            click.echo(line)
        training = tri_train(
            material.train,
            material.held_out,
            material.unlabelled,
            make_classifier,
            room.label_set.ids,
            rule=TriRule(seed, triads, sample, episodes),
            refusal=room.label_set.refusal,
            tell=lambda episode: click.echo(episode_line(episode, triads)),
        )
        row = vote_batch(training, material, id_=secrets.token_hex(8), classifier=classifier, wall_s=time.time())
        _save_batch(room, row)
    for line in training_lines(training):
        click.echo(line)
    click.echo(f"next: harness understand annotate review {plain_text(str(project), 300)}")


def _is_given(name: str) -> bool:
    """Whether the command line has this option of `propose`."""
    return click.get_current_context().get_parameter_source(name) is not ParameterSource.DEFAULT


def _propose_with_one(project: Path, seed: int) -> None:
    """Saves proposals of one classifier that learns from all labels.

    Raises InputError for options of tri-training, which do not apply, and for too few labels.
    """
    from harness.annotation.proposal_batch import guess_batch
    from harness.annotation.uncertainty import guess_project

    for name in _OF_TRI_TRAINING:
        if _is_given(name):
            option_name = "-s" if name == "settings" else f"--{name.replace('_', '-')}"
            problem = f"{option_name} applies to tri-training only"
            raise InputError(problem, remedy=f"Remove {option_name}, or choose --method tri-training")
    with closing(open_project(project)) as room:
        project_guesses = guess_project(room.utterances, room.assignment, room.ledger, room.label_set, seed)
        if not project_guesses.guesses:
            remedy = "Label some utterances first: harness understand annotate review PROJECT"
            raise InputError("there is nothing to propose, or too few labels to learn from", remedy=remedy)
        _save_batch(
            room, guess_batch(project_guesses, room.label_set, seed, id_=secrets.token_hex(8), wall_s=time.time())
        )
        target_error = room.project.target_error
    learned_text = counted(project_guesses.learned_count, "utterance")
    click.echo(f"learnt from {learned_text}, proposed labels for {len(project_guesses.guesses)}")
    error_text, target_text = percent(project_guesses.error, 2), percent(target_error, 2)
    click.echo(f"estimated error of the proposals: {error_text} (target {target_text})")
    shown = plain_text(str(project), 300)
    click.echo(
        f"next: harness understand annotate review {shown}, "
        f"or harness understand annotate export {shown} --proposed --output FILE"
    )


def _save_batch(room: AnnotationRoom, row: Proposed) -> None:
    """Saves a batch of proposals. Adds slots first, if the label set has concepts, and prints what they learnt from."""
    from harness.annotation.ledger import project_outcome
    from harness.annotation.proposal_batch import with_slots

    if room.label_set.concepts:
        statuses = project_outcome(room.utterances, room.assignment, room.ledger).statuses
        row, learnt_count = with_slots(row, room.utterances, statuses)
        learnt_text = f"slots learnt from {counted(learnt_count, 'utterance')}"
        click.echo(learnt_text if learnt_count else "no slots to learn from yet")
    room.write([row])
