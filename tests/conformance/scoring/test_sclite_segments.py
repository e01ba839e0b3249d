"""Segments, ids and speakers are what sclite makes of them."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from harness.model.choices import TranscriptFormat as Format
from harness.model.errors import InputError
from harness.model.transcript import Normalisation
from harness.transcripts.alignment import align
from harness.transcripts.files.transcripts import read_pair, speaker_scheme
from harness.transcripts.scoring import score, word_confidences
from harness.transcripts.words import WordRules
from tests.conformance.scoring.sclite import SCLITE, ScliteUtterance, needs_sclite, utterances
from tests.known import known

pytestmark = needs_sclite

PLACES = 400
WORDS = ("a", "B", "c", "De", "f")
Words = tuple[tuple[str, ...], tuple[str, ...]]


def ran(folder: Path, first: str, second: str, *options: str) -> subprocess.CompletedProcess[bytes]:
    command = [str(SCLITE), "-r", f"r.{first}", first, "-h", f"h.{second}", second, "-f", "0", *options]
    arguments = command if "-o" in options else [*command, "-o", "sgml", "stdout"]
    return subprocess.run(arguments, capture_output=True, cwd=folder, timeout=120, check=False)


def found(folder: Path, first: str, second: str, *options: str) -> dict[str, ScliteUtterance]:
    result = ran(folder, first, second, *options)
    assert result.returncode == 0, result.stderr
    return {utterance.id: utterance for utterance in utterances(result.stdout.decode())}


def differences(folder: Path, first: Format, second: Format, *options: str) -> list[str]:
    """What is not the same, utterance by utterance: the words of both sides, the path and the speaker."""
    references, hypotheses = read_pair(folder / f"r.{first.value}", folder / f"h.{second.value}")
    heard = dict(zip(hypotheses.ids, hypotheses.texts, strict=True))
    theirs = found(folder, first.value, second.value, *options)
    assert len(theirs) == len(references)
    wrong: list[str] = []
    for id_, text, speaker in zip(references.ids, references.texts, references.speakers, strict=True):
        reference, hypothesis = text.lower().split(), heard.get(id_, "").lower().split()
        their = theirs.get(id_.lower())
        if their is None:
            wrong.append(f"{id_}: sclite has none")
            continue
        ours = (reference, hypothesis, align(reference, hypothesis), speaker.lower())
        spoken_words = [word.reference for word in their.words if word.reference]
        spoken = [word.hypothesis for word in their.words if word.hypothesis]
        if ours != (spoken_words, spoken, their.path, their.speaker):
            wrong.append(f"{id_}: {ours} {their}")
    return wrong


@dataclass
class Drawn:
    """A random reference in segments, and time-marked words that know nothing of them."""

    source: random.Random
    segments: list[str] = field(default_factory=list)
    words: list[str] = field(default_factory=list)

    def text(self, max_words: int) -> str:
        return " ".join(self.source.choices(WORDS, k=self.source.randint(0, max_words)))

    def place(self, file: str, channel: str) -> None:
        """Segments with gaps, overlaps and none between them; words before, between, in and after them."""
        begin = self.source.randint(0, 300)
        for _ in range(self.source.randint(1, 8)):
            end = begin + self.source.choice((0, 20, 50, 100, 250))
            text = "IGNORE_TIME_SEGMENT_IN_SCORING" if self.source.random() < 0.1 else self.text(6)
            label = self.source.choice(("", "<o,f> "))
            speaker = self.source.choice(("ann", "Ann", "bob-1", "c_d"))
            self.segments.append(f"{file} {channel} {speaker} {begin / 100:.2f} {end / 100:.2f} {label}{text}")
            begin = max(begin, end + self.source.choice((0, 0, 0, 30, -40)))
        if self.source.random() < 0.1:
            return  # nothing was heard there
        start = self.source.randint(-100, 200)
        for _ in range(self.source.randint(1, 30)):
            duration = self.source.choice((0, 10, 20, 30, 31, -10))
            name = self.source.choice((file, file.upper()))
            word = self.source.choice(WORDS)
            self.words.append(f"{name} {channel} {start / 100:.2f} {duration / 100:.2f} {word}")
            start += self.source.choice((0, 5, 10, 20, 35, 50))


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_words_are_cut_as_sclite_cuts_them(tmp_path: Path, seed: int) -> None:
    drawn = Drawn(random.Random(seed))
    for number in range(PLACES):
        drawn.place(f"f{number // 3:04d}", "ABC"[number % 3])
    (tmp_path / "r.stm").write_text("\n".join(drawn.segments) + "\n")
    (tmp_path / "h.ctm").write_text("\n".join(drawn.words) + "\n")
    assert differences(tmp_path, Format.STM, Format.CTM) == []


def _channels(seed: int) -> Iterator[str]:
    source = random.Random(seed)
    for number in range(PLACES):
        for begins_s in range(source.randint(1, 12)):
            yield f"f{number // 2:04d} {'AB'[number % 2]} {begins_s} 0.5 {source.choice(WORDS)}"


def test_two_files_of_words_have_the_utterances_that_sclite_makes(tmp_path: Path) -> None:
    for name, seed in (("r", 4), ("h", 5)):
        (tmp_path / f"{name}.ctm").write_text("\n".join(_channels(seed)) + "\n")
    assert differences(tmp_path, Format.CTM, Format.CTM) == []


ALTERNATIVES = """f A 0.1 0.1 a
f A * * <ALT_BEGIN>
f A 1.5 0.1 b
f A * * <ALT>
f A 1.5 0.1 x
f A {latest} 0.1 y
f A * * <ALT_END>
f A 2.5 0.1 d
"""


@pytest.mark.parametrize(("latest", "segment"), [("1.9", 0), ("2.1", 1), ("1.95", 1)])
def test_hypothesis_alternatives_go_to_the_segment_of_their_latest_word(
    tmp_path: Path, latest: str, segment: int
) -> None:
    (tmp_path / "r.stm").write_text("f A s 0 2 a x y\nf A s 2 3 x y d\n")
    (tmp_path / "h.ctm").write_text(ALTERNATIVES.format(latest=latest))
    _, hypotheses = read_pair(tmp_path / "r.stm", tmp_path / "h.ctm")
    assert ["{ b / x y }" in text for text in hypotheses.texts] == [segment == 0, segment == 1]
    theirs = found(tmp_path, "stm", "ctm")
    heard = ["y" in [word.hypothesis for word in utterance.words] for utterance in theirs.values()]
    assert heard == [segment == 0, segment == 1]


REFUSED = [
    ("stm", "f A s 0 2 a\n", "ctm", "f A 0 1 a\ng A 0 1 b\n"),
    ("stm", "f A s 0 2 a\n", "trn", "a (s-000)\n"),
    ("trn", "a (s_1)\nb (S_1)\n", "trn", "a (s_1)\n"),
    ("trn", "a (s_1\n", "trn", "a (s_1)\n"),
    ("ctm", "f A 0 1 a\n", "ctm", "f A 0 1 a\ng A 0 1 b\n"),
]


@pytest.mark.parametrize(("first", "reference", "second", "hypothesis"), REFUSED)
def test_input_refused_by_sclite_is_refused(
    tmp_path: Path, first: str, reference: str, second: str, hypothesis: str
) -> None:
    (tmp_path / f"r.{first}").write_text(reference)
    (tmp_path / f"h.{second}").write_text(hypothesis)
    assert ran(tmp_path, first, second, "-i", "spu_id").returncode != 0
    with pytest.raises(InputError):
        read_pair(tmp_path / f"r.{first}", tmp_path / f"h.{second}")


def test_ids_pair_without_case_as_in_sclite(tmp_path: Path) -> None:
    (tmp_path / "r.trn").write_text("a b (Ann_1)\n(bob_1)\nb ( x ) (Bob_2)\n".replace("( x )", "x"))
    (tmp_path / "h.trn").write_text(";; made up\na B (ann_1)\nc (BOB_1)\n\n(bob_2)\n")
    references, hypotheses = read_pair(tmp_path / "r.trn", tmp_path / "h.trn")
    assert references.ids == hypotheses.ids == ("Ann_1", "bob_1", "Bob_2")
    theirs = found(tmp_path, "trn", "trn", "-i", "spu_id")
    assert {id_: utterance.path for id_, utterance in theirs.items()} == {"ann_1": "CC", "bob_1": "I", "bob_2": "DD"}


def _ids(seed: int) -> list[str]:
    source = random.Random(seed)
    drawn = {"".join(source.choices("aBc.0-_", k=source.randint(3, 9))).lower() for _ in range(1500)}
    # An id without a mark gets the speaker of another one from sclite, with an error message: a slip of its own.
    return sorted(id_ for id_ in drawn if "-" in id_ or "_" in id_)


@pytest.mark.parametrize("scheme", ["spu_id", "swb", "rm", "wsj", "sp"])
def test_speakers_are_taken_from_ids_as_in_sclite(tmp_path: Path, scheme: str) -> None:
    ids = _ids(6)
    for name in ("r", "h"):
        (tmp_path / f"{name}.trn").write_text("".join(f"a ({id_.upper()})\n" for id_ in ids))
    theirs = found(tmp_path, "trn", "trn", "-i", scheme)
    ours = speaker_scheme(scheme)([id_.upper() for id_ in ids])
    # With sp, the name of the speaker is the id in its brackets.
    assert {id_: utterance.speaker.strip("()") for id_, utterance in theirs.items()} == dict(
        zip(ids, ours, strict=True)
    )


@pytest.mark.parametrize("seed", range(4))
def test_cross_entropy_of_confidences_matches_sclite(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    references, words = [], []
    for number in range(40):
        begins_s = 8.0 * number
        sentence = [chance.choice(WORDS) for _ in range(8)]
        references.append(f"f1 A s{number % 3} {begins_s:.2f} {begins_s + 8:.2f} {' '.join(sentence)}\n")
        for index, word in enumerate(sentence):
            sure = chance.choice([0.0, 1.0]) if chance.random() < 0.01 else chance.betavariate(4, 1.5)
            heard = word if chance.random() < sure else chance.choice(WORDS)
            if chance.random() > 0.1:
                words.append(f"f1 A {begins_s + index + 0.1:.2f} 0.50 {heard} {sure:.4f}\n")
    (tmp_path / "r.stm").write_text("".join(references))
    (tmp_path / "h.ctm").write_text("".join(words))
    result = ran(tmp_path, "stm", "ctm", "-s", "-o", "sum", "stdout")
    (total,) = (line for line in result.stdout.decode().split("\n") if "Sum/Avg" in line)
    reference, hypothesis = read_pair(tmp_path / "r.stm", tmp_path / "h.ctm")
    verbatim = WordRules(Normalisation.VERBATIM)
    confidences = known(word_confidences(score(reference, hypothesis, verbatim), hypothesis, verbatim))
    assert f"{known(confidences.nce):.3f}" == total.split("|")[-2].strip()
