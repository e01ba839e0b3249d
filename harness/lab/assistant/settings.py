"""The assistant's settings file: name, voice, reports and faults."""

from __future__ import annotations

import re
from dataclasses import field
from enum import StrEnum
from pathlib import Path
from typing import Any

from pydantic import Field

from harness.base.findings import Findings, Keys, parse_keys
from harness.base.plugins import Group, names
from harness.base.strict_yaml import read_bytes
from harness.model.errors import nearest
from harness.model.frozen import frozen
from harness.model.stimulus import VoiceSpec


class ReportKind(StrEnum):
    """What the assistant reports over MQTT, each on its own topic.

    INTENT: what it understood, also if that is nothing. HEARTBEAT: that it hears. STATE: timers, alarms and the list,
    when they change.
    """

    WAKE = "wake"
    TRANSCRIPT = "transcript"
    INTENT = "intent"
    RESPONSE = "response"
    STATUS = "status"
    HEARTBEAT = "heartbeat"
    STATE = "state"


class FaultAction(StrEnum):
    """The effect of a fault.

    - MISHEAR: understands other words
    - MISS_WAKE: does not wake
    - LATE: answers later
    - SILENT: does not answer
    - KEEP_TALKING: repeats its answer many times
    - RESTART: restarts instead of answering
    - TWO_PART_ANSWER: says something, pauses, then answers
    - NO_EFFECT: claims success, but does nothing
    - ODD_WORDS: does it, and says nonsense
    - OTHER_INTENT, LOSE_SLOT, WRONG_VALUE: recognises the words, understands something else, and does nothing
    """

    MISHEAR = "mishear"
    MISS_WAKE = "miss_wake"
    LATE = "late"
    SILENT = "silent"
    KEEP_TALKING = "keep_talking"
    RESTART = "restart"
    TWO_PART_ANSWER = "two_part_answer"
    NO_EFFECT = "no_effect"
    ODD_WORDS = "odd_words"
    OTHER_INTENT = "other_intent"
    LOSE_SLOT = "lose_slot"
    WRONG_VALUE = "wrong_value"


SLIPS = frozenset((FaultAction.OTHER_INTENT, FaultAction.LOSE_SLOT, FaultAction.WRONG_VALUE))
"""Faults of understanding: the words are right, but their meaning is wrong."""
_FAULTS_WITH_AS = (FaultAction.MISHEAR, FaultAction.OTHER_INTENT, FaultAction.WRONG_VALUE)
"""Faults that need the key `as`."""


@frozen
class FaultRule:
    """Applies `action` if all conditions of the rule hold.

    - when: regular expression to find in the recognised text; None: any text
    - wakes: numbers of the wake events to which it applies, from 1 at the start; None: all
    - probability: probability that it applies, 0–1, drawn with the settings' seed
    - times: how often it applies at most; None: no limit
    - heard_as: other words for MISHEAR, an intent for OTHER_INTENT, a value for WRONG_VALUE
    - slot: name of the slot that LOSE_SLOT or WRONG_VALUE changes; "" is the first slot
    - late_s: how much later it answers with LATE
    """

    action: FaultAction
    when: re.Pattern[str] | None = None
    wakes: frozenset[int] | None = None
    probability: float = 1.0
    times: int | None = None
    heard_as: str = ""
    late_s: float = 6.0
    slot: str = ""


@frozen
class AssistantSettings:
    """All settings. The defaults are a well-behaved assistant that reports everything."""

    device: str = "assistant"
    wake_engine: str = "microwakeword"
    wake_phrase: str = "alexa"
    recogniser: str = "faster_whisper"
    voice: VoiceSpec = field(default_factory=lambda: VoiceSpec(engine="flite", name="rms"))
    level_dbfs: float = -26.0
    memory_s: float = 8.0
    """How long it remembers a question for a follow-up."""
    dialogue_s: float = 8.0
    """How long it listens after it has asked a question."""
    rings: int = 3
    """How often a timer or alarm rings unless it is stopped."""
    endpoint_ms: int = 600
    """Silence that ends a query."""
    query_max_s: float = 8.0
    """Length of the longest query."""
    earcons: bool = False
    """Whether it beeps when it wakes, and when nothing was said."""
    barge_in: bool = False
    """Whether it hears the wake phrase while it speaks."""
    reports: frozenset[ReportKind] = frozenset(ReportKind)
    mqtt: str = "lab"
    """Broker for its reports: "lab", "host:port", or "" for none."""
    microphone: str = "dut_mic"
    """Name of the sound device that it hears with."""
    speaker: str = "dut_speaker"
    """Name of the sound device that it speaks with."""
    seed: int = 0
    """Seed of random faults."""
    faults: tuple[FaultRule, ...] = ()


class _VoiceKeys(Keys):
    engine: str
    name: str
    rate_wpm: int | None = None
    pitch: int | None = None
    language: str = "en-US"


