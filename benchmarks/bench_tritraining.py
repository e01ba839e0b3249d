"""What tri-training leaves to a person: wrong proposals, and utterances without consensus; beside one classifier alone.

    python benchmarks/bench_tritraining.py                          generated, 14 % with two intents
    python benchmarks/bench_tritraining.py --grammar hotel.yaml     of one domain (repeatable)
    python benchmarks/bench_tritraining.py --data FOLDER            your own: ATIS, SNIPS, … as seq.in, seq.out, label
    python benchmarks/bench_tritraining.py --classifier transformer -s epochs=5

Then what remains wrong if a person labels as many utterances by hand, the most doubtful first, or at random.
The person is simulated by the gold labels: he strikes what is wrong, and labels that and what has no consensus.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from sizes import sized

from harness.annotation.uncertainty import Guess, estimated_error, guess_labels
from harness.model.annotation import Label, LabelSet
from harness.model.understanding import Utterance
from harness.understanding.files.corpus_file import read_corpus
from harness.understanding.files.grammar_file import load_grammars
from harness.understanding.grammar import generate
from harness.understanding.models.tritraining import MakeClassifier, TriRule, classifier_maker, tri_train
from harness.understanding.models.votes import selected_labels, sets_of

GRAMMARS = Path(__file__).parents[1] / "scenarios" / "understanding"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--grammar", action="append", default=[])
    parser.add_argument("--utterances", type=int, default=sized(6000, 200), help="generated ones")
    parser.add_argument("--labelled", type=int, default=sized(1240, 60))
    parser.add_argument("--held-out", type=int, default=sized(311, 20))
    parser.add_argument("--classifier", default="tfidf")
    parser.add_argument("-s", dest="settings", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--episodes", type=int, default=sized(30, 1))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--batch", type=int, default=50, help="labels between two fits, for doubtful first")
    parser.add_argument("--seconds", type=float, default=10.0, help="of a person for one label by hand")
    options = parser.parse_args()
    utterances = _utterances(options)
    random.Random(options.seed).shuffle(utterances)
    train, rest = utterances[: options.labelled], utterances[options.labelled :]
    held_out, unlabelled = rest[: options.held_out], rest[options.held_out :]
    labels = sorted({label for utterance in utterances for label in utterance.intents or ()})
    make = classifier_maker(options.classifier, [tuple(setting.split("=", 1)) for setting in options.settings])
    several = sum(len(utterance.intents or ()) > 1 for utterance in utterances) / len(utterances)
    print(f"{len(utterances)} utterances, {len(labels)} labels, {100 * several:.1f} % with two or more intents")
    counts = f"trained on {len(train)}, held out {len(held_out)}, labelled by machine {len(unlabelled)}"
    print(f"{counts}; {options.classifier}")
    print(f"{'':<34}{'wrong':>8}{'without':>9}{'person':>8}{'CPU s':>8}")
    _print_one_classifier(train, unlabelled, labels, make, options.seed)
    for name, episodes in (("three, consensus, no episode", 0), ("tri-training, consensus", options.episodes)):
        training = tri_train(
            train, held_out, unlabelled, make, labels, rule=TriRule(options.seed, episodes=episodes),
            refusal=lambda intents: "" if intents else "empty",
        )  # fmt: skip
        consensus = {vote.utterance: vote.intents for vote in training.voted}
        _print_row(name, unlabelled, consensus, training.cpu_s)
    unanimous = {vote.utterance: vote.intents if vote.unanimous else None for vote in training.voted}
    _print_row("  only where all three agree", unlabelled, unanimous, training.cpu_s)
    print(f"{'all by hand':<34}{'':>8}{'':>9}{'100.0':>8}{'0.0':>8}")
    by_hand = len(train) + len(held_out) + sum(vote.intents is None for vote in training.voted)
    left_wrong = sum(vote.intents is not None and vote.intents != gold.intents
                     for vote, gold in zip(training.voted, unlabelled, strict=True))  # fmt: skip
    _print_same_effort(utterances, labels, options, by_hand, left_wrong)
    print(f"ended after episode {len(training.best.episodes) - 1}: {training.best.ending.value}")


def _print_same_effort(
    utterances: list[Utterance], labels: list[str], options: argparse.Namespace, by_hand: int, left_wrong: int
) -> None:
    """Prints what a person leaves wrong who labels as many by hand as with tri-training (`by_hand`).

    Beside it: how many he must label by hand to leave as few wrong as tri-training (`left_wrong`).
    """
    print(
        f"\nlabelled by hand: {by_hand} utterances, {by_hand * options.seconds / 3600:.1f} h at "
        f"{options.seconds:g} s each"
    )
    print(f"{'':<34}{'wrong':>8}{'estimated':>11}{'by hand for as few wrong':>26}{'hours saved':>13}{'CPU s':>8}")
    print(f"{'tri-training':<34}{left_wrong:>8}{'':>11}{by_hand:>26}{0.0:>13.1f}")
    for name, doubtful_first in (("one classifier, doubtful first", True), ("one classifier, at random", False)):
        began_s = time.process_time()
        wrong = expected_wrong = sufficient = None
        for labelled, guess_by_id, rest in _fits(utterances, labels, options, doubtful_first=doubtful_first):
            wrong_guesses = sum(guess_by_id[utterance.id].intents != utterance.intents for utterance in rest)
            if sufficient is None and wrong_guesses <= left_wrong:
                sufficient = labelled
            if wrong is None and (labelled >= by_hand or not rest):
                wrong, expected_wrong = wrong_guesses, len(rest) * (estimated_error(guess_by_id) or 0.0)
            if sufficient is not None and wrong is not None:
                break
        saved_h = (by_hand - sufficient) * options.seconds / 3600
        cpu_s = time.process_time() - began_s
        print(f"{name:<34}{wrong:>8}{expected_wrong:>11.0f}{sufficient:>26}{saved_h:>13.1f}{cpu_s:>8.1f}", flush=True)


def _fits(
    utterances: list[Utterance], labels: list[str], options: argparse.Namespace, *, doubtful_first: bool
) -> Iterator[tuple[int, dict[str, Guess], list[Utterance]]]:
    """Labels batches by hand, and fits a classifier after each, until all are labelled.

    Gives the number of labelled utterances, the guesses of the fit, and the utterances without a label.
    """
    label_set = LabelSet("", "", tuple(map(Label, labels)))
    labelled, rest = utterances[: options.batch], utterances[options.batch :]
    while True:
        learned = [(utterance, utterance.intents or ()) for utterance in labelled]
        guess_by_id = guess_labels(learned, rest, label_set, options.seed)
        yield len(labelled), guess_by_id, rest
        if not rest:
            return
        if doubtful_first:
            rest = sorted(rest, key=lambda utterance: (guess_by_id[utterance.id].certainty, utterance.id))
        labelled, rest = labelled + rest[: options.batch], rest[options.batch :]


def _utterances(options: argparse.Namespace) -> list[Utterance]:
    if options.data:
        return [utterance for utterance in read_corpus(options.data).utterances if utterance.intents]
    paths = [GRAMMARS / name for name in options.grammar] or sorted(GRAMMARS.glob("*.yaml"))
    return list(generate(load_grammars(paths), options.seed, {"train": options.utterances}).utterances)


def _print_one_classifier(
    train: Sequence[Utterance], unlabelled: Sequence[Utterance], labels: Sequence[str], make: MakeClassifier, seed: int
) -> None:
    """Prints the yardstick: one classifier, trained on all that is labelled.

    First with its best label where none exceeds 0.5, then without a label there.
    """
    began_s = time.process_time()
    classifier = make(seed)
    classifier.fit([utterance.text for utterance in train], [utterance.intents or () for utterance in train], labels)
    probabilities = classifier.probabilities([utterance.text for utterance in unlabelled])
    cpu_s = time.process_time() - began_s
    for name, may_be_empty in (("one classifier, arg-max below 0.5", False), ("  threshold 0.5 alone", True)):
        intents = sets_of(selected_labels(probabilities, may_be_empty=may_be_empty), labels)
        proposals = {utterance.id: chosen or None for utterance, chosen in zip(unlabelled, intents, strict=True)}
        _print_row(name, unlabelled, proposals, cpu_s)


def _print_row(
    name: str, gold: Sequence[Utterance], proposals: dict[str, tuple[str, ...] | None], cpu_s: float
) -> None:
    """Prints per cent: wrong of those with a proposal; of all, those without one, and those for a person to label."""
    without = sum(proposals[utterance.id] is None for utterance in gold)
    wrong = sum(proposals[utterance.id] not in (None, utterance.intents) for utterance in gold)
    wrong_share = 100 * wrong / max(1, len(gold) - without)
    for_person = 100 * (wrong + without) / len(gold)
    print(f"{name:<34}{wrong_share:>8.1f}{100 * without / len(gold):>9.1f}{for_person:>8.1f}{cpu_s:>8.1f}", flush=True)


if __name__ == "__main__":
    main()
