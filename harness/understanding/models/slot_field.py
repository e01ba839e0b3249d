"""A conditional random field of slots over words and the intents of their utterance, by python-crfsuite."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from harness.model.errors import PluginError
from harness.model.understanding import Utterance
from harness.understanding.models.linear_model import REMEDY

OUTSIDE = "O"
_MAGIC = b"lCRF"
_DIGIT = re.compile(r"\d")


@dataclass(frozen=True, slots=True)
class FieldRule:
    """iterations: of training. l1, l2: weights that make features few, and small. rare: less often, one is left out."""

    iterations: int
    l1: float
    l2: float
    rare: int


class SlotField:
    """A trained field. trained: the library's own bytes, b"" where no utterance had a slot; ValueError for others."""

    def __init__(self, trained: bytes) -> None:
        self.trained = trained
        self._tagger: Any = None
        if trained:
            if not _is_whole(trained):
                raise ValueError("it is no whole model of a random field")
            self._tagger = pycrfsuite().Tagger()
            self._tagger.open_inmemory(trained)

    @classmethod
    def fit(cls, tagged: Sequence[Utterance], rule: FieldRule) -> Self:
        """Learns from the tags of utterances, and from the intents of their annotation."""
        if not concept_tags(tagged):
            return cls(b"")
        trainer = pycrfsuite().Trainer(algorithm="lbfgs", verbose=False)
        trainer.set_params({
            "c1": rule.l1, "c2": rule.l2, "feature.minfreq": rule.rare, "max_iterations": rule.iterations,
        })  # fmt: skip
        for one in tagged:
            trainer.append(features(one.words, one.intents or ()), list(one.tags or ()))
        import tempfile  # here, since it takes long to import

        with tempfile.TemporaryDirectory(prefix="harness-crf-") as folder:
            path = Path(folder) / "field.crfsuite"
            trainer.train(str(path))
            return cls(path.read_bytes())

    def tags(self, words: tuple[str, ...], intents: tuple[str, ...]) -> tuple[str, ...]:
        """One for each word."""
        if self._tagger is None or not words:
            return (OUTSIDE,) * len(words)
        return tuple(self._tagger.tag(features(words, intents)))


def concept_tags(utterances: Sequence[Utterance]) -> set[str]:
    """All tags but O."""
    return {tag for one in utterances for tag in one.tags or ()} - {OUTSIDE}


def with_concepts(words: Sequence[str], tags: Sequence[str]) -> str:
    """The text with each slot as one word, its concept: "play <artist> in the <room>"."""
    found: list[str] = []
    before = OUTSIDE
    for word, tag in zip(words, tags, strict=True):
        if tag == OUTSIDE:
            found.append(word)
        elif tag[0] == "B" or tag[2:] != before[2:]:
            found.append(f"<{tag[2:]}>")
        before = tag
    return " ".join(found)


def features(words: Sequence[str], intents: Sequence[str]) -> list[list[str]]:
    """Features of each word: itself, its neighbours up to three away, its ends, its shape, and the intents."""
    lower = [_plain(word) for word in words]
    padded = ["<s3>", "<s2>", "<s1>", *lower, "<e1>", "<e2>", "<e3>"]
    found = []
    for at, word in enumerate(lower):
        before3, before2, before, _, after, after2, after3 = padded[at : at + 7]
        here = [
            "bias",
            f"w={word}",
            f"w-1={before}",
            f"w+1={after}",
            f"w-2={before2}",
            f"w+2={after2}",
            f"w-3={before3}",
            f"w+3={after3}",
            f"w-1w={before}|{word}",
            f"ww+1={word}|{after}",
            f"w-2w-1={before2}|{before}",
            f"w+1w+2={after}|{after2}",
            f"w-1w+1={before}|{after}",
            f"end={word[-3:]}",
            f"start={word[:3]}",
            f"shape={_shape(words[at])}",
        ]
        for intent in intents:
            here += [f"i={intent}", f"i={intent}|{word}", f"i={intent}|-1{before}"]
        found.append(here)
    return found


def pycrfsuite() -> Any:
    """The library; PluginError where it is not installed."""
    try:
        import pycrfsuite as library
    except ImportError as error:
        raise PluginError(f"python-crfsuite cannot be loaded: {error}", remedy=REMEDY) from error
    return library


def _plain(word: str) -> str:
    """Small letters, digits as 0; a NUL, at which the library would end a text, as a replacement character."""
    small = _DIGIT.sub("0", word.lower()).replace("\0", "�")
    return small.encode("utf-8", "replace").decode("utf-8")


def _shape(word: str) -> str:
    kinds = (
        "9" if letter.isdigit() else "A" if letter.isupper() else "a" if letter.isalpha() else "." for letter in word
    )
    shape = ""
    for kind in kinds:
        if not shape.endswith(kind):
            shape += kind
    return shape[:8]


def _is_whole(trained: bytes) -> bool:
    """Whether the bytes begin as a CRFsuite model does and are as many as it says: the library trusts both."""
    return trained[:4] == _MAGIC and int.from_bytes(trained[4:8], "little") == len(trained)
