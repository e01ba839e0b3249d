"""What counts add up to: the manual's own figures, exposure by ruling 1, shards that make the whole."""

from functools import reduce

import numpy as np
import pytest

from harness.model.offline import Counting, FileOutcome, ListKind, OfflineSpot, RejectReason
from harness.model.transcript import WordCounts
from harness.offline.figures.counts import Key, OfflineCounts, Tally
from harness.offline.figures.figures import figures, totals
from tests.unit.offline.figures.outcomes import outcome, said, spot

INV, OOV, REF = ListKind.INV, ListKind.OOV, ListKind.REFERENCED
WITH_U = Counting(count_in_vocabulary=True)


def counted(outcomes: list[FileOutcome], counting: Counting | None = None) -> OfflineCounts:
    tally = Tally(counting or Counting())
    for one in outcomes:
        tally.add(one)
    return tally.counts


MANUAL = OfflineCounts(
    {Key.INVTA: 2525, Key.INVFR: 2612 - 2525, Key.OOVFA: 118, Key.INVFA: 7},
    inv_files=2612,
    oov_files=686,
    inv={1000: 83_259_285},
    oov={1000: 514_741_345},
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
    words = OfflineCounts({Key.STTSB: 999}, words=WordCounts(9174 - 833 - 120, 833, 120, 198))
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
    counts = counted(
        [
            outcome(REF, said=said("on"), reference="on"),
            outcome(REF, said=said("off"), reference="on"),
            outcome(REF, reference="on"),
            outcome(REF, reference="on"),
        ]
    )
    found = totals(counts, Counting())
    assert {key: found[key] for key in ("FRCOUNT", "FRRATIO", "FR+SBCOUNT", "FR+SBRATIO", "TACOUNT")} == {
        "FRCOUNT": 2,
        "FRRATIO": 50,
        "FR+SBCOUNT": 3,
        "FR+SBRATIO": 75,
        "TACOUNT": 1,
    }


def test_over_nothing_there_is_no_total() -> None:
    assert totals(OfflineCounts(), Counting()) == {}
    none = figures(Tally(Counting()), Counting())
    assert none.false_accepts is none.false_rejects is none.word_errors is none.clustering is None
    silence = counted([outcome(REF, reference="")], Counting(words=True, lead_in_ms=0))
    assert "WER" not in totals(silence, Counting(words=True))


def test_counts_of_shards_add_up_to_the_whole_exactly() -> None:
    random = np.random.default_rng(3)
    outcomes = []
    for number in range(400):
        rate = int(random.choice([8000, 11_025, 16_000, 48_000]))
        ends = sorted(random.integers(0, 16_000 * 5, int(random.integers(0, 4))).tolist())
        spots = tuple(OfflineSpot("alexa", max(0, end - 8000), end) for end in ends)
        kind = (INV, OOV, REF)[number % 3]
        samples = int(random.integers(1, 5 * rate))
        outcomes.append(FileOutcome(kind, number, samples, rate, 16_000, spots, reference="alexa"))
    whole = counted(outcomes, WITH_U)
    parts = [counted(outcomes[start::7], WITH_U) for start in range(7)]
    together = reduce(OfflineCounts.__add__, parts)
    assert together == whole
    assert totals(together, WITH_U) == totals(whole, WITH_U)


def test_many_false_accepts_in_one_file_are_told_as_a_cluster() -> None:
    tally = Tally(Counting())
    burst = [spot(n, n + 0.5) for n in range(40)]
    for number in range(200):
        tally.add(outcome(OOV, *(burst if number == 7 else ()), seconds=60))
    found = figures(tally, Counting())
    assert found.clustered
    assert found.clustering is not None
    assert found.false_accepts is not None
    assert found.clustering.interval[1] > found.false_accepts[1]


def test_false_accepts_that_come_by_themselves_are_no_cluster() -> None:
    tally = Tally(Counting())
    for number in range(200):
        tally.add(outcome(OOV, *([spot(1, 2)] if number % 5 == 0 else ()), seconds=60))
    assert not figures(tally, Counting()).clustered
