"""Every key and every ruling on what an outcome counts as, a row each."""

import pytest

from harness.model.offline import Counting, FileOutcome, LeadInRef, ListKind, RejectReason
from harness.offline.figures.counts import Key, judged
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
