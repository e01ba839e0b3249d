"""Errors of marked spans: words of a reference with a tag, such as `new;city york;city`."""

from __future__ import annotations

from collections.abc import Iterator

from harness.model.choices import TextUnit
from harness.model.frozen import frozen
from harness.model.transcript import Edit, Transcripts
from harness.statistics.intervals import Share
from harness.transcripts.scoring import ScoredUtterance, Scoring, WordExpansion
from harness.transcripts.words import WordRules

TAG = ";"
NOTHING_SAID = "@"


@frozen
class EntityErrors:
    """Entities with an error.

    - by_tag: (tag, share of its entities), sorted by tag.
    - total: share of all entities.
    - left_out: number of entities that do not count, since their utterance has alternatives, or the normalisation
      splits or drops words of it.
    """

    by_tag: tuple[tuple[str, Share], ...]
    total: Share
    left_out: int


def entity_errors(scoring: Scoring, references: Transcripts, word_rules: WordRules) -> EntityErrors | None:
    """Errors of the entities of a reference; None if no word has a tag, or words are not what is counted.

    Neighbouring words with the same tag are one entity. It has an error if one of its words is not correct, or a word
    was inserted within it.
    """
    tagged = {id_: text for id_, text in zip(references.ids, references.texts, strict=True) if TAG in text}
    if not tagged or scoring.unit is not TextUnit.WORD:
        return None
    word_expansion = WordExpansion(word_rules)
    by_tag: dict[str, Share] = {}
    left_out = 0
    for utterance in scoring.utterances():
        if utterance.id not in tagged:
            continue
        words = [word for word in tagged[utterance.id].split() if word != NOTHING_SAID]
        tags = [_tag_of(word) for word in words]
        bare_words = [word.removesuffix(TAG + tag) for word, tag in zip(words, tags, strict=True)]
        is_unchanged = len(tags) == sum(bool(word.reference) for word in utterance.words)
        if "{" in tagged[utterance.id] or not is_unchanged or not word_expansion.keeps_each(bare_words):
            left_out += sum(1 for _ in _entity_spans(tags))
            continue
        for tag, wrong in _judge_entities(tags, utterance):
            by_tag[tag] = by_tag.get(tag, Share()) + Share(int(wrong), 1)
    if not by_tag and not left_out:
        return None
    return EntityErrors(tuple(sorted(by_tag.items())), sum(by_tag.values(), Share()), left_out)


def _tag_of(word: str) -> str:
    r"""The tag of a word; "" for none. In `\;` the semicolon is a character of the word."""
    before, mark, tag = word.rpartition(TAG)
    return tag if mark and before and not before.endswith("\\") else ""


def _entity_spans(tags: list[str]) -> Iterator[tuple[int, int]]:
    """For each entity, the index of its first word, and that of the word after its last."""
    first = 0
    for index in range(1, len(tags) + 1):
        if index == len(tags) or tags[index] != tags[first]:
            if tags[first]:
                yield first, index
            first = index


def _judge_entities(tags: list[str], utterance: ScoredUtterance) -> Iterator[tuple[str, bool]]:
    """The tag of each entity, and whether it has an error."""
    wrong: set[int] = set()  # indices of reference words
    inserted: set[int] = set()  # indices of the reference words before which words were inserted
    index = 0
    for word in utterance.words:
        if not word.reference:
            inserted.add(index)
            continue
        if word.edit is not Edit.CORRECT:
            wrong.add(index)
        index += 1
    for start, end in _entity_spans(tags):
        has_error = not wrong.isdisjoint(range(start, end)) or not inserted.isdisjoint(range(start + 1, end))
        yield tags[start], has_error
