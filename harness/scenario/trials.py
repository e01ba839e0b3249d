"""Keys of each kind of trial, and what ambient sound consists of."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace

import numpy as np

from harness.base.findings import Findings, KeyPath
from harness.model.effect import EffectCheck, StateWanted
from harness.model.numbers import exact
from harness.model.procedure import EDITIONS, Procedure
from harness.model.scenario import (
    AmbientSource,
    AmbientSpec,
    Evidence,
    MemorySpec,
    ProbeSpec,
    RecordingFacts,
    RepeatUntil,
    Scenario,
    SequentialTest,
    Stopping,
    TrialKind,
    TrialTemplate,
    WakeSettings,
)
from harness.model.stimulus import NoiseKind, NoiseSpec, VoiceSpec
from harness.model.understanding import ExpectedFrame, Slot, intent_set
from harness.scenario.assets import Assets
from harness.scenario.keys import (
    DefaultsKeys,
    EffectKeys,
    ExpectsKeys,
    RepromptKeys,
    SourceKeys,
    SpreadKeys,
    TrialKeys,
    VoiceKeys,
)
from harness.scenario.policies import ProcedureKeys, SequentialKeys, StoppingKeys

_QUERY_KEYS = ("query", "gap_ms", "close_dialogue", "evidence", "wake")
_DEVICE_KEYS = ("devices", "route")
_PHRASE_KEYS = ("phrase", "recordings", "level", "lead_in_s", "tail_s")
_AMBIENT_KEYS = ("hours", "segment_s", "sources", "probe")
_MEMORY_KEYS = ("follow_up", "waits_s", "shows", "forgets")
_CORE_KEY = "core_capability"
_GROUP_KEYS = ("query_class", _CORE_KEY)
_ANSWER_RULES = {"max_attempts", "response_timeout_s", "response_max_s", "end_silence_ms", "operator_wait_s", "until"}
_UNUSED_RULES: Mapping[TrialKind, set[str]] = {
    TrialKind.WAKE: _ANSWER_RULES | {"evidence_wait_s"},
    TrialKind.COMMAND: _ANSWER_RULES,
    TrialKind.AMBIENT: _ANSWER_RULES | {"evidence_wait_s", "speak_within_s", "max_prompts"},
}
"""Keys of `reprompt` that change nothing in trials of a kind."""
_FORBIDDEN_KEYS: Mapping[TrialKind, tuple[str, ...]] = {
    TrialKind.QUERY: (*_DEVICE_KEYS, *_PHRASE_KEYS, *_AMBIENT_KEYS, *_MEMORY_KEYS, "expects"),
    TrialKind.WAKE: (*_QUERY_KEYS, *_AMBIENT_KEYS, *_MEMORY_KEYS, "expects", *_GROUP_KEYS),
    TrialKind.COMMAND: ("close_dialogue", "evidence", "wake", *_AMBIENT_KEYS, *_MEMORY_KEYS, "expects", _CORE_KEY),
    TrialKind.AMBIENT: (*_QUERY_KEYS, *_PHRASE_KEYS, "opening", *_MEMORY_KEYS, "voice", "expects", *_GROUP_KEYS),
    TrialKind.MEMORY: (*_DEVICE_KEYS, *_PHRASE_KEYS, "opening", *_AMBIENT_KEYS, "close_dialogue", "expects", _CORE_KEY),
    TrialKind.UNDERSTAND: ("devices", *_PHRASE_KEYS, *_AMBIENT_KEYS, *_MEMORY_KEYS),
}
_REQUIRED_KEYS: Mapping[TrialKind, tuple[str, ...]] = {
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
"""Takes a voice as written and its path. Returns the voice; None without one, or after a noted problem."""
TextOf = Callable[[str, KeyPath], str]
"""Takes a text as written and its path. Returns it with its variables replaced."""


def check_kind(keys: TrialKeys, key_path: KeyPath, findings: Findings) -> None:
    """Notes keys of other kinds of trials, and keys that exclude each other."""
    for key in _FORBIDDEN_KEYS[keys.kind]:
        if key in keys.model_fields_set:
            kinds = [kind.value for kind in _FORBIDDEN_KEYS if key not in _FORBIDDEN_KEYS[kind]]
            problem = f"the key {key!r} does not apply to trials of kind {keys.kind.value}"
            findings.add(
                (*key_path, key), problem, f"Remove `{key}`; it applies to kind {' or '.join(kinds)}", key=True
            )
    for key in sorted(_UNUSED_RULES.get(keys.kind, set()) & (keys.reprompt or RepromptKeys()).model_fields_set):
        problem = f"the key {key!r} does not apply to trials of kind {keys.kind.value}"
        findings.add(
            (*key_path, "reprompt", key), problem, f"Remove `{key}`; no question is repeated in these trials", key=True
        )
    if "device" in keys.model_fields_set and "devices" in keys.model_fields_set:
        findings.add(
            (*key_path, "device"), "the trial has both `device` and `devices`", "Remove one of the two", key=True
        )
    if len(set(keys.devices or ())) < len(keys.devices or ()):
        findings.add((*key_path, "devices"), "a device is listed twice", "List each device only once")
    _refuse_empty_list(keys.recordings, key_path, findings)
    if keys.level is not None and "recordings" not in keys.model_fields_set:
        findings.add(
            (*key_path, "level"),
            "`level: as_recorded` needs `recordings`",
            "Remove `level`, or add `recordings: …`",
            key=True,
        )
    if keys.level is not None and "level_dbfs" in keys.model_fields_set:
        findings.add(
            (*key_path, "level_dbfs"), "the trial has both `level` and `level_dbfs`", "Remove one of the two", key=True
        )
    if keys.kind is TrialKind.WAKE and "recordings" in keys.model_fields_set and "voice" in keys.model_fields_set:
        findings.add((*key_path, "voice"), "`voice` does not apply to recordings", "Remove `voice`", key=True)


def _refuse_empty_list(names: str | list[str] | None, key_path: KeyPath, findings: Findings) -> None:
    if names == []:
        problem, remedy = "the list of recordings is empty", "List at least one file, or remove the key"
        findings.add((*key_path, "recordings"), problem, remedy)


def check_required(section: Mapping[str, object], key_path: KeyPath, findings: Findings) -> None:
    """Notes missing keys that a trial of this kind requires."""
    kind = section.get("kind", TrialKind.QUERY.value)
    if kind not in tuple(_REQUIRED_KEYS):
        return
    for key in _REQUIRED_KEYS[TrialKind(str(kind))]:
        if key not in section:
            findings.add(key_path, f"the key {key!r} is missing", f"Add `{key}: {_EXAMPLES[key]}` here")


def default_name(keys: TrialKeys) -> str:
    """The name of a trial without an id: that of its query, else its kind."""
    return keys.query or keys.kind.value


def read_sounds(names: str | list[str], key_path: KeyPath, assets: Assets) -> tuple[tuple[str, float], ...]:
    """Absolute paths and durations (s) of the named files, each once, in a fixed order."""
    durations: dict[str, float] = {}
    for name, entry_path in _name_paths(names, key_path):
        durations.update(assets.sound_durations(name, entry_path))
    return tuple(durations.items())


def read_recordings(
    names: str | list[str], key_path: KeyPath, assets: Assets
) -> tuple[tuple[str, ...], tuple[RecordingFacts, ...]]:
    """Absolute paths of the recordings of a phrase, each once, in a fixed order, and the facts about each."""
    facts_by_path: dict[str, RecordingFacts] = {}
    for name, entry_path in _name_paths(names, key_path):
        facts_by_path.update(assets.recording_facts(name, entry_path))
    facts = tuple(facts_by_path.values())
    return tuple(facts_by_path), facts if any(fact != RecordingFacts() for fact in facts) else ()


def _name_paths(names: str | list[str], key_path: KeyPath) -> list[tuple[str, KeyPath]]:
    """(Name, its path in the YAML file) of a single name or a list of them."""
    if isinstance(names, str):
        return [(names, key_path)]
    return [(name, (*key_path, number)) for number, name in enumerate(names)]


def ambient_spec(
    keys: TrialKeys, key_path: KeyPath, assets: Assets, findings: Findings, voice_of: VoiceOf, text_of: TextOf
) -> AmbientSpec | None:
    """The sound of an ambient trial; None if keys are missing, which `check_required` notes."""
    if keys.hours is None or keys.sources is None:
        return None
    sources: list[AmbientSource] = []
    for number, source_keys in enumerate(keys.sources):
        source = _ambient_source(
            source_keys,
            number=number,
            key_path=(*key_path, "sources", number),
            assets=assets,
            findings=findings,
            voice_of=voice_of,
            text_of=text_of,
        )
        if source is None:
            continue
        if source.id in (earlier.id for earlier in sources):
            remedy = "Choose another `id` for this source"
            findings.add((*key_path, "sources", number), f"two sources are named {source.id!r}", remedy)
        sources.append(source)
    segment_s = keys.segment_s if keys.segment_s is not None else AmbientSpec(1.0, ()).segment_s
    probe = _probe_spec(
        keys,
        segment_s=segment_s,
        key_path=key_path,
        assets=assets,
        findings=findings,
        voice_of=voice_of,
        text_of=text_of,
    )
    return AmbientSpec(keys.hours, tuple(sources), segment_s, probe) if sources else None


def _probe_spec(
    keys: TrialKeys,
    segment_s: float,
    key_path: KeyPath,
    assets: Assets,
    findings: Findings,
    voice_of: VoiceOf,
    text_of: TextOf,
) -> ProbeSpec | None:
    if (probe := keys.probe) is None:
        return None
    if probe.every_s < segment_s:
        problem = f"probes are played between segments, so not more often than every {exact(segment_s)} s (`segment_s`)"
        findings.add(
            (*key_path, "probe", "every_s"), problem, f"Write {exact(segment_s)} or more, or reduce `segment_s`"
        )
    phrase = text_of(probe.phrase, (*key_path, "probe", "phrase")) if probe.phrase is not None else None
    voice = voice_of(probe.voice, (*key_path, "probe", "voice"))
    if probe.recording is not None and probe.voice is not None:
        findings.add((*key_path, "probe", "voice"), "`voice` does not apply to recordings", "Remove `voice`", key=True)
    recording = (
        assets.sound_path(probe.recording, (*key_path, "probe", "recording")) if probe.recording is not None else ""
    )
    return ProbeSpec(probe.every_s, phrase, voice, probe.level_dbfs, probe.tail_s, recording)


def _ambient_source(
    keys: SourceKeys,
    number: int,
    key_path: KeyPath,
    assets: Assets,
    findings: Findings,
    voice_of: VoiceOf,
    text_of: TextOf,
) -> AmbientSource | None:
    content_keys = [name for name in ("recordings", "noise", "texts") if getattr(keys, name) is not None]
    if len(content_keys) != 1:
        contents = "neither recordings, noise nor texts" if not content_keys else f"both {' and '.join(content_keys)}"
        findings.add(
            key_path, f"the source has {contents}", "Write exactly one of `recordings`, `noise` and `texts` per source"
        )
        return None
    if keys.voices is not None and keys.texts is None:
        findings.add(
            (*key_path, "voices"),
            "`voices` applies only to `texts`",
            "Remove `voices`, or add `texts: [...]`",
            key=True,
        )
    _refuse_empty_list(keys.recordings, key_path, findings)
    if keys.noise is not None:
        return AmbientSource(keys.id or keys.noise, noise=NoiseKind(keys.noise), share=keys.share)
    if keys.recordings is not None:
        files = read_sounds(keys.recordings, (*key_path, "recordings"), assets)
        return AmbientSource(
            keys.id or (f"recordings{number + 1}" if number else "recordings"),
            recordings=tuple(path for path, _ in files),
            share=keys.share,
            durations_s=tuple(duration_s for _, duration_s in files),
        )
    voices = [voice_of(voice, (*key_path, "voices", n)) for n, voice in enumerate(keys.voices or ())]
    texts = tuple(text_of(text, (*key_path, "texts", n)) for n, text in enumerate(keys.texts or ()))
    name = keys.id or (f"texts{number + 1}" if number else "texts")
    return AmbientSource(name, texts=texts, voices=tuple(voice for voice in voices if voice), share=keys.share)


def with_default_voice(template: TrialTemplate, voice: VoiceSpec) -> AmbientSpec | None:
    """The ambient sound, with the default voice for texts without voices."""
    if template.ambient is None:
        return None
    sources = [
        replace(source, voices=(voice,)) if source.texts and not source.voices else source
        for source in template.ambient.sources
    ]
    return replace(template.ambient, sources=tuple(sources))


def lead_in_s(keys: TrialKeys, settings: WakeSettings) -> float:
    """The time before the stimulus in seconds: as written, else the refractory time.

    With the latter, no earlier wake event can hide the one in the stimulus.
    """
    return keys.lead_in_s if keys.lead_in_s is not None else settings.refractory_s


def read_stopping(keys: StoppingKeys, findings: Findings) -> Stopping:
    """The sequential tests; notes those that cannot decide anything."""
    return Stopping(
        _sequential_test(keys.false_accepts, "false_accepts", None, findings),
        _sequential_test(keys.false_rejects, "false_rejects", 1.0, findings),
        keys.on_undecided,
    )


def read_procedure(keys: ProcedureKeys | None, findings: Findings) -> Procedure | None:
    """The procedure; notes an edition whose clauses are not known."""
    if keys is None:
        return None
    editions = EDITIONS[keys.name]
    if keys.edition not in editions:
        problem = f"the clauses of {keys.name.value} {keys.edition!r} are not known"
        findings.add(("procedure", "edition"), problem, f"Write one of these editions: {', '.join(editions)}")
    return Procedure(keys.name, keys.edition)


def _sequential_test(
    keys: SequentialKeys | None, name: str, limit: float | None, findings: Findings
) -> SequentialTest | None:
    if keys is None:
        return None
    key_path = ("stopping", name)
    if not 0 < keys.good < keys.bad:
        findings.add(key_path, "`good` must be more than 0 and less than `bad`", "Write {good: 0.1, bad: 0.5}")
    elif limit is not None and keys.bad >= limit:
        findings.add((*key_path, "bad"), f"{exact(keys.bad)} is not a share", "Write a share below 1, such as 0.1")
    return SequentialTest(keys.good, keys.bad, keys.alpha, keys.beta)


def effect_check(keys: TrialKeys, key_path: KeyPath, findings: Findings, text_of: TextOf) -> EffectCheck | None:
    """The effect check of a trial; None if it has none, or a wrong one, which is noted."""
    effect = keys.effect
    if effect is None:
        return None
    key_path = (*key_path, "effect")
    if keys.kind is not TrialKind.QUERY:
        problem = f"the key 'effect' does not apply to trials of kind {keys.kind.value}"
        findings.add(key_path, problem, f"Remove `effect`; it applies to kind {TrialKind.QUERY.value}", key=True)
    _check_effect(effect, key_path, findings)
    state = tuple(
        StateWanted(name, value if value is None else text_of(value, (*key_path, "state", name)))
        for name, value in effect.state.items()
    )
    return EffectCheck(
        wanted=text_of(effect.wanted, (*key_path, "wanted")),
        state=state,
        within_s=effect.within_s,
        question=text_of(effect.question, (*key_path, "question")) if effect.question is not None else "",
        after_s=effect.after_s,
        at=effect.at,
    )


def _check_effect(effect: EffectKeys, key_path: KeyPath, findings: Findings) -> None:
    """Notes keys of an effect that exclude or need each other."""
    time_key = next((key for key in ("at", "after_s") if key in effect.model_fields_set), None)
    if effect.at is not None and effect.after_s is not None:
        remedy = 'Remove one of the two: `at: "01:00"` is a time of day, `after_s: 60` a wait'
        findings.add((*key_path, "at"), "the effect has both `at` and `after_s`", remedy, key=True)
    if not effect.state and effect.question is None:
        remedy = "Add `state: {name: value}` that the device reports, or a `question: …` for the operator"
        findings.add(
            key_path, "the effect has neither `state` nor `question`, so nothing can check it", remedy, key=True
        )
    elif time_key is not None and effect.question is None:
        remedy = f"Add `question: …`, or remove `{time_key}`; for a device, use `within_s`"
        findings.add(
            (*key_path, time_key),
            f"`{time_key}` needs a `question`: it sets when a person checks the effect",
            remedy,
            key=True,
        )
    if "within_s" in effect.model_fields_set and not effect.state:
        remedy = "Remove `within_s`, or add `state: {name: value}`"
        findings.add(
            (*key_path, "within_s"),
            "`within_s` needs a `state`: it limits the time for the device's report",
            remedy,
            key=True,
        )


def read_expected(keys: TrialKeys, key_path: KeyPath, findings: Findings, text_of: TextOf) -> ExpectedFrame | None:
    """What the device should understand; None if nothing is written, or for another kind of trial."""
    expected = keys.expects
    if expected is None or keys.kind is not TrialKind.UNDERSTAND:
        return None
    key_path = (*key_path, "expects")
    intents: list[str] = []
    for number, text in enumerate([expected.intents] if isinstance(expected.intents, str) else expected.intents):
        entry_path = (*key_path, "intents", number) if isinstance(expected.intents, list) else (*key_path, "intents")
        for name in intent_set(text_of(text, entry_path)):
            if name in intents:
                findings.add(entry_path, f"the intent {name!r} is listed twice", "Remove one of the two")
            intents.append(name)
    return ExpectedFrame(tuple(sorted(set(intents))), _expected_slots(expected, (*key_path, "slots"), text_of))


def check_rule(keys: TrialKeys, defaults: DefaultsKeys | None, key_path: KeyPath, findings: Findings) -> None:
    """Notes a reprompt rule or evidence that does not fit what is expected of the trial."""
    default = defaults or DefaultsKeys()
    if keys.kind is TrialKind.UNDERSTAND:
        evidence, origin = keys.evidence or default.evidence, "" if keys.evidence else " (from the defaults)"
        if evidence is Evidence.NONE:
            problem = f"`evidence: none`{origin} cannot show what the device understood"
            remedy = "Write `evidence: auto`, `evidence: device` or `evidence: operator` in the trial"
            findings.add((*key_path, "evidence") if keys.evidence else key_path, problem, remedy)
        return
    until = keys.reprompt.until if keys.reprompt else None
    if keys.kind.asks and (until or default.reprompt.until) is RepeatUntil.UNDERSTOOD:
        place = (*key_path, "reprompt", "until") if until else ("defaults", "reprompt", "until")
        name = keys.id or keys.query or keys.kind.value
        problem = f"the trial {name!r} (kind {keys.kind.value}) has no `expects`, so `until: understood` cannot apply"
        remedy = "Write `until: recognised`, or `kind: understand` and `expects: {intents: […]}`"
        findings.add(place, problem, remedy, key=True)


def _expected_slots(expected: ExpectsKeys, key_path: KeyPath, text_of: TextOf) -> tuple[Slot, ...] | None:
    match expected.slots:
        case None:
            return None
        case dict() as by_concept:
            pairs = [(concept, value, (*key_path, concept)) for concept, value in by_concept.items()]
        case slots:
            pairs = [(slot.concept, slot.value, (*key_path, number, "value")) for number, slot in enumerate(slots)]
    return tuple(
        Slot(concept, None if value is None else text_of(value, value_path)) for concept, value, value_path in pairs
    )


MAX_DETECTION_LAG_S = 0.3
"""The longest delay of the report that speech has ended, s. DETECTION_LAG_S of a session has this value."""


def check_follow_up(
    section: Mapping[str, object], queries: Collection[str], key_path: KeyPath, findings: Findings
) -> None:
    """Notes a follow-up that is not a stimulus, or that is the first query itself."""
    follow_up = section.get("follow_up")
    if not isinstance(follow_up, str):
        return
    is_known = findings.is_known((*key_path, "follow_up"), "stimulus", follow_up, queries, "Stimuli")
    if is_known and follow_up == section.get("query"):
        remedy = "Choose a stimulus that makes sense only to a device that remembers the query"
        findings.add((*key_path, "follow_up"), "the follow-up is the query itself, which does not need memory", remedy)


def memory_spec(keys: TrialKeys, key_path: KeyPath, findings: Findings, text_of: TextOf) -> MemorySpec | None:
    """The follow-up of a memory trial; None if keys are missing, which `check_required` notes."""
    if keys.follow_up is None or keys.waits_s is None or keys.shows is None:
        return None
    if isinstance(keys.waits_s, SpreadKeys):
        waits_s = _geometric_waits(keys.waits_s, key_path, findings)
    else:
        waits_s = tuple(keys.waits_s)
        if len(waits_s) == 1:
            remedy = "List a wait after which the device still remembers, and one after which it does not"
            findings.add((*key_path, "waits_s"), "a single wait cannot show how long the device remembers", remedy)
        for number, wait_s in enumerate(waits_s):
            if wait_s in waits_s[:number]:
                problem = f"the wait of {exact(wait_s)} s is listed twice"
                findings.add(
                    (*key_path, "waits_s", number),
                    problem,
                    "Remove one of the two; `repeat` sets how often each wait is tried",
                )
    shows = tuple(text_of(text, (*key_path, "shows", n)) for n, text in enumerate(keys.shows))
    forgets = tuple(text_of(text, (*key_path, "forgets", n)) for n, text in enumerate(keys.forgets or ()))
    for number, text in enumerate(forgets):
        if text.casefold() in (phrase.casefold() for phrase in shows):
            problem = f"{text!r} is listed under both `shows` and `forgets`"
            findings.add((*key_path, "forgets", number), problem, "Remove the text from one of the two lists")
    return MemorySpec(keys.follow_up, waits_s, shows, forgets)


def _geometric_waits(keys: SpreadKeys, key_path: KeyPath, findings: Findings) -> tuple[float, ...]:
    """Waits in seconds in equal ratios, rounded to 0.1 s. The harness cannot keep a wait more exactly than that."""
    if not keys.from_s < keys.to:
        problem = f"the waits go from {exact(keys.from_s)} s to {exact(keys.to)} s"
        findings.add((*key_path, "waits_s", "to"), problem, "Write a `to` that is larger than `from`")
        return ()
    waits_s = tuple(round(float(wait_s), 1) for wait_s in np.geomspace(keys.from_s, keys.to, keys.count))
    if len(set(waits_s)) < len(waits_s) or waits_s[0] == 0:
        remedy = "Write a smaller `count` or a larger `to`"
        findings.add(
            (*key_path, "waits_s", "count"), f"{keys.count} waits in this range are less than 0.1 s apart", remedy
        )
    return waits_s


def noise_notes(scenario: Scenario) -> Iterator[str]:
    """A note if the level of the speech varies, and the only noise follows it. This is not a mistake."""
    axes = {axis.name: axis.values for axis in scenario.matrix.axes}
    levels = next((name for name in ("level_dbfs", "level_spl") if len(axes.get(name, ())) > 1), None)
    noises = axes.get("noise", (scenario.defaults.noise,))
    if levels and len(noises) == 1 and isinstance(noise := noises[0], NoiseSpec) and noise.snr_db is not None:
        yield (
            f"varying the axis {levels} changes little: the noise follows the speech at {exact(noise.snr_db)} dB SNR. "
            "For noise at a constant level, write level_dbfs or level_spl instead of snr_db"
        )


def wait_notes(scenario: Scenario) -> Iterator[str]:
    """Notes on waits that are too short for the harness to keep. These are not mistakes."""
    for trial in scenario.trials:
        if trial.memory is None:
            continue
        rule = trial.reprompt or scenario.defaults.reprompt
        shortest_s = rule.end_silence_ms / 1000 + MAX_DETECTION_LAG_S
        short = ", ".join(exact(wait_s) for wait_s in sorted(trial.memory.waits_s) if wait_s < shortest_s)
        if short:
            yield (
                f"the trial {trial.id!r} cannot keep waits below {exact(shortest_s)} s ({short}): detecting the end of "
                f"an answer takes that long. For shorter waits, reduce `end_silence_ms`"
            )
