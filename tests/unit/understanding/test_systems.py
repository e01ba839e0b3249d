"""Systems side by side, against figures that are counted here once more, in another way."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean

import pytest

from harness.model.choices import MarkScope
from harness.model.errors import InputError
from harness.model.transcript import Normalisation
from harness.model.understanding import Corpus, Slot, SoundCost, Utterance
from harness.transcripts.words import WordRules
from harness.understanding.comparison import Metric
from harness.understanding.counts import Rule, ValueRule
from harness.understanding.reports.systems import lines, page, systems_json
from harness.understanding.systems import (
    ComparedSystem,
    ComparedSystems,
    LostStage,
    ModelCost,
    SystemKind,
    compare_systems,
)
from tests.known import known

PLAIN = WordRules(Normalisation.PLAIN, marks=MarkScope.NONE)
RULE = Rule(values=ValueRule.PLAIN, spoken=True)
CITIES = ("nice", "brest", "new haven")


def gold_of(number: int, talkers: int) -> Corpus:
    """Utterances such as `book nice`, by talkers in turn."""
    utterances = []
    for n in range(number):
        city = CITIES[n % len(CITIES)]
        words = ("book", *city.split())
        tags = ("O", "B-city", *["I-city"] * (len(words) - 2))
        groups = (("voice", f"v{n % talkers}"),)
        utterances.append(Utterance(f"u{n}", words, ("book",), tags, groups=groups))
    return Corpus("gold", tuple(utterances))


def answer(
    id_: str, intent: str = "book", city: str | None = "nice", text: str = "", cost: SoundCost | None = None
) -> Utterance:
    slots = () if city is None else (Slot("city", city),)
    return Utterance(id_, tuple(text.split()), (intent,), slots=slots, cost=cost)


def random_answers(gold: Corpus, seed: int) -> Corpus:
    """Some right answers, and some with another intent, another city or none."""
    draw = random.Random(seed)
    utterances = []
    for utterance in gold.utterances:
        city = " ".join(utterance.words[1:])
        intent = draw.choice(["book", "book", "book", "cancel"])
        utterances.append(answer(utterance.id, intent, draw.choice([city, city, city, "brest", None])))
    return Corpus(f"system {seed}", tuple(utterances))


def compared(gold: Corpus, *systems: ComparedSystem, **options: object) -> ComparedSystems:
    return compare_systems(gold, systems, RULE, PLAIN, draws=200, **options)  # type: ignore[arg-type]


def counted_here(gold: Corpus, answers: Corpus) -> dict[Metric, float]:
    """Each metric of corpora with one intent and at most one slot, without any of the code that is tested."""
    pairs = list(zip(gold.utterances, answers.utterances, strict=True))
    errors, valued_errors, right, valued_right = 0, 0, 0, 0
    hits = predicted = 0
    for utterance, guess in pairs:
        city = " ".join(utterance.words[1:])
        slot = guess.slots[0].value if guess.slots else None
        hits += slot is not None
        predicted += slot is not None
        errors += slot is None
        valued_errors += slot != city
        intent_right = guess.intents == ("book",)
        right += intent_right and slot is not None
        valued_right += intent_right and slot == city
    number = len(pairs)
    exact = sum(guess.intents == ("book",) for _, guess in pairs) / number
    return {
        Metric.ACCURACY: exact,
        Metric.EMR: exact,
        Metric.F1MH: 2 * hits / (number + predicted),
        Metric.CER: errors / number,
        Metric.VALUED_CER: valued_errors / number,
        Metric.SFA: right / number,
        Metric.VALUED_SFA: valued_right / number,
    }


@pytest.mark.parametrize("seed", range(4))
def test_every_metric_equals_a_second_count(seed: int) -> None:
    gold = gold_of(60, talkers=5)
    answers = random_answers(gold, seed)
    result = compared(gold, ComparedSystem("s", SystemKind.SOUND, answers)).results[0]
    for metric, value in counted_here(gold, answers).items():
        assert result.metrics[metric].value == pytest.approx(value), metric


def test_intervals_over_talkers_are_those_of_the_jackknife() -> None:
    gold = gold_of(60, talkers=5)
    first, second = random_answers(gold, 1), random_answers(gold, 2)
    comparison = compared(
        gold, ComparedSystem("one", SystemKind.SOUND, first), ComparedSystem("two", SystemKind.SOUND, second)
    )

    def difference(left_out: str) -> float:
        def share(answers: Corpus) -> float:
            rows = [
                index for index, utterance in enumerate(gold.utterances) if dict(utterance.groups)["voice"] != left_out
            ]
            part = [Corpus("", tuple(corpus.utterances[index] for index in rows)) for corpus in (gold, answers)]
            return counted_here(*part)[Metric.VALUED_SFA]

        return share(first) - share(second)

    without_each = [difference(f"v{talker}") for talker in range(5)]
    spread = math.sqrt(4 / 5 * sum((value - fmean(without_each)) ** 2 for value in without_each))
    (pair,) = comparison.differences
    low, high = known(pair.over_talkers[Metric.VALUED_SFA])
    middle = known(pair.metrics[Metric.VALUED_SFA].difference)
    assert middle == pytest.approx(difference("nobody"))
    # 2.7764 is the 97.5 % quantile of Student's t with 4 degrees of freedom.
    assert (high - middle, middle - low) == pytest.approx((2.776445 * spread, 2.776445 * spread))


def test_two_talkers_are_too_few_for_an_interval() -> None:
    gold = gold_of(40, talkers=2)
    comparison = compared(gold, ComparedSystem("s", SystemKind.SOUND, random_answers(gold, 3)))
    assert comparison.talkers == 2
    assert comparison.results[0].metrics[Metric.EMR].over_talkers is None
    assert comparison.results[0].metrics[Metric.EMR].interval is not None
    assert any("2 by voice, too few for intervals" in line for line in lines(comparison, 120))


def stages(*answers: tuple[str, str, str | None], heard: Sequence[str] | None = None) -> list[LostStage | None]:
    """The stages of `book new haven`, answered so: intent, words, city."""
    gold = Corpus("gold", tuple(replaced(gold_of(3, 1).utterances[2], n) for n in range(len(answers))))
    frames = Corpus("s", tuple(answer(f"u{n}", intent, city) for n, (intent, _, city) in enumerate(answers)))
    texts = Corpus("h", tuple(Utterance(f"u{n}", tuple(text.split())) for n, (_, text, _) in enumerate(answers)))
    system = ComparedSystem("s", SystemKind.CASCADE, frames, texts if heard is None else None)
    return list(compared(gold, system).results[0].lost)


def replaced(utterance: Utterance, n: int) -> Utterance:
    return Utterance(f"u{n}", utterance.words, utterance.intents, utterance.tags)


def test_an_utterance_is_lost_at_its_first_wrong_stage() -> None:
    assert stages(
        ("book", "book New Haven.", "new haven"),
        ("cancel", "book new heaven", "new haven"),
        ("cancel", "cook new haven", None),
        ("book", "book new haven", None),
        ("book", "book new haven", "haven"),
        # The frame is right, so nothing is lost, whatever was heard.
        ("book", "look knew haven", "new haven"),
    ) == [None, LostStage.WORDS, LostStage.INTENT, LostStage.SLOT, LostStage.VALUE, None]


def test_without_words_the_first_stage_is_the_intent() -> None:
    answers = [("cancel", "", "new haven"), ("book", "", None), ("book", "", "haven")]
    assert stages(*answers, heard=()) == [LostStage.INTENT, LostStage.SLOT, LostStage.VALUE]


def test_systems_are_compared_on_what_all_of_them_answered() -> None:
    gold = gold_of(4, talkers=2)
    every = Corpus("every", tuple(answer(f"u{n}") for n in range(4)))
    some = Corpus("some", tuple(answer(f"u{n}") for n in (1, 3)))
    systems = ComparedSystem("every", SystemKind.SOUND, every), ComparedSystem("some", SystemKind.SOUND, some)
    comparison = compared(gold, *systems)
    assert comparison.ids == ("u1", "u3")
    assert comparison.unanswered == {"every": (), "some": ("u0", "u2")}
    assert compared(gold, *systems, missing_is_empty=True).ids == ("u0", "u1", "u2", "u3")
    with pytest.raises(InputError, match="no utterance of gold was answered by every system"):
        compared(gold, ComparedSystem("other", SystemKind.SOUND, Corpus("", (answer("x"),))))


def test_talkers_count_only_if_every_utterance_names_one() -> None:
    gold = gold_of(40, talkers=4)
    nameless = Corpus("gold", (replace(gold.utterances[0], groups=()), *gold.utterances[1:]))
    comparison = compared(nameless, ComparedSystem("s", SystemKind.SOUND, random_answers(gold, 3)))
    assert (comparison.talkers, comparison.nameless) == (0, 1)
    assert comparison.results[0].metrics[Metric.EMR].over_talkers is None
    assert any(
        "no intervals: 1 utterance without a label in the column voice" in line for line in lines(comparison, 120)
    )


def test_a_system_without_slots_has_no_right_frames() -> None:
    gold = gold_of(20, talkers=4)
    intents = Corpus("s", tuple(Utterance(utterance.id, intents=("book",)) for utterance in gold.utterances))
    result = compared(gold, ComparedSystem("s", SystemKind.SOUND, intents)).results[0]
    assert result.lost == ()
    assert result.metrics[Metric.EMR].value == 1
    assert result.metrics[Metric.SFA].value is None


def test_p_is_corrected_for_the_number_of_pairs() -> None:
    gold = gold_of(60, talkers=5)
    systems = [ComparedSystem(f"s{seed}", SystemKind.SOUND, random_answers(gold, seed)) for seed in range(3)]
    differences = compared(gold, *systems).differences
    ps = [known(pair.metrics[Metric.EMR].p) for pair in differences]
    smallest = ps.index(min(ps))
    assert differences[smallest].p_holm[Metric.EMR] == pytest.approx(min(1.0, 3 * min(ps)))
    assert all(known(pair.p_holm[Metric.EMR]) >= p for pair, p in zip(differences, ps, strict=True))


def test_costs_add_up_with_the_model_that_reads_the_words() -> None:
    gold = gold_of(2, talkers=1)
    heard = Corpus("h", tuple(answer(f"u{n}", text="book nice", cost=SoundCost(0.5, 0.6, 2.0)) for n in range(2)))
    comparison = compared(
        gold,
        ComparedSystem("cascade", SystemKind.CASCADE, random_answers(gold, 1), heard, ModelCost(0.5, 0.5)),
        ComparedSystem("free", SystemKind.SOUND, random_answers(gold, 2)),
    )
    assert comparison.results[0].cost == SoundCost(2.0, 2.2, 4.0)
    assert comparison.results[1].cost is None
    row = next(line for line in lines(comparison, 160) if line.startswith("cascade"))
    assert "1800 s" in row
    assert row.endswith("0.550")


def test_reports_have_every_system_and_nothing_in_them_is_markup() -> None:
    gold = gold_of(20, talkers=4)
    name = "<b>bold</b>"
    comparison = compared(
        gold,
        ComparedSystem(name, SystemKind.SOUND, random_answers(gold, 1)),
        ComparedSystem("other", SystemKind.LIVE, random_answers(gold, 2)),
    )
    text = page(comparison)
    assert "&lt;b&gt;bold&lt;/b&gt;" in text
    assert "<b>bold" not in text
    document = json.loads(systems_json(comparison))
    assert [system["name"] for system in document["systems"]] == [name, "other"]
    assert document["systems"][0]["figures"]["emr"]["value"] == comparison.results[0].metrics[Metric.EMR].value
    assert sum(document["systems"][0]["lost"].values()) == 20
    assert set(document["frames"][0]["lost"]) == {name, "other"}
    assert document["differences"][0]["figures"]["cer"]["over_talkers"] is not None
