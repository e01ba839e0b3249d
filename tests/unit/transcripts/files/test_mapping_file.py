"""Global mapping files, by hand and as rfilter1 of NIST's sctk applies them."""

from __future__ import annotations

import os
import random
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from harness.cli.score import command
from harness.model.errors import InputProblems
from harness.transcripts.files.mapping_file import read_mapping
from tests.unit.transcripts.files.told import written

RFILTER = Path(os.environ.get("RFILTER1", "/usr/lib/sctk/bin/rfilter1"))
HEAD = """\
;; a comment
* name "small"
* desc "for tests"
* format = 'NIST1'
* max_nrules = '1500'
* max_nrules_file = '2000'
* copy_no_hit = 'T'
* case_sensitive = '{case}'
"""
RULES = """\
[ANYMORE] => [ANY MORE] / [ ] __ [ ] ;; two words
[WE'RE] => [{WE'RE / WE ARE}] / [ ] __ [ ]
[I'M] => {[I'M] / [I AM]} / [ ] __ [ ]
[UH] => [] / [ ] __ [ ]
[GOT] => [HAVE] / [ YOU ] __ [ TO]
[X] => [Y] / [ ] __ [ ]
[Y] => [Z] / [ ] __ [ ]
[-] => [ ]
"""


@pytest.mark.parametrize(
    ("text", "mapped"),
    [
        ("not anymore", "NOT ANY MORE"),
        ("anymores", "ANYMORES"),
        ("we're here", "{ WE'RE / WE ARE } HERE"),
        ("i'm uh here", "{ I'M / I AM } HERE"),
        ("you got to", "YOU HAVE TO"),
        ("you got it", "YOU GOT IT"),
        ("x y", "Y Z"),
        ("light-bulb", "LIGHT BULB"),
        ("", ""),
    ],
)
def test_the_first_rule_that_fits_applies_once(tmp_path: Path, text: str, mapped: str) -> None:
    found = read_mapping(written(tmp_path, "a.glm", HEAD.format(case="F") + RULES))
    assert found.name == "small"
    assert found.mapped(text) == mapped


@pytest.mark.parametrize(
    ("line", "what"),
    [("[A] = [B]", "is not a rule"), ("[] => [B]", "is not a rule"), ("* copy_no_hit = 'F'", "would drop all words")],
)
def test_a_mistake_has_its_line(tmp_path: Path, line: str, what: str) -> None:
    with pytest.raises(InputProblems, match=what) as refused:
        read_mapping(written(tmp_path, "a.glm", f"[A] => [B]\n{line}\n"))
    assert refused.value.problems[0].place is not None
    assert refused.value.problems[0].place.line == 2
    with pytest.raises(InputProblems, match="the file has no rules"):
        read_mapping(written(tmp_path, "b.glm", HEAD))


def test_scores_name_the_file(tmp_path: Path) -> None:
    glm = written(tmp_path, "a.glm", HEAD.format(case="F") + RULES)
    reference = written(tmp_path, "r.trn", "We are uh not anymore (u1)\n")
    hypothesis = written(tmp_path, "h.trn", "we're not any more (u1)\n")
    done = CliRunner().invoke(command, ["-r", str(reference), "-h", str(hypothesis), "--glm", str(glm)])
    assert "0 of 5 = 0.00 %" in done.output, done.output
    assert "verbatim, mapped by small" in done.output


@pytest.mark.skipif(not RFILTER.exists(), reason=f"no {RFILTER} (Debian's sctk)")
@pytest.mark.parametrize("seed", range(6))
def test_random_rules_do_what_rfilter1_makes_of_them(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)

    def words(most: int) -> str:
        return " ".join("".join(chance.choices("ab", k=chance.randint(1, 2))) for _ in range(chance.randint(1, most)))

    def context() -> str:
        return chance.choice(["", " ", " a ", "b "])

    rules: dict[str, str] = {}
    for _ in range(6):
        left, right = context(), context()[::-1]
        rules.setdefault(words(2), f"[{words(2)}]" + (f" / [{left}] __ [{right}]" if left and right else ""))
    lines = "".join(f"[{old}] => {new}\n" for old, new in rules.items())
    glm = written(tmp_path, "r.glm", HEAD.format(case="T") + lines)
    texts = [words(12) for _ in range(100)]
    given = "".join(f" {text} \n" for text in texts)
    done = subprocess.run([str(RFILTER), str(glm)], input=given, capture_output=True, text=True, timeout=60, check=True)
    theirs = [" ".join(line.split()) for line in done.stdout.split("\n")[: len(texts)]]
    mapping = read_mapping(glm)
    assert [mapping.mapped(text) for text in texts] == theirs, lines
