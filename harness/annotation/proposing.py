"""From a project's labelled utterances to a batch of proposals: what is trained on, held out, and said of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from harness.annotation.ledger import drawn
from harness.base.foreign import counted, shown
from harness.model.annotation import Intents, LabelProposal, LabelSet, Proposed
from harness.model.choices import EpisodesEnding
from harness.model.errors import InputError
from harness.model.understanding import Utterance
from harness.statistics.text import percent
from harness.understanding.figures import Averages
from harness.understanding.models.tritraining import Episode, TriTraining

LEAST_LABELLED = 30
LEAST_HELD_OUT = 5
LEAST_SETS = 2
BY = "tri-training"


@dataclass(frozen=True, slots=True)
class Material:
    """Labelled utterances to train on, those held out, and those that nobody has labelled. wordless: left out."""

    train: tuple[Utterance, ...]
    held_out: tuple[Utterance, ...]
    unlabelled: tuple[Utterance, ...]
    wordless: int


def material(
    utterances: Sequence[Utterance],
    final: Mapping[str, Intents],
    open_: frozenset[str],
    label_set: LabelSet,
    *,
    seed: int,
    share: float,
    split: str | None = None,
) -> Material:
    """Divides a project. final: utterance → its final labels. open_: ids to be proposed for. share: of the labelled,
    to be held out; split: hold out the labelled utterances of that split instead.

    An utterance is held out only if every label it has stays with one to train on. InputError, with what is needed,
    when too few are labelled or nothing is left to propose for.
    """
    texts = [one for one in utterances if one.words]
    # Labels of a project can be other than what its set allows, if they were imported; nothing is learnt from those.
    labelled = [replace(one, intents=final[one.id]) for one in texts if one.id in final]
    labelled = [one for one in labelled if not label_set.refusal(one.intents or ())]
    unlabelled = tuple(replace(one, intents=None) for one in texts if one.id in open_ and one.id not in final)
    if not unlabelled:
        raise InputError("nothing is left to propose labels for", remedy="See how far it is: harness annotate status")
    if len(labelled) < LEAST_LABELLED:
        raise InputError(
            f"{len(labelled)} utterances are labelled, and tri-training wants at least {LEAST_LABELLED} (the method's"
            " authors labelled 1,551)",
            remedy="Label some first: harness annotate review PROJECT, or take labels: harness annotate import",
        )
    sets = {one.intents for one in labelled}
    if len(sets) < LEAST_SETS:
        raise InputError(
            "all labelled utterances have the same labels, from which nothing can be told apart",
            remedy="Label utterances with other labels first",
        )
    train, held_out = _divided(labelled, seed, share, split)
    if len(held_out) < LEAST_HELD_OUT:
        what = (
            f"{len(held_out)} of {len(labelled)} labelled utterances are held out, and at least {LEAST_HELD_OUT} wanted"
        )
        raise InputError(what, remedy="Hold out a larger share with --held-out, or label more")
    return Material(tuple(train), tuple(held_out), unlabelled, len(utterances) - len(texts))


def _divided(
    labelled: Sequence[Utterance], seed: int, share: float, split: str | None
) -> tuple[list[Utterance], list[Utterance]]:
    wanted = len(labelled) if split is not None else round(share * len(labelled))
    left = Counter(label for one in labelled for label in one.intents or ())
    chosen: set[str] = set()
    for one in sorted(labelled, key=lambda one: drawn(seed, "held-out", one.id)):
        if len(chosen) == wanted:
            break
        if split is not None and ("split", split) not in one.groups:
            continue
        if all(left[label] > 1 for label in one.intents or ()):
            left.subtract(one.intents or ())
            chosen.add(one.id)
    return [one for one in labelled if one.id not in chosen], [one for one in labelled if one.id in chosen]


def batch(found: TriTraining, used: Material, *, id_: str, classifier: str, wall_s: float) -> Proposed:
    """The votes as rows; the least certain of each kind first. Its facts are what a report says of the training."""
    ordered = sorted(found.voted, key=lambda one: (one.certainty, one.utterance))
    exact = found.figures.exact
    kept = found.kept
    facts = {
        "classifier": classifier,
        "seed": str(found.rule.seed),
        "triads": str(found.rule.triads),
        "kept triad": str(kept.number + 1),
        "episodes": str(len(kept.episodes) - 1),
        "ending": kept.ending.value,
        "trained on": str(len(used.train)),
        "samples": " ".join(map(str, kept.samples)),
        "held out": str(len(used.held_out)),
        "held out, exactly right": f"{exact.count} of {exact.total}",
        "threshold": f"{found.rule.threshold:g}",
        "refused by the label set": str(sum(bool(one.refused) for one in found.voted)),
        "cpu_s": f"{found.cpu_s:.1f}",
    }
    return Proposed(
        id_,
        f"{BY}:{classifier}",
        tuple(LabelProposal(one.utterance, one.intents, one.votes) for one in ordered),
        wall_s,
        tuple(facts.items()),
    )


ENDINGS = {
    EpisodesEnding.SETTLED: "as good as nothing changed any more",
    EpisodesEnding.CIRCLING: "what they teach each other came round to that of an earlier episode",
    EpisodesEnding.MOST: "the most episodes",
}


def material_lines(used: Material, classifier: str) -> Iterator[str]:
    """What is trained on."""
    yield (
        f"{shown(classifier, 60)}: trained on {len(used.train)}, held out {len(used.held_out)}, "
        f"{counted(len(used.unlabelled), 'utterance')} to propose for"
    )
    if used.wordless:
        yield f"{counted(used.wordless, 'utterance')} without words left out"


def episode_line(one: Episode, triads: int) -> str:
    """What an episode came to. triads: how many are tried."""
    triad = f"triad {one.triad + 1}, " if triads > 1 else ""
    exact = f"{one.exact.count} of {one.exact.total} held-out right"
    if not one.number:
        return f"{triad}on the samples alone: {exact}, {one.cpu_s:.1f} CPU s"
    taught = " + ".join(map(str, one.taught))
    return f"{triad}episode {one.number}: taught {taught} texts, {one.changed} changed, {exact}, {one.cpu_s:.1f} CPU s"


def training_lines(found: TriTraining) -> Iterator[str]:
    """What came of all of it."""
    figures = found.figures
    if found.rule.triads > 1:
        yield f"kept triad {found.kept.number + 1}, the best on the held-out utterances"
    yield f"ended: {ENDINGS[found.kept.ending]}"
    exact = figures.exact
    yield (
        f"held out: EMR {percent(exact.value, 2)} ({exact.count} of {exact.total}, "
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
        f"proposed for {len(labelled)} of {number} by consensus ({percent(len(labelled) / number, 2)}), "
        f"all three agree on {sum(one.unanimous for one in labelled)}; without consensus {number - len(labelled)}"
    )
    for why, many in Counter(one.refused for one in found.voted if one.refused).most_common(3):
        yield f"  of these {many} agree on what the label set refuses: {shown(why, 120)}"
    yield f"{found.cpu_s:.1f} CPU s"


def _averages(one: Averages) -> str:
    return f"precision {percent(one.precision, 2)}, recall {percent(one.recall, 2)}, F1 {percent(one.f1, 2)}"
