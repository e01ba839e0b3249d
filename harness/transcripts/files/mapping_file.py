"""NIST's global mapping files (.glm): words and parts of words that count as others. Applied as csrfilt.sh does it.

Sources: NIST SCTK 2.4.10 (GLMRules.txt, rfilter1, csrfilt.sh) and the files in its doc/trans_rules.
"""

from __future__ import annotations

import re
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from harness.base.grouping import group_by
from harness.base.text_file import COMMENT, Problems, read_text, shown
from harness.model.choices import TranscriptFormat
from harness.model.errors import InputError, InputProblems
from harness.model.frozen import frozen
from harness.model.transcript import Transcripts

_ARROW = "=>"
_SETTING_LINE = re.compile(r"""\*.*?["']([^"']*)["']""")
_INPUTS = re.compile(r';;\s+INPUT_DEPENDENT_APPLICATION\s*=\s*"([^"]*)"')
_CONTEXT = re.compile(r"(?P<left>[^_]*)_+(?P<right>.*)")
_TRUE = ("T", "YES", "TRUE")
_WITH_RULES = (TranscriptFormat.CTM, TranscriptFormat.STM, TranscriptFormat.TRN)
_OTHER_FORMAT = "txt"
"""The name that csrfilt.sh has for the format of any other file (its option `-i`)."""
_OPTIONAL = re.compile(r"(?<!\S)\((\S+)\)(?!\S)")
_SPACED_OPTIONAL = re.compile(r"\( ([^()]*) \)")
_EXAMPLE = "Use OLD => NEW or [OLD] => [NEW] / [LEFT] __ [RIGHT], such as ANYMORE => ANY MORE / [ ] __ [ ]"


class MappedSide(StrEnum):
    """The side to which a text belongs, `-t` of csrfilt.sh. Rules below INPUT_DEPENDENT_APPLICATION may apply to one
    side only, or to one format only."""

    REFERENCE = "ref"
    HYPOTHESIS = "hyp"


class MappingRule(NamedTuple):
    """`old` becomes `new` where it stands between `left` and `right`. All four are texts of characters; spaces
    count."""

    old: str
    new: str
    left: str
    right: str


@frozen
class WordMapping:
    """The rules of a file for one kind of input.

    - name: name of the mapping, shown with results.
    - rules: in the order of the file, by the first character of the text that they replace.
    - case_counts: if False, texts and rules are compared in capitals.
    """

    name: str
    rules: dict[str, list[MappingRule]]
    case_counts: bool

    def mapped_transcripts(self, transcripts: Transcripts) -> Transcripts:
        """The transcripts with mapped texts."""
        return replace(transcripts, texts=tuple(map(self.mapped, transcripts.texts)))

    def mapped(self, text: str) -> str:
        """The text after one pass from left to right. Of the rules that fit, the first applies. Its result is not
        mapped again.

        The words of an optional `(w)` are mapped, too; each word that they become is optional.
        """
        whole = f" {text if self.case_counts else text.upper()} "
        whole, optional = _OPTIONAL.subn(r"( \1 )", whole)
        outputs: list[str] = []
        position = 0
        while position < len(whole):
            for rule in self.rules.get(whole[position], ()):
                end = position + len(rule.old)
                if (
                    whole.startswith(rule.old, position)
                    and whole.startswith(rule.right, end)
                    and whole.endswith(rule.left, 0, position)
                ):
                    outputs.append(rule.new)
                    position = end
                    break
            else:
                outputs.append(whole[position])
                position += 1
        mapped = "".join(outputs)
        if optional:
            mapped = _SPACED_OPTIONAL.sub(lambda words: " ".join(f"({word})" for word in words[1].split()), mapped)
        return " ".join(mapped.split())


def read_mapping(
    path: Path,
    encoding: str | None = None,
    form: TranscriptFormat = TranscriptFormat.TRN,
    side: MappedSide | None = None,
) -> WordMapping:
    """The rules of a file for texts of a format and a side. Raises InputProblems with all its mistakes.

    Rules below `;; INPUT_DEPENDENT_APPLICATION = "REGEX"` apply if the expression matches in the name of the format or
    in that of the side.
    """
    inputs = (form.value if form in _WITH_RULES else _OTHER_FORMAT, side.value if side else "")
    try:
        text = read_text(path, encoding)
    except InputError as error:
        # This option names the encoding of the mapping; --encoding is that of the transcripts.
        problems = error.problems if isinstance(error, InputProblems) else (error,)
        for problem in problems:
            problem.remedy = problem.remedy.replace("--encoding", "--glm-encoding")
        raise
    return _MappingReader(path, inputs).mapping(text)


