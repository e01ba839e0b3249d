"""Global mapping files, by hand and as rfilter1 of NIST's sctk applies them."""

from __future__ import annotations

import os
import random
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from harness.cli.score import command
from harness.model.choices import TranscriptFormat
from harness.model.errors import InputProblems
from harness.transcripts.files.mapping_file import MappedSide, read_mapping
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
    mapping = read_mapping(written(tmp_path, "a.glm", HEAD.format(case="F") + RULES))
    assert mapping.name == "small"
    assert mapping.mapped(text) == mapped


NIST = """\
;;  File: all the forms of rules in NIST's own files
* name "nist"
* desc "The (GLM) => for tests"
* format = 'NIST1'
* max_nrules = '2500'
* copy_no_hit = 'T'
* case_sensitive = 'F'

HUH-UH  =>  %BCNACK    / [ ] __ [ ] ;; negative token
UH      =>  %HESITATION     / [ ] __ [ ] ;; hesitation token
'CAUSE           => BECAUSE ;; per AHD
ADVISER            => ADVISOR / [ ] __  ;; "adviser' is preferred
BINYAMIN           => BENJAMIN / __ [ NETANYAHU]
FALKNER            => FAULKNER / [WILLIAM ] __  ;; the writer
FT SE              => FOOTSIE ;; officially spelled w/hyphen
THROUGHWAY         => THRUWAY ;; in particular, the NY State ___
backyard      =>  back yard      / [ ] __ [ ]
AIRWING            => [AIR WING]
[CANNOT ]            => [CAN NOT ]
[WEBSITE]            => [WEB SITE]
[TRAINSPOTTING ]     => [TRAIN SPOTTING ]
%HA%        =>  [ %HESITATION ]
 "BEGIN-QUOTE => BEGIN QUOTE
 (LEFT-PAREN  => LEFT PAREN
 --DASH   => DASH
 ;SEMI-COLON  => SEMICOLON
 {LEFT-BRACE  => LEFT BRACE
 " OK " => " OKAY "
~GRAPH        => GRAPH
WHY'D     => [{WHY DID / WHY WOULD}] / [ ] __ [ ]
[HE'S] => [{HE IS / HE HAS }] / [ ] __ [ ]
"""
SPOKEN = (
    "huh-uh huh-uhs uh (uh) 'cause adviser advisers an-adviser",
    "binyamin netanyahu binyamin william falkner falkner ft se throughway backyard backyards",
    "airwing cannot cannot websites website trainspotting %ha% x%ha%x",
    "\"begin-quote --dash ;semi-colon {left-brace ok ok ~graph why'd he's whys",
)
NOT_AS_RFILTER1 = """\
[WEBSTER'S] => [{WEBSTER'S / WEBSTER IS / WEBSTER HAS}
/SLASH => SLASH
AND/OR => AND OR
ALL => {EVERY / A_LL}
[ONE] => [{A / B}]
(LEFT-PAREN => LEFT PAREN
ARROW=>SHOT
GONE =>
"""


@pytest.mark.parametrize(
    ("text", "mapped"),
    [
        ("huh-uh (uh) (backyard)", "%BCNACK (%HESITATION) (BACK) (YARD)"),
        ("adviser advisers", "ADVISOR ADVISORS"),
        ("binyamin netanyahu binyamin", "BENJAMIN NETANYAHU BINYAMIN"),
        ("cannot why'd", "CAN NOT { WHY DID / WHY WOULD }"),
        ("x%ha%x ok", "X %HESITATION X OKAY"),
        ("webster's /slash and/or", "{ WEBSTER'S / WEBSTER IS / WEBSTER HAS } SLASH AND OR"),
        ("all one (left-paren a arrow gone b", "{ EVERY / A_LL } { A / B } LEFT PAREN A SHOT B"),
    ],
)
def test_rules_as_nist_writes_them(tmp_path: Path, text: str, mapped: str) -> None:
    mapping = read_mapping(written(tmp_path, "a.glm", NIST + NOT_AS_RFILTER1))
    assert mapping.name == "nist"
    assert mapping.mapped(text) == mapped


@pytest.mark.skipif(not RFILTER.exists(), reason=f"no {RFILTER} (Debian's sctk)")
def test_rules_of_nist_give_the_result_of_rfilter1(tmp_path: Path) -> None:
    glm = written(tmp_path, "a.glm", NIST)
    apart = "".join(f" {text.upper()} \n".replace("(UH)", "( UH )") for text in SPOKEN)
    theirs = subprocess.run(
        [str(RFILTER), str(glm)], input=apart, capture_output=True, text=True, timeout=60, check=True
    )
    lines = (
        theirs.stdout.upper().replace("( ", "(").replace(" )", ")").replace("{", "{ ").replace("}", " }").split("\n")
    )
    mapping = read_mapping(glm)
    ours = [mapping.mapped(text) for text in SPOKEN]
    assert [" ".join(text.replace("{LEFT", "{ LEFT").split()) for text in ours] == [
        " ".join(line.split()) for line in lines[: len(SPOKEN)]
    ]


