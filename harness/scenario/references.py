"""Reference words of a stimulus, and how they are compared with what the device heard."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from harness.base.findings import Findings, KeyPath
from harness.model.bench import Bench
from harness.model.errors import InputError, InputProblems
from harness.model.scenario import Normalisation, Query, RecognitionRule, Scenario
from harness.model.stimulus import VoiceSpec
from harness.model.transcript import ENGLISH, Rewriting
from harness.scenario.assets import Assets
from harness.scenario.keys import RecognisedKeys, StimulusKeys
from harness.scenario.trials import TextOf
from harness.transcripts import snor
from harness.transcripts.files.normalisation_file import load_normalisation
from harness.transcripts.readings import rewrite
from harness.transcripts.snor import split_id
from harness.transcripts.words import normalise

NORMALISATION_PATH = ("recognised", "normalisation")


def read_recognised(keys: RecognisedKeys, assets: Assets, findings: Findings) -> RecognitionRule:
    """When a transcript counts as right; notes mistakes in a normalisation file with their own place."""
    if isinstance(keys.normalisation, Normalisation):
        return RecognitionRule(keys.normalisation, keys.wer)
    rewriting = _read_rewriting(keys.normalisation, assets, findings)
    return RecognitionRule(wer=keys.wer) if rewriting is None else RecognitionRule(rewriting.base, keys.wer, rewriting)


def _read_rewriting(text: str, assets: Assets, findings: Findings) -> Rewriting | None:
    path = assets.file_path(text, NORMALISATION_PATH)
    if path is None:
        return None
    try:
        return load_normalisation(path)
    except InputError as error:
        for problem in error.problems if isinstance(error, InputProblems) else (error,):
            findings.add_at(problem.place or findings.place(NORMALISATION_PATH), problem.what, problem.remedy)
        return None


def read_reference(keys: StimulusKeys, key_path: KeyPath, text_of: TextOf, findings: Findings) -> str:
    """The reference words: Lexical SNOR of `sro`, else the transcript of a recording or the text."""
    if keys.sro is None and keys.text is None:
        return text_of(keys.transcript or "", (*key_path, "transcript"))
    if keys.sro is None:
        return text_of(keys.text or "", (*key_path, "text"))
    sro_path = (*key_path, "sro")
    if keys.transcript is not None:
        findings.add(sro_path, "the stimulus has both `transcript` and `sro`", "Remove one of the two", key=True)
    try:
        words = snor.words(text_of(keys.sro, sro_path))
    except InputError as error:
        _note_error(error, sro_path, findings)
        return ""
    if not words:
        findings.add(
            sro_path,
            "`sro` contains no spoken words",
            "Add the spoken words; events, pauses and false starts do not count",
        )
    return " ".join(words)


def numeral_notes(scenario: Scenario, benches: Iterable[Bench]) -> Iterator[str]:
    """Notes on languages in which the harness cannot read numerals. These are not mistakes.

    A voice without a language speaks that of the bench's devices.
    """
    if scenario.recognised.normalisation is not Normalisation.SPOKEN:
        return
    # Here, since its lists take a while to read.
    from harness.transcripts.spoken_words import primary_language, says_numerals

    declared = (*(query.voice for query in scenario.queries), *(trial.voice for trial in scenario.trials))
    varied = (value for axis in scenario.matrix.axes for value in axis.values)
    voices = [voice for voice in (scenario.defaults.voice, *declared, *varied) if isinstance(voice, VoiceSpec)]
    languages = dict.fromkeys(voice.language for voice in voices)
    if VoiceSpec().language in languages:
        languages |= dict.fromkeys(device.profile.language for bench in benches for device in bench.devices)
    for language in languages:
        if not says_numerals(language):
            yield (
                f"numerals cannot be read in {language}: under `spoken`, digits match only digits. "
                "Add the other wordings to `alternatives`"
            )
        elif scenario.recognised.rewriting is not None and primary_language(language) != ENGLISH:
            yield f"numerals in {scenario.recognised.name!r} are read in English: write them as words in {language}"


def check_queries(
    queries: Iterable[tuple[Query, StimulusKeys, KeyPath]], rule: RecognitionRule, findings: Findings
) -> None:
    """Notes references and alternatives that the normalisation cannot read, or that it leaves empty."""
    for query, keys, key_path in queries:
        source_key = next((name for name in ("sro", "text") if getattr(keys, name) is not None), "transcript")
        if source_key == "sro" and rule.normalisation is Normalisation.VERBATIM:
            problem = f"the words of `sro` are in capitals, but case counts under {rule.name!r}"
            findings.add((*key_path, "sro"), problem, "Set `recognised: {normalisation: …}` to snor, plain or spoken")
        texts = (
            (alternative, (*key_path, "alternatives", number)) for number, alternative in enumerate(query.alternatives)
        )
        for text, place in ((query.reference, (*key_path, source_key)), *texts):
            _check_words(text, place, rule, findings)


def _check_words(text: str, key_path: KeyPath, rule: RecognitionRule, findings: Findings) -> None:
    if not text:
        return  # The reader has already noted why it is missing.
    if rule.normalisation is Normalisation.SNOR and (id_ := split_id(text)[1]):
        problem = f"under {rule.name!r}, ({id_}) would be read as an utterance id, and only `sro` may contain one"
        findings.add(key_path, problem, "Remove the brackets or the word in them, or write it as `sro: …`")
        return
    try:
        words = normalise(text, rule.normalisation)
    except InputError as error:
        _note_error(error, key_path, findings)
        return
    if not (words if rule.rewriting is None else rewrite(words, rule.rewriting)):
        findings.add(key_path, f"no words remain under {rule.name!r}", "Write at least one spoken word")


def _note_error(error: InputError, key_path: KeyPath, findings: Findings) -> None:
    # Quotes and variables shift characters in the file, so the message gives the position in the text.
    place = f" (character {error.place.column} of the text)" if error.place and error.place.column else ""
    findings.add(key_path, f"{error.what}{place}", error.remedy)
