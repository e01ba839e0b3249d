"""Hypotheses against references: pairing, words, counts by speaker, confusions, and two systems side by side."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model.choices import MarkScope
from harness.model.errors import InputError, InputProblems
from harness.model.transcript import AlignedWord, Edit, Normalisation, WordCounts
from harness.transcripts.alignment import align, count
from harness.transcripts.groups import compare, interval_of
from harness.transcripts.scoring import Scoring, confusions, score
from harness.transcripts.words import WordRules, fold, squeeze
from tests.unit.transcripts.reports.scorings import prefixes, scored, transcripts

VERBATIM = WordRules(Normalisation.VERBATIM)
FOLDED = WordRules(Normalisation.VERBATIM, fold_case=True)
EXPANDED = WordRules(Normalisation.EXPANDED_SNOR)


def counts(scoring: Scoring) -> tuple[int, int, int, int]:
    totals = scoring.totals
    return totals.correct, totals.substitutions, totals.deletions, totals.insertions


def corpus(seed: int, utterances: int = 60) -> tuple[dict[str, str], dict[str, str]]:
    """Some exact, some wrong, some empty, some without a partner; the hypotheses in an order of their own."""
    draw = random.Random(seed)
    words = ["to", "the", "light", "on", "a", "kitchen", "Kitchen", "é"]
    references: dict[str, str] = {}
    hypotheses: dict[str, str] = {}
    for number in range(utterances):
        spoken_words = draw.choices(words, k=draw.randrange(9))
        heard = [draw.choice(words) if draw.random() < 0.2 else word for word in spoken_words if draw.random() > 0.1]
        id_ = f"{draw.choice(['amy', 'bob', 'cat'])}_{number}"
        if number % 11:
            references[id_] = " ".join(spoken_words)
        if number % 7:
            hypotheses[id_] = " ".join(heard if number % 3 else spoken_words)
    shuffled = list(hypotheses.items())
    draw.shuffle(shuffled)
    return references, dict(shuffled)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("drop", [False, True])
def test_batch_columns_match_pairs_scored_one_by_one(seed: int, drop: bool) -> None:
    references, hypotheses = corpus(seed)
    scoring = scored(references, hypotheses, drop=drop)
    ids = [id_ for id_ in references if id_ in hypotheses or not drop]
    paths = {id_: align(references[id_].split(), hypotheses.get(id_, "").split()) for id_ in ids}
    speakers: dict[str, WordCounts] = {}
    for id_, path in paths.items():
        speakers[prefixes([id_])[0]] = speakers.get(prefixes([id_])[0], WordCounts()) + count(path)
    assert list(scoring.ids) == ids
    assert list(scoring.paths(range(len(scoring)))) == list(paths.values())
    assert scoring.by_speaker == tuple(sorted(speakers.items()))
    assert scoring.totals == sum(speakers.values(), WordCounts())
    assert [utterance.id for utterance in scoring.utterances(scoring.with_errors())] == [
        id_ for id_ in ids if set(paths[id_]) - {"C"}
    ]
    for utterance in scoring.utterances():
        assert utterance.counts == count(paths[utterance.id])
        assert utterance.missing == (utterance.id not in hypotheses)
        assert " ".join(word.reference for word in utterance.words if word.reference) == references[utterance.id]
        assert " ".join(word.hypothesis for word in utterance.words if word.hypothesis) == hypotheses.get(
            utterance.id, ""
        )
    absent = [id_ for id_ in references if id_ not in hypotheses]
    assert list(scoring.without_hypothesis) == absent
    assert (scoring.missing, scoring.dropped) == ((0, len(absent)) if drop else (len(absent), 0))
    assert set(scoring.surplus) == set(hypotheses) - set(references)
    assert scoring.empty_references == sum(not references[id_] for id_ in ids)


def test_insertions_without_reference_words_have_no_rate() -> None:
    scoring = scored({"a_1": ""}, {"a_1": "two words"})
    assert scoring.totals == WordCounts(insertions=2, sentences=1, sentences_with_error=1)
    assert scoring.totals.wer is None
    assert interval_of(scoring) is None
    assert scoring.empty_references == 1
    none = scored({"a_1": "one"}, {"b_1": "one"}, drop=True)
    assert len(none) == 0
    assert (none.totals, none.by_speaker, none.dropped, none.surplus) == (WordCounts(), (), 1, ("b_1",))
    assert list(none.utterances()) == []
    assert confusions(none).pairs == ()


def test_speakers_of_the_file_come_before_those_of_ids() -> None:
    references = transcripts("r.trn", {"a_1": "x", "a_2": "x"}, speakers={"a_2": "Ann"})
    scoring = score(
        references, transcripts("h.trn", {"a_1": "x", "a_2": "y"}), VERBATIM, "verbatim", speakers_of=prefixes
    )
    assert [name for name, _ in scoring.by_speaker] == ["Ann", "a"]
    by_ids = score(references, references, VERBATIM, "verbatim", speakers_of=lambda ids: ["z"] * len(ids))
    assert [name for name, _ in by_ids.by_speaker] == ["Ann", "z"]


def test_only_the_letters_a_to_z_lose_their_case() -> None:
    texts = {"a_1": "SHOW É ß"}, {"a_1": "show é SS"}
    assert [word.edit for word in next(scored(*texts, FOLDED).utterances([0])).words] == [
        Edit.CORRECT,
        *2 * [Edit.SUBSTITUTION],
    ]
    assert counts(scored(*texts)) == (0, 3, 0, 0)
    assert FOLDED.name == "verbatim, A-Z without case"
    assert fold("ABC É \udc80") == "abc É \udc80"


def test_alternatives_are_read_where_they_are_written() -> None:
    references = {"a_1": "show { me / us / @ } it", "a_2": "plain words", "b_1": "the { big / very big } one"}
    scoring = scored(references, {"a_1": "show it", "a_2": "plain birds", "b_1": "the very big one"})
    assert [utterance.counts.errors for utterance in scoring.utterances()] == [0, 1, 0]
    assert list(scoring.paths([2, 1])) == ["CCCC", "CS"]
    assert confusions(scoring).pairs == ((("words", "birds"), 1),)
    assert counts(scored({"a_1": "the (big) one"}, {"a_1": "the one"}, optional_words=True))[1:] == (0, 0, 0)
    assert counts(scored({"a_1": "the (big) one"}, {"a_1": "the one"})) == (2, 0, 1, 0)


@pytest.mark.parametrize(("wrong", "wording"), [("<a", WordRules(Normalisation.SNOR)), ("a }", VERBATIM)])
def test_unreadable_texts_are_reported_up_to_a_limit(wrong: str, wording: WordRules) -> None:
    texts = {f"a_{number}": "fine" if number == 3 else wrong for number in range(60)}
    with pytest.raises(InputProblems) as caught:
        scored(texts, dict.fromkeys(texts, "fine"), wording)
    problems = caught.value.problems
    assert [problem.place.line for problem in problems if problem.place] == [1, 2, 3, *range(5, 52), 0]
    assert problems[-1].what == "and 9 more problems"
    assert all("--" in problem.remedy for problem in problems[:-1])


def test_marks_are_words_where_they_are_not_read() -> None:
    references = {"a_1": "show { me / us } (now)", "a_2": "a@b on @"}
    heard = {"a_1": "show us } (now)", "a_2": "a@b; on"}
    with pytest.raises(InputError, match=r"hyp.trn:1:9: a `}` closes nothing.*--marks reference"):
        scored(references, heard)
    reference = scored(references, heard, WordRules(Normalisation.VERBATIM, marks=MarkScope.REFERENCE))
    assert counts(reference) == (4, 1, 0, 1)
    none = scored(
        references, heard, WordRules(Normalisation.VERBATIM, marks=MarkScope.NONE), fragments=True, optional_words=True
    )
    assert counts(none) == (5, 1, 4, 0)
    assert none.normalisation == "verbatim, no marks"
    with pytest.raises(InputError, match=r"ref.trn:1:6: an alternation `{` is never closed.*--marks none"):
        scored({"a_1": "show { me"}, {"a_1": "show me"})
    sro = WordRules(Normalisation.SNOR, marks=MarkScope.NONE)
    assert sro.name == "snor"
    assert counts(scored({"a_1": "show { sho- me"}, {"a_1": "SHOW { ME"}, sro, fragments=True)) == (3, 0, 0, 0)


def test_fragments_of_sro_text_stand_among_signs_that_are_no_marks() -> None:
    scoring = scored({"a_1": "show } @ fli- ;x"}, {"a_1": "show } @ flight ;x"}, EXPANDED, fragments=True)
    assert counts(scoring) == (5, 0, 0, 0)


@pytest.mark.parametrize(("reference", "errors"), [("show fli- now", 0), ("show -ights now", 0), ("show fla- now", 1)])
def test_fragments_count_only_where_that_was_asked_for(reference: str, errors: int) -> None:
    texts = {"a_1": reference}, {"a_1": "show flights now"}
    assert scored(*texts, fragments=True).totals.errors == errors
    assert scored(*texts).totals.errors == 1


@pytest.mark.parametrize(
    ("reference", "heard"),
    [("turn on the light bulb", "turn on the lightbulb"), ("send e-mail", "send email"), ("do", "845")],
)
def test_a_mark_in_another_word_does_not_change_readings(reference: str, heard: str) -> None:
    spoken = WordRules(Normalisation.SPOKEN)
    expected = counts(scored({"a": f"{reference} now"}, {"a": f"{heard} now"}, spoken))
    for marked_reference, marked_hypothesis in (("now;time", "now"), ("now", "now;"), ("{ now / here }", "now")):
        marked = scored({"a": f"{reference} {marked_reference}"}, {"a": f"{heard} {marked_hypothesis}"}, spoken)
        assert counts(marked) == expected


@pytest.mark.parametrize(
    ("reference", "heard", "expected"),
    [
        ("call 845 now", "call eight forty six now", (4, 1, 0, 0)),  # not as "eight hundred forty five"
        ("eight forty", "845", (2, 0, 0, 1)),
        ("845", "no", (0, 1, 3, 0)),
    ],
)
def test_a_numeral_that_is_partly_right_is_read_as_it_fits_best(
    reference: str, heard: str, expected: tuple[int, ...]
) -> None:
    assert counts(scored({"a": reference}, {"a": heard}, WordRules(Normalisation.SPOKEN))) == expected


def test_a_deleted_word_sounds_as_it_is_spoken() -> None:
    scoring = scored({"a_1": "<show> [uh] me . fli- flights"}, {"a_1": "show me flights"}, EXPANDED)
    assert [word for word in next(scoring.utterances([0])).words if word.edit is Edit.CORRECT] == [
        AlignedWord(Edit.CORRECT, "<SHOW>", "SHOW"),
        AlignedWord(Edit.CORRECT, "ME", "ME"),
        AlignedWord(Edit.CORRECT, "FLIGHTS", "FLIGHTS"),
    ]
    assert counts(scoring) == (3, 0, 3, 0)
    with_fragments = scored({"a_1": "<show> me fli-"}, {"a_1": "show me flights"}, EXPANDED, fragments=True)
    assert counts(with_fragments) == (3, 0, 0, 0)


@pytest.mark.parametrize("text", ["call (foo)", "call (%hesitation)", "call (foo) me"])
def test_a_text_whose_id_was_taken_off_has_no_other(text: str) -> None:
    for reference, hypothesis in ((text, "call"), ("call", text)):
        with pytest.raises(InputError, match=":1:6: this bracket is neither an edit cue nor the utterance id"):
            scored({"a_1": reference}, {"a_1": hypothesis}, WordRules(Normalisation.SNOR))
    cue = scored({"a_1": "call (1) you (1 him)"}, {"a_1": "CALL YOU HIM"}, WordRules(Normalisation.SNOR))
    assert counts(cue) == (3, 0, 0, 0)


@given(st.lists(st.text(st.sampled_from("ab <>(\t\n\r\x0b\x1c\x85\xa0\u2003\u3000é\0\udc80"), max_size=6), max_size=5))
def test_spaces_of_any_kind_part_words(texts: list[str]) -> None:
    expected = [" ".join(text.split()) for text in texts]
    assert list(squeeze(texts)) == expected
    assert (
        list(FOLDED.texts(transcripts("a.trn", dict(zip(map(str, range(len(texts))), texts, strict=True))))) == expected
    )


def test_confusions_count_each_sort_most_frequent_first_and_equals_by_word() -> None:
    references = {"a_1": "to the b a", "a_2": "to the gone", "a_3": "b is gone x", "a_4": "fine"}
    hypotheses = {"a_1": "two the d c", "a_2": "two the", "a_3": "d is x", "a_4": "fine more zz more"}
    confusion_counts = confusions(scored(references, hypotheses))
    assert confusion_counts.pairs == ((("b", "d"), 2), (("to", "two"), 2), (("a", "c"), 1))
    assert confusion_counts.inserted == (("more", 2), ("zz", 1))
    assert confusion_counts.deleted == (("gone", 2),)
    assert confusion_counts.substituted == (("b", 2), ("to", 2), ("a", 1))
    assert confusion_counts.falsely_recognised == (("d", 2), ("two", 2), ("c", 1))


def test_a_missing_hypothesis_is_all_deletions_of_the_system_that_lacks_it() -> None:
    references = {f"a_{number}": "one two three four" for number in range(6)}
    first = scored(references, dict.fromkeys(list(references)[:4], "one two three four"))
    second = scored(references, dict.fromkeys(list(references)[1:], "one two three for"))
    (comparison,) = compare([first, second])
    assert comparison.utterances == 6
    assert (comparison.first_missing, comparison.second_missing) == (2, 1)
    assert comparison.first_counts == first.totals == WordCounts(16, deletions=8, sentences=6, sentences_with_error=2)
    assert comparison.second_counts == second.totals == WordCounts(15, 5, 4, sentences=6, sentences_with_error=6)
    assert comparison.difference == pytest.approx((8 - 9) / 24)
    assert len(compare([first, second, first])) == 3


def test_utterances_left_out_on_request_are_not_compared() -> None:
    references = {f"a_{number}": "one two three four" for number in range(6)}
    first = scored(references, dict.fromkeys(list(references)[:4], "one two three four"), drop=True)
    second = scored(references, dict.fromkeys(list(references)[1:], "one two three for"), drop=True)
    (comparison,) = compare([first, second])
    assert (comparison.utterances, comparison.first_missing, comparison.second_missing) == (3, 0, 0)
    assert comparison.second_counts == WordCounts(9, 3, sentences=3, sentences_with_error=3)
