"""Which keys belong to which kind of trial, and what ambient sound is made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from harness.base.findings import Findings
from harness.base.findings import Path as KeyPath
from harness.model.scenario import (
    AmbientSource,
    AmbientSpec,
    ProbeSpec,
    RecordingFacts,
    SequentialTest,
    Stopping,
    TrialKind,
    TrialTemplate,
    WakeSettings,
)
from harness.model.stimulus import NoiseKind, VoiceSpec
from harness.scenario.asking_file import VoiceKeys
from harness.scenario.assets import Assets
from harness.scenario.scenario_file import SequentialKeys, StoppingKeys
from harness.scenario.trial_file import SourceKeys, TrialKeys

_ASKING = ("query", "gap_ms", "close_dialogue", "evidence", "wake")
_HEARING = ("devices", "route")
_CALLING = ("phrase", "recordings", "level", "lead_in_s", "tail_s")
_SOAKING = ("hours", "segment_s", "sources", "probe")
_REMEMBERING = ("follow_up", "waits_s", "shows", "forgets")
_FOREIGN: Mapping[TrialKind, tuple[str, ...]] = {
    TrialKind.QUERY: (*_HEARING, *_CALLING, *_SOAKING, *_REMEMBERING, "expects"),
    TrialKind.WAKE: (*_ASKING, *_SOAKING, *_REMEMBERING, "expects"),
    TrialKind.COMMAND: ("close_dialogue", "evidence", "wake", *_SOAKING, *_REMEMBERING, "expects"),
    TrialKind.AMBIENT: (*_ASKING, *_CALLING, *_REMEMBERING, "voice", "expects"),
    TrialKind.MEMORY: (*_HEARING, *_CALLING, *_SOAKING, "close_dialogue", "expects"),
    TrialKind.UNDERSTAND: ("devices", *_CALLING, *_SOAKING, *_REMEMBERING),
}
_WANTED: Mapping[TrialKind, tuple[str, ...]] = {
    TrialKind.QUERY: ("query",),
    TrialKind.WAKE: (),
    TrialKind.COMMAND: ("query",),
    TrialKind.AMBIENT: ("hours", "sources"),
    TrialKind.MEMORY: ("query", "follow_up", "waits_s", "shows"),
    TrialKind.UNDERSTAND: ("query", "expects"),
}
_EXAMPLES = {
    "query": "…",
    "hours": "1",
    "sources": "[{noise: pink}]",
    "follow_up": "…",
    "waits_s": "[2, 4, 8, 16]",
    "shows": "[some words]",
    "expects": "{intents: [set_timer], slots: {duration: ten minutes}}",
}

VoiceOf = Callable[[str | VoiceKeys | None, KeyPath], VoiceSpec | None]
TextOf = Callable[[str, KeyPath], str]


def check_kind(keys: TrialKeys, at: KeyPath, found: Findings) -> None:
    """Notes keys that only another kind of trial has, and those that exclude each other."""
    for key in _FOREIGN[keys.kind]:
        if key in keys.model_fields_set:
            kinds = [kind.value for kind in _FOREIGN if key not in _FOREIGN[kind]]
            what = f"the key {key!r} has no meaning in a trial of kind {keys.kind.value}"
            found.add((*at, key), what, f"Remove it; it belongs to kind {' or '.join(kinds)}", key=True)
    if "device" in keys.model_fields_set and "devices" in keys.model_fields_set:
        found.add((*at, "device"), "the trial has both device and devices", "Remove one of the two", key=True)
    if keys.level is not None and "recordings" not in keys.model_fields_set:
        found.add((*at, "level"), "as_recorded needs recordings", "Remove it, or add `recordings: …`", key=True)
    if keys.level is not None and "level_dbfs" in keys.model_fields_set:
        found.add((*at, "level_dbfs"), "the trial has both level and level_dbfs", "Remove one of the two", key=True)
    if keys.kind is TrialKind.WAKE and "recordings" in keys.model_fields_set and "voice" in keys.model_fields_set:
        found.add((*at, "voice"), "recordings have a voice of their own", "Remove `voice`", key=True)


def check_wanted(written: Mapping[str, object], at: KeyPath, found: Findings) -> None:
    """Notes keys that a trial of this kind must have, whatever else is wrong with it."""
    kind = written.get("kind", TrialKind.QUERY.value)
    for key in _WANTED[TrialKind(str(kind))] if kind in tuple(_WANTED) else ():
        if key not in written:
            found.add(at, f"the key {key!r} is missing", f"Add `{key}: {_EXAMPLES[key]}` here")


def name_of(keys: TrialKeys) -> str:
    """What a trial is called that has no id."""
    if keys.kind in (TrialKind.QUERY, TrialKind.COMMAND, TrialKind.UNDERSTAND):
        return keys.query or ""
    return keys.kind.value


def sounds(written: str | list[str], at: KeyPath, assets: Assets) -> tuple[tuple[str, float], ...]:
    """Absolute paths and durations (s) of the files that are meant, each once, in a fixed order."""
    meant: dict[str, float] = {}
    for one, where in _each(written, at):
        meant.update(assets.sounds(one, where))
    return tuple(meant.items())


def recordings(
    written: str | list[str], at: KeyPath, assets: Assets
) -> tuple[tuple[str, ...], tuple[RecordingFacts, ...]]:
    """Absolute paths of the recordings of a phrase, each once, in a fixed order; and what is known of each."""
    meant: dict[str, RecordingFacts] = {}
    for one, where in _each(written, at):
        meant.update(assets.recordings(one, where))
    facts = tuple(meant.values())
    return tuple(meant), facts if any(one != RecordingFacts() for one in facts) else ()


def _each(written: str | list[str], at: KeyPath) -> list[tuple[str, KeyPath]]:
    """One path or several, each with its place."""
    return [(written, at)] if isinstance(written, str) else [(one, (*at, n)) for n, one in enumerate(written)]


def ambient(
    keys: TrialKeys, at: KeyPath, assets: Assets, found: Findings, voice_of: VoiceOf, text_of: TextOf
) -> AmbientSpec | None:
    """What an ambient trial is made of; None when keys are missing, which is noted."""
    if keys.hours is None or keys.sources is None:
        return None
    sources: list[AmbientSource] = []
    for number, one in enumerate(keys.sources):
        source = _source(one, number, (*at, "sources", number), assets, found, voice_of, text_of)
        if source is None:
            continue
        if source.id in (known.id for known in sources):
            remedy = "Give it another `id: …`"
            found.add((*at, "sources", number), f"a second source is called {source.id!r}", remedy)
        sources.append(source)
    segment_s = keys.segment_s if keys.segment_s is not None else AmbientSpec(1.0, ()).segment_s
    probe = _probe(keys, segment_s, at, assets, found, voice_of, text_of)
    return AmbientSpec(keys.hours, tuple(sources), segment_s, probe) if sources else None


def _probe(
    keys: TrialKeys,
    segment_s: float,
    at: KeyPath,
    assets: Assets,
    found: Findings,
    voice_of: VoiceOf,
    text_of: TextOf,
) -> ProbeSpec | None:
    if (probe := keys.probe) is None:
        return None
    if probe.every_s < segment_s:
        what = f"probes lie between segments, and a segment lasts {segment_s:g} s"
        found.add((*at, "probe", "every_s"), what, f"Write at least {segment_s:g}, or a shorter `segment_s`")
    phrase = text_of(probe.phrase, (*at, "probe", "phrase")) if probe.phrase is not None else None
    voice = voice_of(probe.voice, (*at, "probe", "voice"))
    if probe.recording is not None and probe.voice is not None:
        found.add((*at, "probe", "voice"), "a recording has a voice of its own", "Remove `voice`", key=True)
    recording = assets.sound(probe.recording, (*at, "probe", "recording")) if probe.recording is not None else ""
    return ProbeSpec(probe.every_s, phrase, voice, probe.level_dbfs, probe.tail_s, recording)


def _source(
    keys: SourceKeys,
    number: int,
    at: KeyPath,
    assets: Assets,
    found: Findings,
    voice_of: VoiceOf,
    text_of: TextOf,
) -> AmbientSource | None:
    given = [name for name in ("recordings", "noise", "texts") if getattr(keys, name) is not None]
    if len(given) != 1:
        said = "neither recordings, noise nor texts" if not given else f"both {' and '.join(given)}"
        found.add(at, f"the source has {said}", "Write one of them; several sources make a list")
        return None
    if keys.voices is not None and keys.texts is None:
        found.add((*at, "voices"), "voices belong to texts", "Remove it, or add `texts: [...]`", key=True)
    if keys.noise is not None:
        return AmbientSource(keys.id or keys.noise, noise=NoiseKind(keys.noise), share=keys.share)
    if keys.recordings is not None:
        files = sounds(keys.recordings, (*at, "recordings"), assets)
        return AmbientSource(
            keys.id or (f"recordings{number + 1}" if number else "recordings"),
            recordings=tuple(path for path, _ in files),
            share=keys.share,
            durations_s=tuple(duration_s for _, duration_s in files),
        )
    voices = [voice_of(voice, (*at, "voices", n)) for n, voice in enumerate(keys.voices or ())]
    texts = tuple(text_of(text, (*at, "texts", n)) for n, text in enumerate(keys.texts or ()))
    name = keys.id or (f"texts{number + 1}" if number else "texts")
    return AmbientSource(name, texts=texts, voices=tuple(one for one in voices if one), share=keys.share)


def spoken_by_default(template: TrialTemplate, voice: VoiceSpec) -> AmbientSpec | None:
    """The ambient sound with the default voice for texts that name none."""
    if template.ambient is None:
        return None
    sources = tuple(
        AmbientSource(one.id, one.recordings, one.noise, one.texts, (voice,), one.share, one.durations_s)
        if one.texts and not one.voices
        else one
        for one in template.ambient.sources
    )
    return replace(template.ambient, sources=sources)


def lead_in(keys: TrialKeys, settings: WakeSettings) -> float:
    """As written; else the refractory time, so that no event before the stimulus can hide the one in it."""
    return keys.lead_in_s if keys.lead_in_s is not None else settings.refractory_s


def stopping(keys: StoppingKeys, found: Findings) -> Stopping:
    """The sequential tests; those that cannot decide anything are noted."""
    return Stopping(
        _sequential(keys.false_accepts, "false_accepts", None, found),
        _sequential(keys.false_rejects, "false_rejects", 1.0, found),
        keys.on_undecided,
    )


def _sequential(
    keys: SequentialKeys | None, name: str, highest: float | None, found: Findings
) -> SequentialTest | None:
    if keys is None:
        return None
    at = ("stopping", name)
    if not 0 < keys.good < keys.bad:
        found.add(at, "good must be more than 0, and less than bad", "Write {good: 0.1, bad: 0.5}")
    elif highest is not None and keys.bad >= highest:
        found.add((*at, "bad"), f"{keys.bad:g} is no share", "Write a share below 1, such as 0.1")
    return SequentialTest(keys.good, keys.bad, keys.alpha, keys.beta)
