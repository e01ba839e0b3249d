"""Annotated utterances of any kind, for tests of what reads and writes them."""

from __future__ import annotations

from pathlib import Path

from hypothesis import strategies as st

from harness.model.understanding import Corpus, Slot, Utterance

# All that may stand in a word: no blank, line end or control, and nothing that text_file takes for one.
_LETTERS = st.characters(exclude_categories=("Cc", "Cs", "Zs", "Zl", "Zp"), exclude_characters="\ufeff")
WORDS = st.text(_LETTERS, min_size=1, max_size=8)
LABELS = st.text(
    st.characters(exclude_categories=("Cc", "Cs", "Zs", "Zl", "Zp"), exclude_characters="#\ufeff"),
    min_size=1,
    max_size=8,
)


@st.composite
def utterances(draw: st.DrawFn, number: int, *, slots: bool = True) -> Utterance:
    words = tuple(draw(st.lists(WORDS, max_size=5)))
    concepts = st.builds(lambda mark, name: mark + name, st.sampled_from(["B-", "I-"]), WORDS)
    tags = tuple(draw(st.lists(st.just("O") | concepts, min_size=len(words), max_size=len(words))))
    intents = tuple(sorted(draw(st.sets(LABELS, max_size=3))))
    listed_slots: tuple[Slot, ...] | None = None
    if slots and draw(st.booleans()):
        fewest = int(any(tag != "O" for tag in tags))  # an empty list would contradict tags that mark slots
        slot = st.builds(Slot, WORDS, st.none() | WORDS)
        listed_slots = tuple(draw(st.lists(slot, min_size=fewest, max_size=2)))
    scores = draw(st.dictionaries(LABELS, st.floats(0, 1), max_size=2)) if slots else {}
    return Utterance(f'd{number}#é,"{number}', words, intents, tags, listed_slots, scores=tuple(scores.items()))


@st.composite
def corpora(draw: st.DrawFn, *, slots: bool = True) -> Corpus:
    size = draw(st.integers(1, 4))
    return Corpus("made", tuple(draw(utterances(number, slots=slots)) for number in range(size)))


def write_folder(folder: Path, words: str | bytes, tags: str | bytes | None, labels: str | bytes | None) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in (("seq.in", words), ("seq.out", tags), ("label", labels)):
        if text is not None:
            (folder / name).write_bytes(text.encode() if isinstance(text, str) else text)
    return folder
