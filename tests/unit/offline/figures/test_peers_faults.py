"""What other tools get wrong, from scores to counts: each a test of ours."""

import numpy as np

from harness.model.offline import Counting, FileOutcome, ListKind, OfflineSpot, ScoreTrack, SpotRule
from harness.offline.figures.counts import Tally
from harness.offline.figures.figures import totals
from harness.offline.one_file import spots

RATE_HZ, STEP = 16_000, 1280  # a score each 80 ms
RULE = SpotRule(threshold=0.5, refractory_samples=RATE_HZ, spot_samples=RATE_HZ // 2)


def found(*bursts: tuple[float, float], seconds: float = 60.0) -> tuple[OfflineSpot, ...]:
    """Spots of a detector that is above its threshold in these stretches of seconds."""
    scores = np.zeros(int(seconds * RATE_HZ / STEP), np.float32)
    for start_s, end_s in bursts:
        scores[round(start_s * RATE_HZ / STEP) : round(end_s * RATE_HZ / STEP)] = 0.9
    return spots(ScoreTrack("alexa", scores, 0, STEP), RULE)


def total(kind: ListKind, *files: tuple[OfflineSpot, ...], seconds: float = 60.0) -> dict[str, float]:
    tally = Tally(Counting())
    for number, of in enumerate(files):
        tally.add(FileOutcome(kind, number, round(seconds * RATE_HZ), RATE_HZ, RATE_HZ, of))
    return totals(tally.counts, Counting())


def test_frames_of_an_event_are_one_event() -> None:
    # openWakeWord's helper counts these three events of five frames each as 15.
    events = found((10, 10.4), (20, 20.4), (30, 30.4))
    assert total(ListKind.OOV, events)["FACOUNT"] == 3


def test_a_detector_that_stays_above_its_threshold_has_said_one_thing() -> None:
    assert total(ListKind.OOV, found((10, 25)))["FACOUNT"] == 1


def test_no_cool_down_is_armed_at_the_start() -> None:
    # microWakeWord's counter begins in its cool-down, which hides what comes first.
    assert total(ListKind.OOV, found((0, 0.3), (5, 5.3)))["FACOUNT"] == 2


def test_many_hits_in_one_file_do_not_make_up_for_a_miss_in_another() -> None:
    # Hits counted frame by frame, or spot by spot, would be 5 of 2 files here.
    many = found((2, 2.3), (10, 10.3), (20, 20.3), (30, 30.3), (40, 40.3))
    figures = total(ListKind.INV, many, found())
    assert (figures["TACOUNT"], figures["FRCOUNT"], figures["FRRATIO"]) == (1, 1, 50)


def test_the_lead_in_is_taken_off_once() -> None:
    # A grace period that is added a second time, as MLPerf Tiny's runner does, would forgive up to 2 s.
    tally = Tally(Counting())
    for end in (15_999, 16_000, 24_000):
        spot = OfflineSpot("alexa", max(0, end - 8000), end)
        tally.add(FileOutcome(ListKind.INV, end, 4 * RATE_HZ, RATE_HZ, RATE_HZ, (spot,)))
    figures = totals(tally.counts, Counting())
    assert (figures["TACOUNT"], figures["FRCOUNT"]) == (2, 1)
