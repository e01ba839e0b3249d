"""NIST's global mapping files (.glm): words and parts of words that count as others, applied as rfilter1 does."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from harness.base.text_file import Problems, is_comment, read_text, shown
from harness.model.transcript import Transcripts

_RULE = re.compile(
    r"\[(?P<old>[^]]*)\]\s*=>\s*(?P<new>\S.*?)\s*(?:/\s*\[(?P<left>[^]]*)\]\s*__\s*\[(?P<right>[^]]*)\])?"
)
_SETTING = re.compile(r"\*\s*(\w+)\s*=?\s*[\"'](.*)[\"']")
_EXAMPLE = "Write [OLD] => [NEW] / [LEFT] __ [RIGHT], such as [ANYMORE] => [ANY MORE] / [ ] __ [ ]"


class MappingRule(NamedTuple):
    """old becomes new where it stands between left and right, all of them characters, spaces included."""

    old: str
    new: str
    left: str
    right: str


@dataclass(frozen=True, slots=True)
class WordMapping:
    """The rules of a file, by the first character of what they replace and in its order. name: shown with results.

    case_counts: else texts are written in capitals first, as the rules are.
    """

    name: str
    rules: dict[str, list[MappingRule]]
    case_counts: bool

    def of(self, transcripts: Transcripts) -> Transcripts:
        """The transcripts with mapped texts."""
        return replace(transcripts, texts=tuple(map(self.mapped, transcripts.texts)))

    def mapped(self, text: str) -> str:
        """One pass from left to right. Of the rules that fit, the first applies; what it wrote is not mapped again."""
        whole = f" {text if self.case_counts else text.upper()} "
        made: list[str] = []
        at = 0
        while at < len(whole):
            for rule in self.rules.get(whole[at], ()):
                end = at + len(rule.old)
                if (
                    whole.startswith(rule.old, at)
                    and whole.startswith(rule.right, end)
                    and whole.endswith(rule.left, 0, at)
                ):
                    made.append(rule.new)
                    at = end
                    break
            else:
                made.append(whole[at])
                at += 1
        return " ".join("".join(made).split())


def read_mapping(path: Path) -> WordMapping:
    """The rules of a file; InputProblems with all that is wrong with it."""
    problems = Problems(str(path))
    rules: dict[str, list[MappingRule]] = defaultdict(list)
    name, case_counts = path.name, False
    for number, line in enumerate(read_text(path).split("\n"), 1):
        written = line.split(";;")[0].strip()
        if not written or is_comment(line):
            continue
        if written.startswith("*"):
            if (setting := _SETTING.fullmatch(written)) is None:
                continue  # such as a line of stars
            match setting[1], setting[2]:
                case "name", value:
                    name = value
                case "case_sensitive", value:
                    case_counts = value == "T"
                case "copy_no_hit", "F":
                    what = "copy_no_hit = 'F' would drop all words without a rule"
                    problems.add(number, 1, what, "Write * copy_no_hit = 'T'")
                case _:
                    pass
            continue
        rule = _rule(written)
        if rule is None or not rule.old:
            problems.add(number, 1, f"{shown(written)} is not a rule", _EXAMPLE)
            continue
        rules[rule.old[0]].append(rule)
    if not rules and not problems.told:
        problems.add(0, 0, "the file has no rules", _EXAMPLE)
    problems.refuse()
    return WordMapping(name, dict(rules), case_counts)


def _rule(written: str) -> MappingRule | None:
    found = _RULE.fullmatch(written)
    if found is None:
        return None
    new = found["new"]
    # Alternatives may have brackets outside or inside: [{A / B}], {[A] / [B]}. To sclite, they are { A / B }.
    if new.startswith("{") or (new.startswith("[") and new.endswith("]")):
        new = re.sub(r"[][]", "", new)
    else:
        return None
    new = re.sub(r"\s*([{}/])\s*", r" \1 ", new) if "{" in new else new
    return MappingRule(found["old"], new, found["left"] or "", found["right"] or "")
