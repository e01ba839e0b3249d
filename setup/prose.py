"""Checks what people read: help, errors, docstrings, comments, pages. Prints each finding; status 1 if there is one.

usage: setup/prose.py [--count] [PATH...]    (default: the whole project; --count: findings per file)
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

MAX_WORDS, COLUMNS = 25, 120
SUFFIXES = {".md", ".py", ".yaml", ".sh"}
SKIPPED = {".venv", ".git", "data", "__snapshots__", "build", "dist", "node_modules", "site"}
PLACES = ("README.md", "CONTRIBUTING.md", "docs", "harness", "scenarios", "devices", "setup", "Makefile", ".ci")

# Left: what sounds translated or vague. Right: what to write.
PATTERNS = {
    r"(?<!there )\b(?:is|are|was|were) no (?!longer|more|one|way|(?:differ|bett|great|larg|small)\w+)\b": "is not a",
    r"\bno word for\b": "is not supported",
    r"\b(?:is|are|was|were|be) told\b": "is reported, or say who reports what",
    r"\btells? (?!apart\b)": "reports, shows",
    r"\b(?:of|than|as|had) before\b": "previous, earlier",
    r"\bby itself without\b": "by default when there is no",
    r"\bharmless\b": "escaped, sanitised",
    r"\b(?:is|are|was|were|be) (?:waited|looked|asked) for\b": "the harness waits for, looks for, asks for",
    r"\bcosts? (?:a|the|one) (?:file|trial|attempt)\b": "the file is rejected",
    r"\bwhat of (?:a|the)\b": "which part of",
    r"\bwhat limits are on\b": "what limits are compared with",
    r"\bwho has looked\b|\btakes? the word of\b": "what an operator observed",
    r"\bhappenings?\b": "event",
    r"\beach the best\b": "well-maintained",
    r"\bfigures?\b(?! of merit)": "number, result, metric, statistics",
    r"\b(?:go|goes|gone|went|going) on with\b": "resume, continue",
    r"\bwhoever\b": "you, anyone who",
    r"\bsays of itself\b|\bis ill\b": "reports",
    r"\bbe it\b|\bof old\b|\bmeanwhile\b.*\bmeanwhile\b": "rephrase",
    r"\ball the same\b|\bnonetheless so\b": "anyway",
    r"\bparted\b": "split",
    r"\bout of sight\b": "off screen",
    r"\bcame about\b|\bcomes about\b|\bcome about\b": "happen, occur",
    r"\bthe others'\b": "rephrase",
}
COMPILED = [(re.compile(pattern, re.IGNORECASE), instead) for pattern, instead in PATTERNS.items()]
SENTENCE = re.compile(
    r"(?<=[.!?:])\s+(?=[A-Z`\"(\[])|\n\s*\n|(?:^|\n)\s*(?:[-*>#|]|\d+\.)\s|(?<=[.;])\s+(?=[a-z_][\w, \[\]]{0,40}:\s)"
    r"|(?<=\S) {2,}(?=\S)"
)
"""A text is also split where a docstring explains the next field or argument (`name: what it is`), and in tables."""
CODE = re.compile(r"`[^`\n]*`")
COMMENT = re.compile(r"(?:^|\s)#\s+(.*)")
STYLES = re.compile(r";\s*\}|\bCREATE TABLE\b|\bdefault-src\b")
"""Strings that browsers, terminals and databases read."""


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """What a person reads in a file, with the line at which it begins."""
    source = path.read_text(encoding="utf-8")
    match path.suffix:
        case ".md":
            yield from _markdown(source)
        case ".py":
            yield from _python(source)
        case _:
            yield from _comments(source)


def _markdown(source: str) -> Iterator[tuple[int, str]]:
    """Paragraphs, items of lists, headings, and each cell of a table; no code blocks."""
    block: list[str] = []
    is_code, first = False, 1
    for number, line in enumerate([*source.splitlines(), ""], 1):
        if line.lstrip().startswith("```"):
            is_code = not is_code
            line = ""
        elif is_code:
            continue
        if line.lstrip().startswith("|"):
            yield from ((number, cell) for cell in CODE.sub("X", line).split("|"))
            line = ""
        starts_block = re.match(r"\s*([-*>#]|\d+\.)\s", line)
        if line.strip() and not starts_block:
            if not block:
                first = number
            block.append(line)
            continue
        if block:
            yield first, "\n".join(block)
        block, first = ([line], number) if line.strip() else ([], number + 1)


def _python(source: str) -> Iterator[tuple[int, str]]:
    for number, text in _strings(source):
        if len(text.split()) > 3 and not STYLES.search(text):
            yield number, text
    yield from _blocks(
        (token.start[0], token.string.lstrip("# "))
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type == tokenize.COMMENT
    )


def _strings(source: str) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value
        elif isinstance(node, ast.JoinedStr):
            parts = (part.value if isinstance(part, ast.Constant) else "X" for part in node.values)
            yield node.lineno, "".join(map(str, parts))


def _comments(source: str) -> Iterator[tuple[int, str]]:
    matches = ((number, COMMENT.search(line)) for number, line in enumerate(source.splitlines(), 1))
    yield from _blocks((number, match[1]) for number, match in matches if match)


def _blocks(lines: Iterator[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """Joins the comments on successive lines to one text."""
    first, block = 0, list[str]()
    for number, text in lines:
        if block and number != first + len(block):
            yield first, "\n".join(block)
            block = []
        if not block:
            first = number
        block.append(text)
    if block:
        yield first, "\n".join(block)


def findings(path: Path) -> Iterator[tuple[int, str]]:
    """What is to be changed in a file, each with its line."""
    for first, text in texts(path):
        plain = re.sub(r"\]\([^)]*\)", "]", CODE.sub(lambda code: "X" * len(code[0]), text))
        for pattern, instead in COMPILED:
            for match in pattern.finditer(plain):
                yield first + plain.count("\n", 0, match.start()), f"{match[0].strip()!r}: write {instead}"
        yield from ((first, finding) for finding in _sentence_findings(plain))
    if path.suffix == ".md":
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if len(line) > COLUMNS and not line.startswith(("|", "    ")) and not re.search(r"\]\(|http|!\[", line):
                yield number, f"a line of {len(line)} characters"


def _sentence_findings(plain: str) -> Iterator[str]:
    without_abbreviations = re.sub(r"\b(e\.g|i\.e|vs|No|no)\. ", r"\1 ", plain)
    for sentence in SENTENCE.split(without_abbreviations):
        words = sentence.split()
        if len(words) > MAX_WORDS:
            yield f"a sentence of {len(words)} words: {' '.join(words[:6])} …"
        if sentence.count(";") > 1:
            yield f"a sentence with {sentence.count(';')} semicolons: {' '.join(words[:6])} …"


def files(places: list[str]) -> Iterator[Path]:
    for place in map(Path, places):
        for path in sorted(place.rglob("*")) if place.is_dir() else [place]:
            is_ours = path.suffix in SUFFIXES and not SKIPPED & set(path.parts) and path.name != Path(__file__).name
            if is_ours and "<!-- Generated by" not in path.read_text(encoding="utf-8"):
                yield path


def main(arguments: list[str]) -> int:
    counts: Counter[str] = Counter()
    for path in files([argument for argument in arguments if argument != "--count"] or list(PLACES)):
        for number, finding in sorted(findings(path)):
            counts[str(path)] += 1
            if "--count" not in arguments:
                print(f"{path}:{number}: {finding}")
    if "--count" in arguments:
        for name, count in counts.most_common():
            print(f"{count:6} {name}")
    print(f"{counts.total()} findings", file=sys.stderr)
    return min(1, counts.total())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
