"""Normalisation files: a base, and the phrases that count as others."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field

from harness.base.findings import MAX_TEXT, Findings, Id, Keys, enum_validator, read_keys, validation_error
from harness.model.choices import FileKind
from harness.model.errors import InputError
from harness.model.transcript import ENGLISH, MAX_PAIRS, Normalisation, Rewriting
from harness.transcripts.readings import Words
from harness.transcripts.words import normalise


def _check_phrase(text: str) -> str:
    if len(text) > MAX_TEXT:
        raise validation_error(f"the text has more than {MAX_TEXT} characters", "Shorten it")
    return text


def _check_pair(pair: Sequence[str]) -> Sequence[str]:
    if len(pair) != 2:
        raise validation_error(f"{len(pair)} texts, but a pair needs 2", "Use a pair such as [light bulb, lightbulb]")
    return pair


Phrase = Annotated[str, AfterValidator(_check_phrase), Field(json_schema_extra={"maxLength": MAX_TEXT})]
Pair = Annotated[list[Phrase], AfterValidator(_check_pair), Field(json_schema_extra={"minItems": 2, "maxItems": 2})]


class NormalisationKeys(Keys):
    """A normalisation file."""

    normalisation: Id = Field(description="Name of the list; shown with every result.")
    base: Annotated[Normalisation, enum_validator(Normalisation, Normalisation.EXPANDED_SNOR)] = Field(
        description="Normalisation that is applied first: verbatim, plain, spoken or snor.",
        json_schema_extra={
            "enum": [
                normalisation.value
                for normalisation in Normalisation
                if normalisation is not Normalisation.EXPANDED_SNOR
            ]
        },
    )
    same: list[Pair] = Field(
        min_length=1,
        max_length=MAX_PAIRS,
        description='Pairs [written, counts as]: [light bulb, lightbulb]; [uh, ""] leaves a word out.',
    )


def load_normalisation(path: Path, language: str = ENGLISH) -> Rewriting:
    """The normalisation in a file. Raises InputProblems with all its mistakes. Raises InputError if it is not YAML.

    language: BCP 47 code of the language in which SPOKEN reads the pairs.
    """
    keys, findings = read_keys(path, FileKind.NORMALISATION, NormalisationKeys)
    pairs = _pairs(keys, findings, language)
    findings.refuse()
    return Rewriting(keys.normalisation, keys.base, pairs)


def _pairs(keys: NormalisationKeys, findings: Findings, language: str) -> tuple[tuple[Words, Words], ...]:
    """The pairs of the file, normalised, without those that change nothing. Adds a finding for each mistake."""
    pairs: dict[Words, Words] = {}
    first_numbers: dict[Words, int] = {}
    for number, (left, right) in enumerate(keys.same):
        pair_path = ("same", number)
        words = _normalised_words(left, keys.base, (*pair_path, 0), findings, language)
        meaning = _normalised_words(right, keys.base, (*pair_path, 1), findings, language)
        if words is None or meaning is None or _is_built_in(left, right, keys.base, language):
            continue
        if not words:
            problem = f"the base {keys.base.value!r} leaves nothing of {left!r}"
            findings.add((*pair_path, 0), problem, "Use words that the base keeps")
        elif words in first_numbers:
            line = findings.place(("same", first_numbers[words])).line
            problem = f"{left!r} is already on line {line}"
            findings.add((*pair_path, 0), problem, "Remove one of the two pairs")
        elif words == meaning:
            problem = f"{left!r} and {right!r} are already the same under the base {keys.base.value!r}"
            findings.add(pair_path, problem, "Remove the pair")
        else:
            first_numbers[words] = number
            pairs[words] = meaning
    return tuple(pairs.items())


def _is_built_in(left: str, right: str, base: Normalisation, language: str) -> bool:
    """Whether SPOKEN already has the effect of a pair, such as [uh, ""] or [colour, color]. Such pairs are allowed,
    since lists may be older than its rules."""
    if base is not Normalisation.SPOKEN or normalise(left, base, language) != normalise(right, base, language):
        return False
    return normalise(left, Normalisation.PLAIN) not in ((), normalise(right, Normalisation.PLAIN))


def _normalised_words(
    text: str, base: Normalisation, key_path: tuple[str | int, ...], findings: Findings, language: str
) -> Words | None:
    """The words of a text; None, with a finding, if the base refuses it."""
    try:
        return normalise(text, base, language)
    except InputError as error:
        findings.add(key_path, f"{text!r} cannot be read as {base.value}: {error.what}", error.remedy)
        return None
