"""NIST's sclite (Debian's sctk) as a far end: what it makes of references and hypotheses, utterance by utterance.

`-o sgml stdout -f 0` puts every path on standard output and nothing into any folder. sclite takes an utterance without
words on either side or on both: `(id)` alone is a line, an empty line none. It groups its output by speaker; here it is
put back in the order of the ids. A reference whose id has no hypothesis is not in it.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.model.transcript import AlignedWord, Edit

SCLITE = Path(os.environ.get("SCLITE", "/usr/lib/sctk/bin/sclite"))
CASE_COUNTS = "-s"
needs_sclite = pytest.mark.skipif(not SCLITE.exists(), reason=f"no {SCLITE} (Debian's sctk)")

_SPEAKER = re.compile(r'<SPEAKER id="(.*)">')
_UTTERANCE = re.compile(r'<PATH id="\((.*?)\)".*>')
# Words are between quotes that nothing escapes, and hold none in our tests; times and confidences may follow.
_STEP = re.compile(r'([CSDI]),(?:"([^"]*)")?,(?:"([^"]*)")?[^:]*')


@dataclass(frozen=True, slots=True)
class ScliteUtterance:
    """An utterance as sclite aligned it."""

    id: str
    speaker: str
    words: tuple[AlignedWord, ...]

    @property
    def path(self) -> str:
        """A letter of `Edit` for each step."""
        return "".join(word.edit.value for word in self.words)


def output(reference: Path, hypothesis: Path, *options: str) -> str:
    """What sclite prints for two trn files; AssertionError when it fails. options: replace `-o sgml stdout`'s."""
    flags = options if "-o" in options else (*options, "-o", "sgml", "stdout")
    command = [
        str(SCLITE),
        "-r",
        str(reference),
        "trn",
        "-h",
        str(hypothesis),
        "trn",
        "-i",
        "spu_id",
        "-f",
        "0",
        *flags,
    ]
    ran = subprocess.run(command, capture_output=True, cwd=hypothesis.parent, timeout=120, check=False)
    assert ran.returncode == 0, (ran.stdout + ran.stderr).decode("latin-1")
    return ran.stdout.decode("utf-8", "surrogateescape")


def utterances(sgml: str) -> Iterator[ScliteUtterance]:
    """Reads what sclite printed, in its order."""
    speaker = id_ = ""
    for line in sgml.split("\n"):
        if match := _SPEAKER.fullmatch(line):
            speaker = match[1]
        elif match := _UTTERANCE.fullmatch(line):
            id_ = match[1]
        elif not line.startswith(("<SYSTEM", "</")) and id_:
            steps = _STEP.findall(line)
            yield ScliteUtterance(
                id_, speaker, tuple(AlignedWord(Edit(step), spoken, heard) for step, spoken, heard in steps)
            )
            id_ = ""


def align(
    folder: Path, references: Sequence[str], hypotheses: Sequence[str], *options: str, ids: Sequence[str] | None = None
) -> list[ScliteUtterance]:
    """What sclite makes of pairs of texts, one for one. folder: to write trn files into.

    options: of sclite, such as `-s` (case counts), `-D`, `-F`; case counts when none are given. ids: s_00000 and so on
    when none are given.
    """
    names = ids if ids is not None else [f"s_{number:05d}" for number in range(len(references))]
    paths = folder / "ref.trn", folder / "hyp.trn"
    for path, texts in zip(paths, (references, hypotheses), strict=True):
        lines = (f"{text} ({name})\n" for name, text in zip(names, texts, strict=True))
        path.write_text("".join(lines), encoding="utf-8", errors="surrogateescape", newline="\n")
    by_id = {utterance.id: utterance for utterance in utterances(output(*paths, *(options or (CASE_COUNTS,))))}
    return [by_id[name] for name in names]