class _MappingReader:
    """Reads a file line by line, and collects its mistakes. inputs: names of the format and the side of the texts."""

    def __init__(self, path: Path, inputs: tuple[str, str]) -> None:
        self._problems = Problems(str(path))
        self._inputs = inputs
        self._name, self._case_counts = path.name, False
        self._applies = True
        self._rules: list[tuple[bool, MappingRule]] = []

    def mapping(self, text: str) -> WordMapping:
        lines = text.split("\n")
        mark = _comment_mark(lines[0])
        for number, line in enumerate(lines, 1):
            if (inputs := _INPUTS.match(line)) is not None:
                self._read_section(number, inputs[1])
            elif line.startswith("*") and (_ARROW not in line or _SETTING_LINE.match(line)):
                self._read_setting(number, line)
            elif rule_text := line.split(mark)[0].strip():
                self._parse_rule(number, rule_text)
        self._problems.demand(self._rules, "the file has no rules", _EXAMPLE)
        rules = [rule for applies, rule in self._rules if applies]
        if not self._case_counts:
            rules = [MappingRule(*map(str.upper, rule)) for rule in rules]
        return WordMapping(self._name, group_by((rule.old[0], rule) for rule in rules), self._case_counts)

    def _read_section(self, number: int, expression: str) -> None:
        """Begins a section, of which the rules apply if the expression matches one of the inputs."""
        try:
            self._applies = any(re.search(expression.lower(), name) for name in self._inputs if name)
        except re.error as error:
            problem = f"{shown(expression)} is not a regular expression: {error}"
            self._problems.add(number, 1, problem, 'Use an expression that matches the format, such as "ctm"')

    def _read_setting(self, number: int, line: str) -> None:
        """Reads a setting as rfilter1 does: the value is in quotes, and the keyword is anywhere in the line."""
        if (setting := _SETTING_LINE.match(line)) is None:
            return  # not a setting, but a line of stars, for example
        keywords, value = line[: setting.start(1)].upper(), setting[1]
        is_true = value.upper() in _TRUE
        if "COPY_NO_HIT" in keywords and not is_true:
            problem = f"copy_no_hit = '{shown(value)}' would drop every word that no rule matches"
            self._problems.add(number, 1, problem, "Use * copy_no_hit = 'T'")
        elif "CASE_SENSITIVE" in keywords:
            self._case_counts = is_true
        elif "NAME" in keywords:
            self._name = value

    def _parse_rule(self, number: int, text: str) -> None:
        rule = _rule_of(text)
        if rule is None or not rule.old:
            self._problems.add(number, 1, f"{shown(text)} is not a rule", _EXAMPLE)
        else:
            self._rules.append((self._applies, rule))


def _comment_mark(first_line: str) -> str:
    """The mark that begins a comment. As in rfilter1, it is the first token of the file, if that has no letter or
    digit."""
    mark, *_ = first_line.split() or [""]
    is_mark = mark and not any(map(str.isalnum, mark)) and mark[0] != "*" and _ARROW not in first_line
    return mark if is_mark else COMMENT


def _rule_of(text: str) -> MappingRule | None:
    """The rule in a line: OLD => NEW, or [OLD] => [NEW] / [LEFT] __ [RIGHT]. None if it is not a rule."""
    old, arrow, rest = text.partition(_ARROW)
    if not arrow:
        return None
    new, left, right = rest, "", ""
    before, slash, after = rest.rpartition("/")
    # A slash within braces, or one that no context with `__` follows, belongs to the new text.
    context = _CONTEXT.fullmatch(after) if slash and before.count("{") == before.count("}") else None
    if context is not None:
        new, left, right = before, _unquote(context["left"]), _unquote(context["right"])
    new = _unquote(new)
    if "{" in new:
        # Brackets may be outside, inside or unclosed: [{A / B}], {[A] / [B]}, [{A / B}. To sclite, all are { A / B }.
        new = re.sub(r"\s*([{}/])\s*", r" \1 ", re.sub(r"[][]", "", new))
        if new.count("{") != new.count("}"):
            return None
    return MappingRule(_unquote(old), new, left, right)


def _unquote(text: str) -> str:
    """The text within brackets or double quotes, with its spaces. Without these, the text without spaces around it."""
    text = text.strip()
    return text[1:-1] if len(text) > 1 and text[0] + text[-1] in ("[]", '""') else text
