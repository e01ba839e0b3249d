"""What tri-training leaves for a person: proposals wrong, without consensus, CPU seconds; beside one classifier alone.

    python benchmarks/bench_tritraining.py                          generated, 14 % with two intents
    python benchmarks/bench_tritraining.py --grammar hotel.yaml     of one domain (repeatable)
    python benchmarks/bench_tritraining.py --data FOLDER            your own: ATIS, SNIPS, … as seq.in, seq.out, label
    python benchmarks/bench_tritraining.py --classifier transformer -s epochs=5

Then what a person leaves wrong who labels as many by hand, most doubtful first, beside as many at random.
A person is simulated by the gold labels: strikes what is wrong, and labels that and what has no consensus.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Sequence
from pathlib import Path

from sizes import sized

from harness.annotation.uncertainty import estimated_error, guesses
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
    asked = parser.parse_args()
    utterances = _utterances(asked)
    random.Random(asked.seed).shuffle(utterances)
    train, rest = utterances[: asked.labelled], utterances[asked.labelled :]
    held_out, unlabelled = rest[: asked.held_out], rest[asked.held_out :]
    labels = sorted({label for one in utterances for label in one.intents or ()})
    make = classifier_maker(asked.classifier, [tuple(one.split("=", 1)) for one in asked.settings])
    several = sum(len(one.intents or ()) > 1 for one in utterances) / len(utterances)
    print(f"{len(utterances)} utterances, {len(labels)} labels, {100 * several:.1f} % with two or more intents")
    print(
        f"trained on {len(train)}, held out {len(held_out)}, labelled by machine {len(unlabelled)}; {asked.classifier}"
    )
    print(f"{'':<34}{'wrong':>8}{'without':>9}{'person':>8}{'CPU s':>8}")
    _alone(train, unlabelled, labels, make, asked.seed)
    for name, episodes in (("three, consensus, no episode", 0), ("tri-training, consensus", asked.episodes)):
        found = tri_train(
            train, held_out, unlabelled, make, labels, rule=TriRule(asked.seed, episodes=episodes),
            refusal=lambda intents: "" if intents else "empty",
        )  # fmt: skip
        said = {one.utterance: one.intents for one in found.voted}
        _row(name, unlabelled, said, found.cpu_s)
    unanimous = {one.utterance: one.intents if one.unanimous else None for one in found.voted}
    _row("  only where all three agree", unlabelled, unanimous, found.cpu_s)
    print(f"{'all by hand':<34}{'':>8}{'':>9}{'100.0':>8}{'0.0':>8}")
    by_hand = len(train) + len(held_out) + sum(one.intents is None for one in found.voted)
    left = sum(one.intents is not None and one.intents != gold.intents
               for one, gold in zip(found.voted, unlabelled, strict=True))  # fmt: skip
    _same_effort(utterances, labels, asked, by_hand, left)
    print(f"ended after episode {len(found.kept.episodes) - 1}: {found.kept.ending.value}")


def _same_effort(
    utterances: list[Utterance], labels: list[str], asked: argparse.Namespace, by_hand: int, left: int
) -> None:
    """What a person who labels as many by hand leaves wrong, and how many suffice for what tri-training leaves."""
    each_s = asked.seconds
    label_set = LabelSet("", "", tuple(map(Label, labels)))
    print(f"\nlabelled by hand: {by_hand} utterances, {by_hand * each_s / 3600:.1f} h at {each_s:g} s each")
    print(f"{'':<34}{'wrong':>8}{'estimated':>11}{'by hand for as few wrong':>26}{'hours saved':>13}{'CPU s':>8}")
    print(f"{'tri-training':<34}{left:>8}{'':>11}{by_hand:>26}{0.0:>13.1f}")
    for name, doubt in (("one classifier, doubtful first", True), ("one classifier, at random", False)):
        begun_s = time.process_time()
        at_effort, enough = (-1, 0.0), -1
        done, rest = utterances[: asked.batch], utterances[asked.batch :]
        while at_effort[0] < 0 or enough < 0:
            found = guesses([(one, one.intents or ()) for one in done], rest, label_set, asked.seed)
            wrong = sum(found[one.id].intents != one.intents for one in rest)
            if enough < 0 and wrong <= left:
                enough = len(done)
            if at_effort[0] < 0 and (len(done) >= by_hand or not rest):
                at_effort = wrong, len(rest) * (estimated_error(found) or 0.0)
            if doubt:
                rest = sorted(rest, key=lambda one: (found[one.id].certainty, one.id))
            done, rest = done + rest[: asked.batch], rest[asked.batch :]
        saved = (by_hand - enough) * each_s / 3600
        wrong, expected = at_effort
        cpu_s = time.process_time() - begun_s
        print(f"{name:<34}{wrong:>8}{expected:>11.0f}{enough:>26}{saved:>13.1f}{cpu_s:>8.1f}", flush=True)


def _utterances(asked: argparse.Namespace) -> list[Utterance]:
    if asked.data:
        return [one for one in read_corpus(asked.data).utterances if one.intents]
    paths = [GRAMMARS / name for name in asked.grammar] or sorted(GRAMMARS.glob("*.yaml"))
    return list(generate(load_grammars(paths), asked.seed, {"train": asked.utterances}).utterances)


def _alone(
    train: Sequence[Utterance], unlabelled: Sequence[Utterance], labels: Sequence[str], make: MakeClassifier, seed: int
) -> None:
    """The yardstick: one classifier on all that is labelled; its best label where none exceeds 0.5."""
    begun_s = time.process_time()
    one = make(seed)
    one.fit([each.text for each in train], [each.intents or () for each in train], labels)
    found = one.probabilities([each.text for each in unlabelled])
    cpu_s = time.process_time() - begun_s
    for name, empty in (("one classifier, arg-max below 0.5", False), ("  threshold 0.5 alone", True)):
        sets = sets_of(selected_labels(found, may_be_empty=empty), labels)
        said = {each.id: of or None for each, of in zip(unlabelled, sets, strict=True)}
        _row(name, unlabelled, said, cpu_s)


def _row(name: str, gold: Sequence[Utterance], said: dict[str, tuple[str, ...] | None], cpu_s: float) -> None:
    """Shares: wrong of those labelled; without, and for a person, of all."""
    without = sum(said[one.id] is None for one in gold)
    wrong = sum(said[one.id] is not None and said[one.id] != one.intents for one in gold)
    share = 100 * wrong / max(1, len(gold) - without)
    person = 100 * (wrong + without) / len(gold)
    print(f"{name:<34}{share:>8.1f}{100 * without / len(gold):>9.1f}{person:>8.1f}{cpu_s:>8.1f}", flush=True)


if __name__ == "__main__":
    main()
