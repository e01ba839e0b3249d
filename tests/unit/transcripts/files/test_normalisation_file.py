"""Normalisation files."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from harness.cli.validate import command
from harness.model.errors import InputError, InputProblems
from harness.model.transcript import Normalisation, Rewriting
from harness.transcripts.files.normalisation_file import load_normalisation
from harness.transcripts.readings import rewrite
from harness.transcripts.words import normalise

LAMPS = """# What our lamps understand.
normalisation: lamps
base: plain
same:
  - [Light bulb, lightbulb]
  - ["OK, lamp!", okay lamp]
  - [uh, ""]
"""


def saved(folder: Path, text: str) -> Path:
    path = folder / "lamps.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_both_sides_of_a_pair_are_normalised_by_the_base(tmp_path: Path) -> None:
    list_ = load_normalisation(saved(tmp_path, LAMPS))
    pairs = ((("light", "bulb"), ("lightbulb",)), (("ok", "lamp"), ("okay", "lamp")), (("uh",), ()))
    assert list_ == Rewriting("lamps", Normalisation.PLAIN, pairs)
    assert rewrite(normalise("OK lamp: uh, the light bulb.", list_.base), list_) == ("okay", "lamp", "the", "lightbulb")


def test_a_pair_that_spoken_makes_by_itself_is_no_mistake(tmp_path: Path) -> None:
    """Lists that were written before it did stay valid."""
    text = 'normalisation: x\nbase: spoken\nsame:\n - [uh, ""]\n - [colour, color]\n - [lamp, light]\n'
    list_ = load_normalisation(saved(tmp_path, text))
    assert list_.same == ((("lamp",), ("light",)),)


WRONG = [
    ("same: [[a, b]]", 1, "the first key is 'same'", "normalisation"),
    ("kind: normalisation", 1, "the first key is 'kind'", "normalisation"),
    ("normalisation: Big Lamps\nbase: plain\nsame: [[a, b]]", 1, "is not a name", "small letters"),
    ("normalisation: x\nsame: [[a, b]]", 1, "'base' is missing", "base"),
    ("normalisation: x\nbase: plain", 1, "'same' is missing", "same"),
    ("normalisation: x\nbase: plain\nsame: []", 3, "is empty", "at least one"),
    ("normalisation: x\nbase: expanded_snor\nsame: [[a, b]]", 2, "is not a word", "plain"),
    ("normalisation: x\nbase: plian\nsame: [[a, b]]", 2, "is not a word", "Did you mean 'plain'"),
    ("normalisation: x\nbase: plain\nsame: [[a, b, c]]", 3, "3 texts", "[light bulb, lightbulb]"),
    ("normalisation: x\nbase: plain\nsame:\n - [a, 1]", 4, "expected text", "quotes"),
    ("normalisation: x\nbase: plain\nsame:\n - [a, ]", 4, "1 texts", "[light bulb"),
    ("normalisation: x\nbase: plain\nsame: {a: b}", 3, "expected a list", "Write"),
    ("normalisation: x\nbase: plain\nsme: [[a, b]]\nsame: [[a, b]]", 3, "no key 'sme'", "same"),
    ("normalisation: x\nbase: plain\nsame:\n - [a b, c]\n - [A  b., d]", 5, "there already, in line 4", "Remove"),
    ("normalisation: x\nbase: plain\nsame:\n - ['!', c]", 4, "nothing is left of '!'", "keeps"),
    ("normalisation: x\nbase: plain\nsame:\n - [A, a]", 4, "are the same", "Remove"),
    ("normalisation: x\nbase: snor\nsame:\n - [<a, b]", 4, "cannot be read as snor", ""),
    (f"normalisation: x\nbase: plain\nsame: [{', '.join(f'[a{n}, b]' for n in range(201))}]", 3, "too long", "200"),
]


@pytest.mark.parametrize(("text", "line", "what", "remedy"), WRONG)
def test_what_is_wrong_is_told_with_its_place(tmp_path: Path, text: str, line: int, what: str, remedy: str) -> None:
    with pytest.raises(InputError) as raised:
        load_normalisation(saved(tmp_path, text))
    error = raised.value
    problem = error.problems[0] if isinstance(error, InputProblems) else error
    assert problem.place
    assert problem.place.line == line
    assert what in problem.what
    assert remedy in problem.remedy


def test_validate_knows_the_kind(tmp_path: Path) -> None:
    ran = CliRunner().invoke(command, [str(saved(tmp_path, LAMPS))])
    assert (ran.exit_code, ran.stdout.partition(": ")[2]) == (0, "normalisation lamps: plain, then 3 pairs\n")
    assert CliRunner().invoke(command, [str(saved(tmp_path, "normalisation: x\n"))]).exit_code == 2
