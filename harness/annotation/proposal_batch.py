"""From a project's labelled utterances to a batch of proposals: the training material, and the batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from harness.annotation.ledger import LabelStatus, seeded_number
from harness.annotation.uncertainty import MIN_SETS, ProjectGuesses
from harness.model.annotation import Intents, LabelProposal, LabelSet, Proposed
from harness.model.choices import DEFAULT_CLASSIFIER, ProposalMethod
from harness.model.errors import InputError
from harness.model.frozen import frozen
from harness.model.numbers import exact, fixed, percent
from harness.model.understanding import Utterance
from harness.understanding.files.corpus_writing import slots_of, tags_of
from harness.understanding.models.crf_understander import SlotField, concept_tags
from harness.understanding.models.tritraining import TriTraining

MIN_HELD_OUT = 5
MIN_LABELLED = 30
"""By default a fifth is held out: six of them, just above MIN_HELD_OUT."""
METHOD = "tri-training"


@frozen
class Material:
    """The utterances of a project, divided for training.

    - train: labelled utterances to train on.
    - held_out: labelled utterances to measure with.
    - unlabelled: utterances that need a proposal.
    - wordless: number of utterances that are left out because they have no words.
    """

    train: tuple[Utterance, ...]
    held_out: tuple[Utterance, ...]
    unlabelled: tuple[Utterance, ...]
    wordless: int


def training_material(
    utterances: Sequence[Utterance],
    final: Mapping[str, Intents],
    open_ids: frozenset[str],
    label_set: LabelSet,
    *,
    seed: int,
    share: float,
    split: str | None = None,
) -> Material:
    """Divides a project into training, held-out and unlabelled utterances.

    - final: id of an utterance → its final labels.
    - open_ids: ids of utterances that need proposals.
    - share: share of the labelled utterances to hold out.
    - split: hold out the labelled utterances of this split instead; None to use `share`.

    An utterance is held out only if each of its labels remains in training. Raises InputError if too few are labelled,
    or none needs a proposal.
    """
    with_words = [utterance for utterance in utterances if utterance.words]
    # Imported labels can break the rules of the label set; such utterances are not used for training.
    labelled = [replace(utterance, intents=final[utterance.id]) for utterance in with_words if utterance.id in final]
    labelled = [utterance for utterance in labelled if not label_set.refusal(utterance.intents or ())]
    unlabelled = tuple(
        replace(utterance, intents=None)
        for utterance in with_words
        if utterance.id in open_ids and utterance.id not in final
    )
    if not unlabelled:
        raise InputError("every utterance is labelled", remedy="Show the progress: harness understand annotate status")
    if len(labelled) < MIN_LABELLED:
        raise InputError(
            f"{len(labelled)} utterances are labelled, but tri-training needs at least {MIN_LABELLED} (the method's"
            " authors labelled 1,551)",
            remedy="Label some utterances first: harness understand annotate review PROJECT, or import labels: "
            "harness understand annotate import",
        )
    sets = {utterance.intents for utterance in labelled}
    if len(sets) < MIN_SETS:
        raise InputError(
            "all labelled utterances have the same labels",
            remedy="Label at least one utterance with other intents first",
        )
    train, held_out = _hold_out(labelled, seed, share, split)
    if len(held_out) < MIN_HELD_OUT:
        problem = f"{len(held_out)} of {len(labelled)} labelled utterances are held out, but {MIN_HELD_OUT} are needed"
        remedy = "Use a larger --held-out, or label more utterances"
        if split is not None:
            remedy = "Choose another --held-out-split, or label more of its utterances"
        raise InputError(problem, remedy=remedy)
    return Material(tuple(train), tuple(held_out), unlabelled, len(utterances) - len(with_words))


def _hold_out(
    labelled: Sequence[Utterance], seed: int, share: float, split: str | None
) -> tuple[list[Utterance], list[Utterance]]:
    """The utterances to train on and those to hold out, see `training_material`; both in the order of the data."""
    count = len(labelled) if split is not None else round(share * len(labelled))
    remaining_counts = Counter(label for utterance in labelled for label in utterance.intents or ())
    held_out: set[str] = set()
    for utterance in sorted(labelled, key=lambda utterance: seeded_number(seed, "held-out", utterance.id)):
        if len(held_out) == count:
            break
        if split is not None and ("split", split) not in utterance.groups:
            continue
        if all(remaining_counts[label] > 1 for label in utterance.intents or ()):
            remaining_counts.subtract(utterance.intents or ())
            held_out.add(utterance.id)
    train = [utterance for utterance in labelled if utterance.id not in held_out]
    return train, [utterance for utterance in labelled if utterance.id in held_out]


def vote_batch(training: TriTraining, material: Material, *, id_: str, classifier: str, wall_s: float) -> Proposed:
    """The votes of tri-training as a batch, with the least certain of each kind first.

    The facts of the batch describe the training; reports show them.

    - id_: id of the row.
    - wall_s: seconds since 1970.
    """
    ordered = sorted(training.voted, key=lambda vote: (vote.certainty, vote.utterance))
    right = training.figures.exact
    triad = training.best
    facts = {
        "classifier": classifier,
        "seed": str(training.rule.seed),
        "triads": str(training.rule.triads),
        "kept triad": str(triad.number + 1),
        "episodes": str(len(triad.episodes) - 1),
        "ending": triad.ending.value,
        "trained on": str(len(material.train)),
        "samples": " ".join(map(str, triad.samples)),
        "held out": str(len(material.held_out)),
        "held out, exactly right": f"{right.count} of {right.total}",
        "threshold": exact(training.rule.threshold),
        "refused by the label set": str(sum(bool(vote.refused) for vote in training.voted)),
        "cpu_s": fixed(training.cpu_s, 1),
    }
    return Proposed(
        id_,
        f"{METHOD}:{classifier}",
        tuple(LabelProposal(vote.utterance, vote.intents, vote.votes) for vote in ordered),
        wall_s,
        tuple(facts.items()),
    )


def guess_batch(
    project_guesses: ProjectGuesses, label_set: LabelSet, seed: int, *, id_: str, wall_s: float
) -> Proposed:
    """The guesses of one classifier as a batch, with the least certain first. id_ and wall_s: as for `vote_batch`.

    A guess that the rules of the label set forbid becomes a proposal without labels.
    """
    ordered = sorted(project_guesses.guesses.items(), key=lambda entry: (entry[1].certainty, entry[0]))
    facts = {
        "classifier": DEFAULT_CLASSIFIER,
        "seed": str(seed),
        "trained on": str(project_guesses.learned_count),
        "estimated error": percent(project_guesses.error, 2),
    }
    proposals = tuple(
        LabelProposal(utterance, None if label_set.refusal(guess.intents) else guess.intents, (guess.intents,))
        for utterance, guess in ordered
    )
    return Proposed(id_, f"{ProposalMethod.CLASSIFIER}:{DEFAULT_CLASSIFIER}", proposals, wall_s, tuple(facts.items()))


def with_slots(
    proposed: Proposed, utterances: Sequence[Utterance], statuses: Mapping[str, LabelStatus]
) -> tuple[Proposed, int]:
    """The batch with slots for its utterances, and the number of utterances from which the slot model has learnt.

    The model is the random field of the understander `crf`, with its default settings. It learns from the slots in
    `statuses`, the status of each utterance by id. Without any slots there, the batch stays as it is, and the number
    is 0. PluginError without python-crfsuite.
    """
    examples = []
    for utterance in utterances:
        status = statuses[utterance.id]
        if status.slots is not None and status.intents is not None and utterance.words:
            tags = tags_of(replace(utterance, tags=None, slots=status.slots))
            examples.append(replace(utterance, intents=status.intents, tags=tags))
    if not concept_tags(examples):
        return proposed, 0
    field = SlotField.fit(examples)
    by_id = {utterance.id: utterance for utterance in utterances}
    proposals = []
    for proposal in proposed.proposals:
        utterance = by_id[proposal.utterance]
        slots = slots_of(replace(utterance, tags=field.tags(utterance.words, proposal.intents or ())))
        proposals.append(replace(proposal, slots=tuple(replace(slot, value=None) for slot in slots)))
    facts = (*proposed.facts, ("slots learnt from", str(len(examples))))
    return replace(proposed, proposals=tuple(proposals), facts=facts), len(examples)
