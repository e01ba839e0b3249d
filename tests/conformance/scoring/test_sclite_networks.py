"""Alternatives, optional words, fragments and tags: our paths are sclite's, word for word."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.model.errors import InputError
from harness.model.transcript import AlignedWord
from harness.transcripts.alignment import count
from harness.transcripts.networks import align_networks, parse
from tests.conformance.scoring import sclite
from tests.unit.transcripts.network_texts import WORDS, pairs

pytestmark = sclite.needs_sclite

OPTIONS = [(), ("-D",), ("-F",), ("-D", "-F")]


def verbatim(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def ours(reference: str, hypothesis: str, *options: str) -> tuple[AlignedWord, ...]:
    return align_networks(
        parse(reference, verbatim),
        parse(hypothesis, verbatim),
        optional_words="-D" in options,
        fragments="-F" in options,
    )


def theirs(folder: Path, references: list[str], hypotheses: list[str], *options: str) -> list[tuple[AlignedWord, ...]]:
    """sclite prints a word with its tags, which tell nothing of the alignment."""
    utterances = sclite.align(folder, references, hypotheses, sclite.CASE_COUNTS, *options)
    return [
        tuple(AlignedWord(word.edit, _bare(word.reference), _bare(word.hypothesis)) for word in utterance.words)
        for utterance in utterances
    ]


def _bare(word: str) -> str:
    return word.split(";")[0]


@pytest.mark.parametrize("options", OPTIONS, ids=" ".join)
@pytest.mark.parametrize(
    ("seed", "depth", "longest", "words"),
    [
        (1, 1, 7, WORDS),
        (2, 2, 7, WORDS),
        (3, 3, 5, WORDS),
        (4, 2, 18, ("a", "b", "a-")),
        # With so many of nothing, ties hang on how costs are rounded.
        (5, 2, 15, ("a", "b", "@", "@", "a-")),
        (6, 0, 20, WORDS),
    ],
)
def test_random_networks_align_as_in_sclite(
    options: tuple[str, ...], seed: int, depth: int, longest: int, words: tuple[str, ...], tmp_path: Path
) -> None:
    references, hypotheses = pairs(seed + 10 * len(options), 300, depth=depth, longest=longest, words=words)
    expected = theirs(tmp_path, references, hypotheses, *options)
    different = [
        (reference, hypothesis)
        for reference, hypothesis, path in zip(references, hypotheses, expected, strict=True)
        if ours(reference, hypothesis, *options) != path
    ]
    assert different == []
    assert len(set(expected)) > 100


def test_many_alternatives_and_long_utterances_align_as_in_sclite(tmp_path: Path) -> None:
    wide = "{ " + " / ".join(f"w{number} x" for number in range(40)) + " / @ }"
    long = " ".join(f"w{number} {{ a / b c / @ }}" for number in range(60))
    references = [f"{wide} {wide} end", long, wide * 5, "{ a / b } c { d / e }"]
    hypotheses = [
        f"x w7 w7 end {wide}",
        " ".join(f"w{number} c" for number in range(1, 60)),
        "w39 x x y w3",
        "{ b / a } c { e / d }",
    ]
    expected = theirs(tmp_path, references, hypotheses)
    assert [ours(*pair) for pair in zip(references, hypotheses, strict=True)] == expected


@pytest.mark.parametrize(
    ("reference", "hypothesis", "options", "words", "correct"),
    [
        # Of the shortest way through the reference, not of its longest.
        ("{ a b c / d } e", "e", (), 2, 1),
        ("{ a b c / @ } e", "e", (), 1, 1),
        ("(a) e", "e", ("-D",), 2, 2),
        # A word of the hypothesis that may be left out counts as one of the reference.
        ("a c", "a (b) c", ("-D",), 3, 3),
    ],
)
def test_words_of_the_reference_are_counted_as_in_sclite(
    reference: str, hypothesis: str, options: tuple[str, ...], words: int, correct: int, tmp_path: Path
) -> None:
    (tmp_path / "ref.trn").write_text(f"{reference} (s_1)\n", encoding="utf-8")
    (tmp_path / "hyp.trn").write_text(f"{hypothesis} (s_1)\n", encoding="utf-8")
    printed = sclite.output(tmp_path / "ref.trn", tmp_path / "hyp.trn", *options, "-o", "rsum", "stdout")
    total = next(line for line in printed.splitlines() if "Sum" in line).replace("|", " ").split()
    assert [int(number) for number in total[1:4]] == [1, words, correct]
    counts = count("".join(word.edit.value for word in ours(reference, hypothesis, *options)))
    assert (counts.words, counts.correct) == (words, correct)


@pytest.mark.parametrize("reference", ["a { } c", "a x{ b / c } c"])
def test_where_sclite_crashes_there_is_an_error(reference: str, tmp_path: Path) -> None:
    with pytest.raises(AssertionError):
        sclite.align(tmp_path, [reference], ["a c"])
    with pytest.raises(InputError):
        parse(reference, verbatim)


@pytest.mark.parametrize(
    ("reference", "path"),
    [
        # The rest of the line is lost.
        ("a { b / c d", "CI"),
        # An alternative without a word is no alternative.
        ("a { b / }", "CC"),
        ("a { / b }", "CC"),
        # A brace becomes a word, or a part of one.
        ("a b }", "CCD"),
        ("a b}", "CS"),
    ],
)
def test_where_sclite_guesses_there_is_an_error(reference: str, path: str, tmp_path: Path) -> None:
    assert [utterance.path for utterance in sclite.align(tmp_path, [reference], ["a b"])] == [path]
    with pytest.raises(InputError):
        parse(reference, verbatim)


@pytest.mark.parametrize(
    ("reference", "hypothesis", "options", "in_sclite", "in_ours"),
    [
        # sclite takes a final star and backslashes off.
        ("b*", "b", (), "C", "S"),
        (r"b\c", "bc", (), "C", "S"),
        # A semicolon with nothing before it is an empty word to sclite, whatever follows.
        (";x", ";y", (), "C", "S"),
        # Brackets around nothing.
        ("() a", "a", ("-D",), "CC", "DC"),
    ],
)
def test_known_differences_from_sclite_in_reading_words(
    reference: str, hypothesis: str, options: tuple[str, ...], in_sclite: str, in_ours: str, tmp_path: Path
) -> None:
    utterances = sclite.align(tmp_path, [reference], [hypothesis], sclite.CASE_COUNTS, *options)
    assert [utterance.path for utterance in utterances] == [in_sclite]
    assert "".join(word.edit.value for word in ours(reference, hypothesis, *options)) == in_ours
