"""What counts add up to: the manual's own figures, exposure by ruling 1, shards that make the whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from harness.model.offline import Counting, FileOutcome, LeadInRef, ListKind, OfflineSpot, RejectReason
from harness.model.transcript import WordCounts
from harness.offline.figures.counts import Key, OfflineCounts, Tally, judged
from harness.offline.figures.figures import Figures, figures, totals
from tests.unit.offline.figures.outcomes import outcome, said, spot

INV, OOV, REF = ListKind.INV, ListKind.OOV, ListKind.REFERENCED
EARLY, GOOD, LATER = spot(0.2, 0.8), spot(1.2, 1.9), spot(3.0, 3.5)
DEFAULT = Counting()
FROM_START = Counting(lead_in_ref=LeadInRef.START)
WORDS = Counting(words=True, lead_in_ms=0)
PLAIN = Counting(normalise=True)
PLAIN_WORDS = Counting(words=True, normalise=True, lead_in_ms=0)


def keys(of: FileOutcome, counting: Counting = DEFAULT) -> str:
    return " ".join(fact.key.value for fact in judged(of, counting).facts)


@pytest.mark.parametrize(
    ("of", "counting", "wanted"),
    [
        pytest.param(outcome(INV, GOOD), DEFAULT, "INVTA", id="first spot after the lead-in"),
        pytest.param(outcome(INV), DEFAULT, "INVFR", id="no spot"),
        pytest.param(outcome(INV, EARLY), DEFAULT, "INVFA INVFR", id="ruling 3: in the lead-in only"),
        pytest.param(outcome(INV, EARLY, GOOD), DEFAULT, "INVFA INVTA INVTX", id="ruling 3: lead-in, then a good one"),
        pytest.param(outcome(INV, EARLY, spot(0.7, 0.9)), DEFAULT, "INVFA INVFA INVFR INVTX", id="two in the lead-in"),
        pytest.param(outcome(INV, GOOD, LATER), DEFAULT, "INVTA INVFA INVTX", id="a second spot"),
        pytest.param(outcome(INV, LATER, GOOD), DEFAULT, "INVTA INVFA INVTX", id="in time, however they are told"),
        pytest.param(outcome(INV, spot(0.5, 1.2)), DEFAULT, "INVTA", id="ruling 2: by its end"),
        pytest.param(outcome(INV, spot(0.5, 1.2)), FROM_START, "INVFA INVFR", id="ruling 2: by its start"),
        pytest.param(outcome(INV, spot(0.5, 1.0)), DEFAULT, "INVTA", id="the lead-in ends before its last moment"),
        pytest.param(outcome(INV, EARLY), Counting(lead_in_ms=0), "INVTA", id="no lead-in"),
        pytest.param(outcome(INV, spot(1.2, 1.9, "another")), DEFAULT, "INVTA", id="ruling 5: any phrase with -i"),
        pytest.param(outcome(INV, spot(3.8, 4.3)), DEFAULT, "INVTA", id="ruling 9: from the flush at the end"),
        pytest.param(outcome(OOV, EARLY, GOOD), DEFAULT, "OOVFA OOVFA", id="every spot"),
        pytest.param(outcome(OOV), DEFAULT, "", id="correct silence"),
        pytest.param(outcome(OOV, seconds=0.5), DEFAULT, "", id="a lead-in is of in-vocabulary files"),
        pytest.param(outcome(INV, seconds=0.5), DEFAULT, "REJECT", id="ruling 7: shorter than the lead-in"),
        pytest.param(outcome(INV, GOOD, seconds=1.0), DEFAULT, "INVTA", id="as long as the lead-in is no shorter"),
        pytest.param(outcome(OOV, seconds=0), DEFAULT, "REJECT", id="empty"),
        pytest.param(outcome(INV, GOOD, rejected=RejectReason.TWICE), DEFAULT, "REJECT", id="a reject counts nothing"),
        pytest.param(
            outcome(INV, GOOD, rejected=RejectReason.CRASH, error="segmentation fault"),
            DEFAULT,
            "ERROR REJECT",
            id="ruling 10: an error is an ERROR and a REJECT",
        ),
        pytest.param(outcome(REF, said=said("light on"), reference="light on"), DEFAULT, "CMDTA", id="match"),
        pytest.param(outcome(REF, said=said("light on"), reference="light on\n"), DEFAULT, "CMDTA", id="a line end"),
        pytest.param(outcome(REF, said=said("light off"), reference="light on"), DEFAULT, "CMDSB", id="mismatch"),
        pytest.param(outcome(REF, said=said("Light, on!"), reference="light on"), DEFAULT, "CMDSB", id="without -n"),
        pytest.param(outcome(REF, said=said("Light, on!"), reference="light on"), PLAIN, "CMDTA", id="with -n"),
        pytest.param(outcome(REF, reference="light on"), DEFAULT, "CMDFR", id="nothing"),
        pytest.param(outcome(REF, said=said(" "), reference="light on"), DEFAULT, "CMDFR", id="spaces are nothing"),
        pytest.param(outcome(REF, said=said("x"), reference=" "), DEFAULT, "REJECT", id="a reference of no command"),
        pytest.param(outcome(REF, GOOD, reference="alexa"), DEFAULT, "CMDTA", id="ruling 5: equality with -c"),
        pytest.param(outcome(REF, GOOD, reference="computer"), DEFAULT, "CMDSB", id="another phrase of the model"),
        pytest.param(outcome(REF, EARLY, reference="alexa"), DEFAULT, "INVFA CMDFR", id="a command in the lead-in"),
        pytest.param(outcome(REF, GOOD, LATER, reference="alexa"), DEFAULT, "CMDTA INVFA INVTX", id="a second command"),
        pytest.param(outcome(REF, said=said("a b"), reference="a b"), WORDS, "STTTA", id="no mismatch"),
        pytest.param(outcome(REF, said=said("a c"), reference="a b"), WORDS, "STTSB", id="a mismatch"),
        pytest.param(outcome(REF, reference="a b"), WORDS, "STTFR", id="no words"),
        pytest.param(outcome(REF, said=said("A, b."), reference="a b"), WORDS, "STTSB", id="words without -n"),
        pytest.param(outcome(REF, said=said("A, b."), reference="a b"), PLAIN_WORDS, "STTTA", id="words with -n"),
        pytest.param(outcome(REF, said=said("…"), reference="a b"), PLAIN_WORDS, "STTFR", id="punctuation is nothing"),
        pytest.param(outcome(REF, reference=""), WORDS, "STTTA", id="silence, and heard as one"),
        pytest.param(outcome(REF, said=said("thank you"), reference=""), WORDS, "STTSB", id="words out of silence"),
    ],
)
def test_lines_of_an_outcome(of: FileOutcome, counting: Counting, wanted: str) -> None:
    assert keys(of, counting) == wanted


def test_many_spots_are_all_counted() -> None:
    assert [fact.spots for fact in judged(outcome(INV, EARLY, GOOD, LATER), DEFAULT).facts][-1] == 3


def test_u_changes_what_counts_and_no_line() -> None:
    of = outcome(INV, EARLY, GOOD)
    assert keys(of) == keys(of, Counting(count_in_vocabulary=True)) == "INVFA INVTA INVTX"


def test_the_words_of_a_text_that_was_missed_are_deletions() -> None:
    (fact,) = judged(outcome(REF, reference="Well-known: three words!"), PLAIN_WORDS).facts
    assert fact.key is Key.STTFR
    assert fact.reference == "well known three words"
    assert fact.words is not None
    assert (fact.words.deletions, fact.words.words, fact.words.errors) == (4, 4, 4)


def test_texts_are_told_as_they_were_compared() -> None:
    (fact,) = judged(outcome(REF, said=said("Light, ON"), reference="light off."), PLAIN).facts
    assert fact.spot is not None
    assert (fact.spot.phrase, fact.reference) == ("light on", "light off")


def test_a_lead_in_is_exact_at_any_rate() -> None:
    just_before = outcome(INV, spot(0.5, 15_999 / 16_000))
    assert keys(just_before) == "INVFA INVFR"
    assert keys(outcome(INV, seconds=44_099 / 44_100, rate_hz=44_100)) == "REJECT"


WITH_U = Counting(count_in_vocabulary=True)


def counted(outcomes: list[FileOutcome], counting: Counting | None = None) -> OfflineCounts:
    tally = Tally(counting or Counting())
    for one in outcomes:
        tally.add(one)
    return tally.counts


MANUAL = OfflineCounts(
    Counter({Key.INVTA: 2525, Key.INVFR: 2612 - 2525, Key.OOVFA: 118, Key.INVFA: 7}),
    inv_files=2612,
    oov_files=686,
    inv=Counter({1000: 83_259_285}),
    oov=Counter({1000: 514_741_345}),
)


def test_the_manuals_figures() -> None:
    found = totals(MANUAL, Counting())
    assert found == {
        "FACOUNT": 118,
        "FARATE": pytest.approx(118 / 142.98370694),
        "FRCOUNT": 87,
        "FRRATIO": pytest.approx(100 * 87 / 2612),
        "TACOUNT": 2525,
    }
    assert (f"{found['FARATE']:.2f}", f"{found['FRRATIO']:.2f}") == ("0.83", "3.33")
    # The prose's 9164 words would be 12.56 %.
    words = OfflineCounts(Counter({Key.STTSB: 999}), words=WordCounts(9174 - 833 - 120, 833, 120, 198))
    assert f"{totals(words, Counting(words=True))['WER']:.3f}" == "12.546"


def test_in_vocabulary_sound_that_is_no_true_accept_is_exposure_with_u() -> None:
    outcomes = [
        outcome(INV, spot(1.0, 1.5), seconds=4),
        outcome(INV, seconds=3),  # all of a file without a true accept
        outcome(INV, spot(0.1, 0.5), seconds=2),  # lead-in spots take nothing off
        outcome(OOV, spot(1, 2), seconds=10),
        outcome(INV, seconds=99, rejected=RejectReason.RATE),
    ]
    counts = counted(outcomes, WITH_U)
    assert (counts.inv_ms, counts.oov_ms, counts.inv_oov_ms) == (9000, 10_000, 8500)
    assert counts.exposure_hours(WITH_U) == pytest.approx(18.5 / 3600)
    assert counts.exposure_hours(Counting()) == pytest.approx(10 / 3600)
    assert totals(counts, WITH_U)["FACOUNT"] == 2
    assert totals(counts, Counting())["FACOUNT"] == 1
    assert totals(counts, WITH_U)["FARATE"] == pytest.approx(2 / 18.5 * 3600)


def test_a_spot_behind_the_end_takes_off_what_lies_in_the_file() -> None:
    counts = counted([outcome(INV, spot(3.5, 4.2), seconds=4)])
    assert counts.inv_oov_ms == 3500


def test_files_of_several_rates_are_counted_in_their_own_samples() -> None:
    third = FileOutcome(OOV, 0, samples=1, rate_hz=3, engine_rate_hz=16_000)
    counts = counted([third, third, third, outcome(OOV, seconds=2, rate_hz=48_000), outcome(OOV, seconds=1)])
    assert dict(counts.oov) == {3: 3, 48_000: 96_000, 16_000: 16_000}
    assert counts.oov_ms == 4000  # a third of a second, thrice, is a second and no less


def test_rejected_files_are_out_of_everything() -> None:
    kept = [outcome(INV, spot(1.2, 2)), outcome(OOV)]
    rejects = [outcome(kind, spot(1.2, 2), rejected=reason) for kind in (INV, OOV) for reason in RejectReason]
    counts = counted(kept + rejects)
    assert counts.rejected_files == len(rejects)
    assert totals(counts, Counting()) == totals(counted(kept), Counting())
    assert (counts.inv_files, counts.oov_files, counts.inv_ms, counts.oov_ms) == (1, 1, 4000, 4000)


def test_substitutions_are_no_false_rejects_but_errors() -> None:
    heard = [outcome(REF, said=said(text) if text else None, reference="on") for text in ("on", "off", "", "")]
    found = totals(counted(heard), Counting())
    wanted = {"FRCOUNT": 2, "FRRATIO": 50, "FR+SBCOUNT": 3, "FR+SBRATIO": 75, "TACOUNT": 1}
    assert {key: found[key] for key in wanted} == wanted


def test_over_nothing_there_is_no_total() -> None:
    assert totals(OfflineCounts(), Counting()) == {}
    none = figures(Tally(Counting()), Counting())
    assert none.false_accepts is none.false_rejects is none.word_errors is none.clustering is None
    silence = counted([outcome(REF, reference="")], Counting(words=True, lead_in_ms=0))
    assert "WER" not in totals(silence, Counting(words=True))


def test_many_false_accepts_in_one_file_are_told_as_a_cluster_and_single_ones_are_not() -> None:
    def found(spots: Callable[[int], list[OfflineSpot]]) -> Figures:
        tally = Tally(Counting())
        for number in range(200):
            tally.add(outcome(OOV, *spots(number), seconds=60))
        return figures(tally, Counting())

    burst = found(lambda number: [spot(n, n + 0.5) for n in range(40)] if number == 7 else [])
    assert burst.clustered
    assert burst.clustering is not None
    assert burst.false_accepts is not None
    assert burst.clustering.interval[1] > burst.false_accepts[1]
    assert not found(lambda number: [] if number % 5 else [spot(1, 2)]).clustered