def test_a_section_applies_to_the_inputs_that_it_names(tmp_path: Path) -> None:
    glm = written(
        tmp_path,
        "a.glm",
        'UH => UM\n;; INPUT_DEPENDENT_APPLICATION = "CTM"\n[I\'M] => [I AM] / [ ] __ [ ]\n'
        ';;  INPUT_DEPENDENT_APPLICATION = "hyp|stm"\nA => B\n;; INPUT_DEPENDENT_APPLICATION = ""\nC => D\n',
    )
    form, side = TranscriptFormat, MappedSide
    for inputs, mapped in (
        ((form.CTM, side.HYPOTHESIS), "UM I BM B D"),
        ((form.STM, side.REFERENCE), "UM I'M B D"),
        ((form.TRN, side.HYPOTHESIS), "UM I'M B D"),
        ((form.TRN, side.REFERENCE), "UM I'M A D"),
        ((form.CSV, None), "UM I'M A D"),
    ):
        expected = mapped.replace("I BM", "I AM")
        assert read_mapping(glm, None, *inputs).mapped("uh i'm a c") == expected, inputs
    with pytest.raises(InputProblems, match="is not a regular expression"):
        read_mapping(written(tmp_path, "b.glm", 'A => B\n;; INPUT_DEPENDENT_APPLICATION = "("\n'))


def test_the_first_line_sets_the_comment_character(tmp_path: Path) -> None:
    mapping = read_mapping(written(tmp_path, "a.glm", "# words\nA => B # why\n#C => D\n"))
    assert mapping.mapped("a c") == "B C"


@pytest.mark.parametrize("codec", ["latin-1", "gb2312", "utf-8"])
def test_a_mapping_file_has_an_encoding_of_its_own(tmp_path: Path, codec: str) -> None:
    word = "\u5475" if codec == "gb2312" else "caf\u00e9"
    glm = tmp_path / "a.glm"
    glm.write_bytes(f"%{word}% => [ %HESITATION ]\n{word} => %HESITATION / [ ] __ [ ]\n".encode(codec))
    reference = written(tmp_path, "r.trn", f"a {word} %{word}% b (u1)\n")
    hypothesis = written(tmp_path, "h.trn", "a %hesitation %hesitation b (u1)\n")
    files = ["-r", str(reference), "-H", str(hypothesis)]
    result = CliRunner().invoke(command, [*files, "--glm", str(glm), "--glm-encoding", codec])
    assert "0 of 4 = 0.00 %" in result.output, result.output
    assert CliRunner().invoke(command, [*files, "--glm-encoding", codec]).exit_code != 0
    if codec != "utf-8":
        with pytest.raises(InputProblems, match=r"a\.glm:1:[25]: .*--glm-encoding latin-1"):
            read_mapping(glm)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("[A] = [B]", "is not a rule"),
        ("[] => [B]", "is not a rule"),
        ("A => {B / C", "is not a rule"),
        ("* copy_no_hit = 'F'", "would drop every word"),
        ("* COPY_NO_HIT : 'no'", "would drop every word"),
    ],
)
def test_a_mistake_has_its_line(tmp_path: Path, line: str, message: str) -> None:
    with pytest.raises(InputProblems, match=message) as refused:
        read_mapping(written(tmp_path, "a.glm", f"[A] => [B]\n{line}\n"))
    assert refused.value.problems[0].place is not None
    assert refused.value.problems[0].place.line == 2
    with pytest.raises(InputProblems, match="the file has no rules"):
        read_mapping(written(tmp_path, "b.glm", HEAD))


def test_scores_name_their_mapping_file(tmp_path: Path) -> None:
    glm = written(tmp_path, "a.glm", HEAD.format(case="F") + RULES)
    reference = written(tmp_path, "r.trn", "We are uh not anymore (u1)\n")
    hypothesis = written(tmp_path, "h.trn", "we're not any more (u1)\n")
    result = CliRunner().invoke(command, ["-r", str(reference), "-H", str(hypothesis), "--glm", str(glm)])
    assert "0 of 5 = 0.00 %" in result.output, result.output
    assert "verbatim, mapped by small" in result.output


@pytest.mark.skipif(not RFILTER.exists(), reason=f"no {RFILTER} (Debian's sctk)")
@pytest.mark.parametrize("seed", range(6))
def test_random_rules_give_the_result_of_rfilter1(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)

    def words(max_words: int) -> str:
        return " ".join(
            "".join(chance.choices("ab", k=chance.randint(1, 2))) for _ in range(chance.randint(1, max_words))
        )

    def context() -> str:
        return chance.choice(["", " ", " a ", "b "])

    rules: dict[str, str] = {}
    for _ in range(6):
        left, right = context(), context()[::-1]
        sides = f"[{left}]" if left else "", f"[{right}]" if right else ""
        opening, closed = chance.choice(["[]", '""', ("", "")])
        new = chance.choice([f"[{words(2)}]", words(2)])
        rules.setdefault(words(2), f"{opening} {closed} => {new}" + (" / " + " __ ".join(sides) if any(sides) else ""))
    lines = "".join(new.replace(" ", old, 1) + "\n" for old, new in rules.items())
    glm = written(tmp_path, "r.glm", HEAD.format(case="T") + lines)
    texts = [words(12) for _ in range(100)]
    text_in = "".join(f" {text} \n" for text in texts)
    result = subprocess.run(
        [str(RFILTER), str(glm)], input=text_in, capture_output=True, text=True, timeout=60, check=True
    )
    theirs = [" ".join(line.split()) for line in result.stdout.split("\n")[: len(texts)]]
    mapping = read_mapping(glm)
    assert [mapping.mapped(text) for text in texts] == theirs, lines