class _FaultKeys(Keys):
    do: str
    when: str | None = None
    wakes: list[int] | None = Field(default=None, min_length=1)
    probability: float = Field(default=1.0, ge=0, le=1)
    times: int | None = Field(default=None, ge=1)
    # The key is `as`, which is reserved in Python.
    heard_as: str | None = Field(default=None, alias="as")
    late_s: float | None = Field(default=None, gt=0, le=120)
    slot: str | None = None


class _SettingsKeys(Keys):
    assistant: str
    wake_engine: str = "microwakeword"
    wake_phrase: str = "alexa"
    recogniser: str = "faster_whisper"
    voice: _VoiceKeys | None = None
    level_dbfs: float = Field(default=-26.0, ge=-60, le=-10)
    memory_s: float = Field(default=8.0, ge=0, le=600)
    dialogue_s: float = Field(default=8.0, ge=1, le=60)
    rings: int = Field(default=3, ge=1, le=100)
    endpoint_ms: int = Field(default=600, ge=200, le=3000)
    query_max_s: float = Field(default=8.0, ge=2, le=30)
    earcons: bool = False
    barge_in: bool = False
    reports: list[str] = Field(default_factory=lambda: [str(report) for report in ReportKind])
    mqtt: str = "lab"
    microphone: str = "dut_mic"
    speaker: str = "dut_speaker"
    seed: int = 0
    faults: list[_FaultKeys] = Field(default_factory=list)


def read_settings(path: Path) -> AssistantSettings:
    """Reads settings from a YAML file. Raises InputProblems with each place and remedy if anything is wrong."""
    keys, findings = parse_keys(read_bytes(path), str(path), _SettingsKeys)
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,40}", keys.assistant):
        problem = f"{keys.assistant!r} is not a valid assistant name: it becomes part of MQTT topics"
        findings.add(["assistant"], problem, "Use letters, digits, - and _")
    for number, name in enumerate(keys.reports):
        if name not in {str(report) for report in ReportKind}:
            findings.add(["reports", number], f"{name!r} is not a report", f"Use: {', '.join(ReportKind)}")
    _check_installed(findings, ["wake_engine"], Group.WAKE_ENGINES, keys.wake_engine)
    _check_installed(findings, ["recogniser"], Group.RECOGNISERS, keys.recogniser)
    if keys.voice is not None:
        _check_installed(findings, ["voice", "engine"], Group.VOICES, keys.voice.engine)
    rules = [_rule(findings, number, fault) for number, fault in enumerate(keys.faults)]
    findings.refuse()
    fields: dict[str, Any] = keys.model_dump(exclude={"assistant", "voice", "reports", "faults"})
    if keys.voice is not None:
        fields["voice"] = VoiceSpec(**keys.voice.model_dump())
    return AssistantSettings(
        device=keys.assistant,
        reports=frozenset(ReportKind(name) for name in keys.reports),
        faults=tuple(rule for rule in rules if rule is not None),
        **fields,
    )


def _check_installed(findings: Findings, path: list[str | int], group: Group, name: str) -> None:
    """Adds a finding if a plugin is not installed. path: the key that names it."""
    installed = names(group)
    if name not in installed:
        findings.add(path, f"{name!r} is not installed", nearest(name, installed, listed="Installed"))


def _rule(findings: Findings, number: int, fault: _FaultKeys) -> FaultRule | None:
    """The rule of one entry of `faults`, and findings on it; None if it cannot be read."""
    if fault.do not in {str(action) for action in FaultAction}:
        findings.add(["faults", number, "do"], f"{fault.do!r} is not a fault", f"Use one of: {', '.join(FaultAction)}")
        return None
    action = FaultAction(fault.do)
    if (action in _FAULTS_WITH_AS) != (fault.heard_as is not None):
        if fault.heard_as is None:
            problem, remedy = f"{action} needs `as`", "Add `as`, for example `as: other words`"
        else:
            problem, remedy = f"`as` is not allowed with {action}", f"Remove `as`, or use {', '.join(_FAULTS_WITH_AS)}"
        findings.add(["faults", number], problem, remedy)
    if fault.slot is not None and action not in (FaultAction.LOSE_SLOT, FaultAction.WRONG_VALUE):
        findings.add(
            ["faults", number], f"`slot` is not allowed with {action}", "Remove `slot`, or use lose_slot or wrong_value"
        )
    if fault.late_s is not None and action is not FaultAction.LATE:
        findings.add(["faults", number], f"`late_s` is not allowed with {action}", "Remove `late_s`, or use late")
    if action is FaultAction.MISS_WAKE and fault.when is not None:
        findings.add(
            ["faults", number],
            "`when` cannot be used with miss_wake: there is no text to match",
            "Use `wakes` or `probability`",
        )
    try:
        pattern = None if fault.when is None else re.compile(fault.when, re.IGNORECASE)
    except re.error as error:
        findings.add(["faults", number, "when"], f"not a regular expression: {error}", "Escape ( ) [ ] . * + ? with \\")
        return None
    return FaultRule(
        action=action,
        when=pattern,
        wakes=None if fault.wakes is None else frozenset(fault.wakes),
        probability=fault.probability,
        times=fault.times,
        heard_as=fault.heard_as or "",
        late_s=fault.late_s or 6.0,
        slot=fault.slot or "",
    )
