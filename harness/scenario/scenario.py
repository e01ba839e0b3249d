"""Reads scenario files, checks them as a whole, and builds the model's Scenario."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from harness.base import plugins
from harness.base.findings import Findings, KeyPath, Keys, KeysT, list_in, mapping_in, read_content, try_validate
from harness.base.strict_yaml import Plain
from harness.model.choices import FileKind
from harness.model.scenario import (
    AxisName,
    AxisValue,
    CloseDialogue,
    Defaults,
    Limits,
    Matrix,
    Query,
    RecognitionRule,
    RecordingFacts,
    RepromptRule,
    Scenario,
    TrialTemplate,
    WakeSettings,
    axes_of,
)
from harness.model.stimulus import (
    NO_OPENING,
    TALKER,
    Band,
    ImpulseResponse,
    LevelAt,
    NoiseKind,
    NoiseSpec,
    Opening,
    Recording,
    RoomSpec,
    ShoeBox,
    SpokenText,
    VoiceSpec,
)
from harness.scenario.assets import TALKER_NAME, Assets
from harness.scenario.keys import (
    CloseDialogueKeys,
    DefaultsKeys,
    LimitsKeys,
    MatrixKeys,
    NoiseKeys,
    OpeningKeys,
    RecognisedKeys,
    RepromptKeys,
    ScenarioKeys,
    StimulusKeys,
    TrialKeys,
    VoiceKeys,
    WakeKeys,
)
from harness.scenario.matrix import LabelledValue, cells, check_openings, check_placements, label, read_matrix
from harness.scenario.policies import ProcedureKeys, StoppingKeys
from harness.scenario.references import check_queries, read_recognised, read_reference
from harness.scenario.sound_keys import ImpulseResponseKeys, RoomKeys
from harness.scenario.trials import (
    ambient_spec,
    check_follow_up,
    check_kind,
    check_required,
    check_rule,
    default_name,
    effect_check,
    lead_in_s,
    memory_spec,
    read_expected,
    read_procedure,
    read_recordings,
    read_stopping,
    with_default_voice,
)
from harness.scenario.variables import expand, substitute

MAX_TRIALS = 100_000
_NO_ASSETS: Mapping[str, Path] = MappingProxyType({})


def load_scenario(path: Path | str, *, extra_assets: Mapping[str, Path] = _NO_ASSETS) -> Scenario:
    """The scenario of a file. Raises InputProblems with every mistake. Raises InputError if the file is not YAML.

    extra_assets: further asset roots by name (absolute folders); they override those of the file.
    """
    path = Path(path)
    sha256, content, findings = read_content(path, FileKind.SCENARIO, ScenarioKeys, allows_null)
    reader = ScenarioReader(path, content, findings, extra_assets)
    recognised = reader.recognised()
    matrix = reader.matrix()
    queries, trials, defaults = reader.queries(), reader.trials(), reader.defaults()
    check_placements(matrix, trials, defaults, findings)
    check_openings(matrix, trials, defaults, findings)
    published = read_procedure(try_validate(ProcedureKeys, content.get("procedure")), findings)
    trial_total = sum(trial_count(trial, matrix) for trial in trials)
    stopping = read_stopping(_section(content, "stopping", StoppingKeys) or StoppingKeys(), findings)
    if trial_total > MAX_TRIALS:
        findings.add(
            ("trials",),
            f"the scenario plans {trial_total} trials",
            f"Split the scenario; the maximum is {MAX_TRIALS}",
            key=True,
        )
    findings.refuse()
    keys = ScenarioKeys.model_validate(content)
    return Scenario(
        id=keys.scenario,
        title=keys.title or keys.scenario,
        path=str(path.absolute()),
        sha256=sha256,
        queries=queries,
        trials=trials,
        tags=tuple(keys.tags),
        defaults=defaults,
        recognised=recognised,
        matrix=matrix,
        limits=_limits(keys.limits),
        needs=tuple(keys.needs),
        seed=keys.seed,
        wake=WakeSettings(**keys.wake.model_dump()),
        stopping=stopping,
        procedure=published,
    )


def trial_count(trial: TrialTemplate, matrix: Matrix) -> int:
    """The number of trials of a template: repetitions × relevant cells of the matrix × segments, or × waits × 2.

    Positions count, as they do for devices that hear the trial through the air.
    """
    axes = axes_of(trial)
    trial_cells = {tuple(part for part in cell if part[0] in axes) for cell in cells(matrix)}
    if trial.memory is not None:
        return trial.repeat * len(trial_cells) * 2 * len(trial.memory.waits_s)
    return trial.repeat * len(trial_cells) * (trial.ambient.segments if trial.ambient else 1)


def planned_trials(scenario: Scenario) -> tuple[int, int]:
    """The number of trials per cell of the matrix, repetitions included, and the number of cells.

    Only for scenarios of query-like trials; the axes that apply to other kinds differ: `trial_count`.
    """
    single_cell = Matrix()
    counts = (trial_count(trial, single_cell) if trial.memory else trial.repeat for trial in scenario.trials)
    return sum(counts), len(cells(scenario.matrix))


def allows_null(path: KeyPath) -> bool:
    """Whether null means something here: no noise, no closing of dialogues, or any value of a state or slot."""
    match tuple(path):
        case (
            ("defaults", "noise" | "close_dialogue")
            | ("matrix", "axes", "noise" | "opening" | "room" | "band_hz" | "clipping_db" | "codec", int())
            | ("matrix", "exclude", int(), "noise" | "opening" | "room" | "band_hz" | "clipping_db" | "codec")
            | ("trials", int(), "effect", "state", str())
            | ("trials", int(), "expects", "slots", str())
        ):
            return True
    return False


class ScenarioReader:
    """Reads a scenario section by section, and notes problems in `findings`.

    Skips a section of the wrong shape, since that has been noted already.
    """

    def __init__(
        self, path: Path, content: Mapping[str, Plain], findings: Findings, extra_assets: Mapping[str, Path]
    ) -> None:
        self._content = content
        self._findings = findings
        texts = {name: text for name, text in mapping_in(content, "variables").items() if isinstance(text, str)}
        self._variables = expand(texts, findings)
        self._assets = Assets(path.absolute().parent, findings)
        roots = {name: text for name, text in mapping_in(content, "assets").items() if isinstance(text, str)}
        self._assets.add_roots(roots, extra_assets)
        ids = (entry.get("id") for entry in list_in(content, "stimuli") if isinstance(entry, dict))
        self._queries = dict.fromkeys(name for name in ids if isinstance(name, str))
        self._matrix_axes = mapping_in(mapping_in(content, "matrix"), "axes")
        self._voice_names = tuple(mapping_in(content, "voices"))
        self._voices: dict[str, VoiceSpec] = {}
        self._rule = RecognitionRule()
        for name, entry in mapping_in(content, "voices").items():
            if keys := try_validate(VoiceKeys, entry):
                self._voices[name] = self._voice_spec(keys, ("voices", name))
        self._rooms = {
            name: self._room_spec(name, try_validate(RoomKeys, entry), ("rooms", name))
            for name, entry in mapping_in(content, "rooms").items()
        }
        defaults = self._default_keys = _section(content, "defaults", DefaultsKeys)
        self._wake = WakeSettings(**(_section(content, "wake", WakeKeys) or WakeKeys()).model_dump())
        self._default_voice = (self._voice(defaults.voice, ("defaults", "voice")) if defaults else None) or VoiceSpec()
        self._default_reprompt = _reprompt_rule(defaults.reprompt, RepromptRule()) if defaults else RepromptRule()

    def defaults(self) -> Defaults:
        keys = self._default_keys
        if keys is None:
            return Defaults()
        key_path = ("defaults",)
        if keys.level_spl is not None and "level_dbfs" in keys.model_fields_set:
            self._findings.add(
                (*key_path, "level_spl"),
                "`defaults` has both `level_dbfs` and `level_spl`",
                "Remove one of the two",
                key=True,
            )
        has_room = keys.room is not None or "room" in self._matrix_axes
        unused = set() if has_room else {"distance_m", "angle_deg"}
        for key in sorted(unused & keys.model_fields_set):
            problem = f"`{key}` applies to simulated rooms, and the scenario uses none"
            self._findings.add((*key_path, key), problem, f"Remove `{key}`, or add `room: …`", key=True)
        return Defaults(
            voice=self._voice(keys.voice, (*key_path, "voice")) or VoiceSpec(),
            level_dbfs=keys.level_dbfs,
            level_spl=keys.level_spl,
            gap_ms=keys.gap_ms,
            noise=self._noise_spec(keys.noise, (*key_path, "noise")) if keys.noise else None,
            evidence=keys.evidence,
            reprompt=self._default_reprompt,
            room=self._rooms[keys.room] if keys.room and self._is_room(keys.room, (*key_path, "room")) else None,
            distance_m=keys.distance_m,
            angle_deg=keys.angle_deg,
            close_dialogue=self._close_dialogue(keys.close_dialogue, (*key_path, "close_dialogue")),
            between_trials_s=keys.between_trials_s,
            life_check_after=keys.life_check_after,
            power_cycle=keys.power_cycle,
        )

    def recognised(self) -> RecognitionRule:
        """The rule for transcripts; remembers it for `queries`."""
        keys = _section(self._content, "recognised", RecognisedKeys)
        self._rule = read_recognised(keys, self._assets, self._findings) if keys else RecognitionRule()
        return self._rule

    def queries(self) -> tuple[Query, ...]:
        """The queries. Call `recognised` first: references are checked against its rule."""
        self._refuse_duplicate_ids("stimuli", "stimulus")
        queries: list[tuple[Query, StimulusKeys, KeyPath]] = []
        for number, entry in enumerate(list_in(self._content, "stimuli")):
            keys, key_path = try_validate(StimulusKeys, entry), ("stimuli", number)
            query = None if keys is None else self._read_query(keys, key_path)
            if keys is not None and query is not None:
                queries.append((query, keys, key_path))
        check_queries(queries, self._rule, self._findings)
        return tuple(query for query, _, _ in queries)

    def _read_query(self, keys: StimulusKeys, key_path: KeyPath) -> Query | None:
        """A query, whose words are a text or a recording; None if it has neither or both."""
        self._refuse_varied(keys, ("voice",), "stimulus", key_path)
        match keys.text, keys.recording:
            case str() as text, None:
                if keys.transcript is not None:
                    problem, remedy = (
                        "`transcript` does not apply to a stimulus with `text`",
                        "Remove `transcript`; the text is the transcript",
                    )
                    self._findings.add((*key_path, "transcript"), problem, remedy, key=True)
                utterance: SpokenText | Recording = SpokenText(self._fill(text, (*key_path, "text")))
            case None, str() as recording:
                utterance = Recording(self._assets.sound_path(recording, (*key_path, "recording")))
                if keys.transcript is None and keys.sro is None:
                    remedy = "Add `transcript: …` or `sro: …` with the words spoken in it"
                    self._findings.add((*key_path, "recording"), "the recording has no transcript", remedy, key=True)
            case None, None:
                remedy = "Add `text: …`, or `recording: …` and `transcript: …`"
                self._findings.add(key_path, f"the stimulus {keys.id!r} has neither `text` nor `recording`", remedy)
                return None
            case _:
                problem = f"the stimulus {keys.id!r} has both `text` and `recording`"
                remedy = "Remove one of the two; the words of a recording go in `transcript`"
                self._findings.add((*key_path, "recording"), problem, remedy, key=True)
                return None
        reference = read_reference(keys, key_path, self._fill, self._findings)
        alternatives = (self._fill(text, (*key_path, "alternatives", n)) for n, text in enumerate(keys.alternatives))
        return Query(keys.id, utterance, reference, tuple(alternatives), self._voice(keys.voice, (*key_path, "voice")))

    def trials(self) -> tuple[TrialTemplate, ...]:
        self._refuse_duplicate_ids("trials", "trial")
        trials = (
            self._trial_template(entry, ("trials", number))
            for number, entry in enumerate(list_in(self._content, "trials"))
        )
        return tuple(trial for trial in trials if trial)

    def _trial_template(self, section: Plain, key_path: KeyPath) -> TrialTemplate | None:
        query = section.get("query") if isinstance(section, dict) else None
        if isinstance(section, dict):
            check_required(section, key_path, self._findings)
            check_follow_up(section, self._queries, key_path, self._findings)
        if isinstance(query, str):
            self._findings.is_known((*key_path, "query"), "stimulus", query, self._queries, "Stimuli")
        keys = try_validate(TrialKeys, section)
        if keys is None:
            return None
        check_kind(keys, key_path, self._findings)
        check_rule(keys, self._default_keys, key_path, self._findings)
        paths: tuple[str, ...] = ()
        facts: tuple[RecordingFacts, ...] = ()
        if keys.recordings is not None:
            paths, facts = read_recordings(keys.recordings, (*key_path, "recordings"), self._assets)
        template = TrialTemplate(
            id=keys.id or default_name(keys),
            query=keys.query or "",
            kind=keys.kind,
            devices=tuple(keys.devices or ()),
            route=keys.route,
            phrase=self._fill(keys.phrase, (*key_path, "phrase")) if keys.phrase is not None else None,
            recordings=paths,
            recording_facts=facts,
            as_recorded=keys.level is not None,
            lead_in_s=lead_in_s(keys, self._wake),
            tail_s=keys.tail_s if keys.tail_s is not None else TrialTemplate("", "").tail_s,
            ambient=ambient_spec(keys, key_path, self._assets, self._findings, self._voice, self._fill),
            repeat=keys.repeat,
            device=keys.device,
            wake=keys.wake,
            voice=self._voice(keys.voice, (*key_path, "voice")),
            level_dbfs=keys.level_dbfs,
            gap_ms=keys.gap_ms,
            evidence=keys.evidence,
            reprompt=_reprompt_rule(keys.reprompt, self._default_reprompt) if keys.reprompt else None,
            close_dialogue=self._close_dialogue(keys.close_dialogue, (*key_path, "close_dialogue")),
            query_class=keys.query_class,
            core_capability=keys.core_capability,
            note=keys.note,
            effect=effect_check(keys, key_path, self._findings, self._fill),
            memory=memory_spec(keys, key_path, self._findings, self._fill),
            expects=read_expected(keys, key_path, self._findings, self._fill),
            power_cycle=keys.power_cycle,
            opening=self._opening_spec(keys.opening, (*key_path, "opening")) if keys.opening else None,
        )
        template = replace(template, ambient=with_default_voice(template, self._default_voice))
        self._refuse_varied(keys, axes_of(template), "trial", key_path)
        return template

    def _refuse_varied(self, keys: Keys, axes: Iterable[AxisName], noun: str, key_path: KeyPath) -> None:
        """Notes keys that the matrix sets for every trial.

        - axes: those that make a difference.
        - noun: of the entry.
        """
        for axis in set(axes) & set(self._matrix_axes):
            key = "level_dbfs" if axis == "level_spl" else axis  # the matrix has the level in either unit
            if key in keys.model_fields_set:
                line = self._findings.place(("matrix", "axes", axis)).line
                remedy = f"Remove `{key}` here, or the axis `{axis}` on line {line}"
                problem = f"the {noun} sets `{key}`, which the matrix varies"
                self._findings.add((*key_path, key), problem, remedy, key=True)

    def _refuse_duplicate_ids(self, section: str, noun: str) -> None:
        """Notes entries with the id of an earlier one. A trial without an id has the name of its query or kind."""
        first_numbers: dict[str, int] = {}
        for number, entry in enumerate(list_in(self._content, section)):
            name = entry.get("id", entry.get("query", entry.get("kind"))) if isinstance(entry, dict) else None
            if not isinstance(name, str):
                continue
            if name in first_numbers:
                line = self._findings.place((section, first_numbers[name])).line
                remedy = f"Choose another `id`; the first {noun} with this name is on line {line}"
                self._findings.add((section, number, "id"), f"a second {noun} has the name {name!r}", remedy)
            first_numbers.setdefault(name, number)

    def matrix(self) -> Matrix:
        keys = _section(self._content, "matrix", MatrixKeys) if "matrix" in self._content else None
        if keys is None:
            return Matrix()
        return read_matrix(keys, tuple(self._matrix_axes), self._axis_value, self._findings)

    def _axis_value(self, axis: str, entry: object, key_path: KeyPath) -> LabelledValue | None:
        """The value of an axis and its label; None after a noted problem. entry: a validated value, or keys of one."""
        value: AxisValue
        match entry:
            case str() if axis == "voice":
                spec = self._voice(entry, key_path)
                return (spec, entry) if spec else None
            case None if axis != "noise":
                return None, NO_OPENING
            case [float() | int() as low_hz, float() | int() as high_hz]:
                value = Band(float(low_hz), float(high_hz))
            case str() if axis == "room":
                if not self._is_room(entry, key_path):
                    return None
                value = self._rooms[entry]
            case VoiceKeys():
                value = self._voice_spec(entry, key_path)
            case NoiseKeys():
                value = self._noise_spec(entry, key_path)
            case OpeningKeys():
                value = self._opening_spec(entry, key_path)
            case dict():
                value = tuple(sorted(entry.items()))
            case str() | int() | float() | None:
                value = entry
            case _:
                return None
        return value, label(value)

    def _voice(self, entry: str | VoiceKeys | None, key_path: KeyPath) -> VoiceSpec | None:
        """The voice that is written or named; None without one, or after a noted problem."""
        match entry:
            case None:
                return None
            case VoiceKeys():
                return self._voice_spec(entry, key_path)
        self._findings.is_known(key_path, "voice", entry, self._voice_names, "Voices")
        return self._voices.get(entry)

    def _voice_spec(self, keys: VoiceKeys, key_path: KeyPath) -> VoiceSpec:
        if keys.talker is not None:
            if not TALKER_NAME.fullmatch(keys.talker):
                problem = f"{keys.talker!r} is not a talker's name"
                self._findings.add((*key_path, "talker"), problem, "Use lowercase letters, digits, - and _")
            for key in sorted({"engine", "name", "rate_wpm", "pitch"} & keys.model_fields_set):
                self._findings.add(
                    (*key_path, key), f"a talker has no `{key}`", f"Remove `{key}` or `talker`", key=True
                )
            return VoiceSpec(TALKER, keys.talker, language=keys.language)
        engines = plugins.names(plugins.Group.VOICES)
        self._findings.is_known((*key_path, "engine"), "voice engine", keys.engine, engines, "Installed")
        return VoiceSpec(keys.engine, keys.name, keys.rate_wpm, keys.pitch, keys.language)

    def _noise_spec(self, keys: NoiseKeys, key_path: KeyPath) -> NoiseSpec:
        """The noise; notes wrong combinations of kind, recording and level."""
        if (keys.recording is None) == (keys.kind is NoiseKind.RECORDING):
            remedy = "Write {kind: recording, recording: file.wav, snr_db: …}, or {kind: pink, snr_db: …}"
            problem = "`kind: recording` requires the key `recording`, and other kinds do not allow it"
            self._findings.add(key_path, problem, remedy)
        levels = [name for name in ("snr_db", "level_dbfs", "level_spl") if getattr(keys, name) is not None]
        if len(levels) != 1:
            problem = f"the noise has {' and '.join(levels) or 'no level'}"
            self._findings.add(
                key_path, problem, "Write exactly one: `snr_db: 10`, `level_dbfs: -36` or `level_spl: 55`"
            )
        if keys.level_spl is not None and "weighting" in keys.model_fields_set:
            problem = "`weighting` does not apply to `level_spl`, which has the weighting of the calibration"
            self._findings.add((*key_path, "weighting"), problem, "Remove `weighting`", key=True)
        path = self._assets.sound_path(keys.recording, (*key_path, "recording")) if keys.recording else ""
        places = tuple(dict.fromkeys(keys.positions))
        return NoiseSpec(
            kind=keys.kind,
            snr_db=keys.snr_db,
            path=path,
            a_weighted=keys.weighting == "A",
            ramp_s=keys.ramp_s,
            level_dbfs=keys.level_dbfs,
            level_spl=keys.level_spl,
            positions=places,
        )

    def _opening_spec(self, keys: OpeningKeys, key_path: KeyPath) -> Opening:
        """The opening, with the level of the defaults if it states none."""
        opening_words = self._fill(keys.say, (*key_path, "say")) if keys.say is not None else ""
        closing = self._fill(keys.then, (*key_path, "then")) if keys.then is not None else ""
        defaults = self._default_keys or DefaultsKeys()
        if keys.level_dbfs is not None and keys.level_spl is not None:
            problem = "the opening has both `level_dbfs` and `level_spl`"
            self._findings.add((*key_path, "level_spl"), problem, "Remove one of the two", key=True)
        level_dbfs = defaults.level_dbfs if keys.level_dbfs is None else keys.level_dbfs
        level_spl = defaults.level_spl if keys.level_spl is None and keys.level_dbfs is None else keys.level_spl
        return Opening(
            pause_s=keys.pause_s,
            say=opening_words,
            then=closing,
            level_dbfs=level_dbfs,
            sounds=bool(opening_words) if keys.sounds is None else keys.sounds,
            voice=self._opening_voice(keys.voice, (*key_path, "voice")),
            level_spl=level_spl,
        )

    def _opening_voice(self, entry: str | VoiceKeys | None, key_path: KeyPath) -> VoiceSpec | None:
        voice = self._voice(entry, key_path)
        if voice is not None and voice.is_person:
            self._findings.add(key_path, "an opening is played, so a talker cannot say it", "Use a synthetic voice")
        return voice

    def _is_room(self, name: str, key_path: KeyPath) -> bool:
        """Whether there is a room of that name; notes an unknown one."""
        return self._findings.is_known(key_path, "room", name, self._rooms, "Rooms")

    def _room_spec(self, name: str, keys: RoomKeys | None, key_path: KeyPath) -> RoomSpec:
        """The room; an empty one if there was a problem, which is noted."""
        if keys is None:
            return RoomSpec(name)
        if keys.impulse_responses is not None:
            for key in sorted(keys.model_fields_set - {"impulse_responses", "level_at"}):
                problem = f"`{key}` does not apply to a room of recorded impulse responses"
                self._findings.add((*key_path, key), problem, f"Remove `{key}` or `impulse_responses`", key=True)
            responses = self._impulse_responses(keys.impulse_responses, (*key_path, "impulse_responses"))
            return RoomSpec(name, None, responses, keys.level_at or LevelAt.DEVICE)
        if keys.size_m is None or keys.rt60_s is None or keys.device_m is None:
            missing = ", ".join(sorted({"size_m", "rt60_s", "device_m"} - keys.model_fields_set))
            remedy = "Write {size_m: [5, 4, 2.6], rt60_s: 0.4, device_m: [1, 2, 1]}, or `impulse_responses`"
            self._findings.add(key_path, f"the room {name!r} has no {missing}", remedy, key=True)
            return RoomSpec(name)
        (x, y, z), (device_left, front, height) = keys.size_m, keys.device_m
        box = ShoeBox(
            size_m=(x, y, z),
            rt60_s=keys.rt60_s,
            device_m=(device_left, front, height),
            device_faces_deg=keys.device_faces_deg,
            device_pattern=keys.device_pattern,
            talker_height_m=keys.talker_height_m,
            talker_pattern=keys.talker_pattern,
        )
        return RoomSpec(name, box, (), keys.level_at or LevelAt.TALKER)

    def _impulse_responses(self, entries: list[ImpulseResponseKeys], key_path: KeyPath) -> tuple[ImpulseResponse, ...]:
        responses: list[ImpulseResponse] = []
        for number, keys in enumerate(entries):
            path = self._assets.sound_path(keys.recording, (*key_path, number, "recording"))
            if any((keys.distance_m, keys.angle_deg) == (other.distance_m, other.angle_deg) for other in responses):
                problem = "an earlier impulse response has the same distance and angle"
                self._findings.add((*key_path, number), problem, "Correct `distance_m` or `angle_deg`")
            responses.append(ImpulseResponse(path, keys.distance_m, keys.angle_deg))
        return tuple(responses)

    def _close_dialogue(self, keys: CloseDialogueKeys | None, key_path: KeyPath) -> CloseDialogue | None:
        if keys is None:
            return None
        if (keys.say is None) == (keys.wait_s is None):
            problem = "`close_dialogue` needs exactly one of `say` and `wait_s`"
            self._findings.add(key_path, problem, "Write {say: cancel} or {wait_s: 8}", key=True)
            return None
        if keys.say is not None:
            return CloseDialogue(say=self._fill(keys.say, (*key_path, "say")))
        return CloseDialogue(wait_s=keys.wait_s if keys.wait_s is not None else CloseDialogue().wait_s)

    def _fill(self, text: str, key_path: KeyPath) -> str:
        return substitute(text, self._variables, self._findings, key_path)


def _section(content: Mapping[str, Plain], key: str, model: type[KeysT]) -> KeysT | None:
    """A section as its model, with its defaults if it is missing; None if it is wrong, which was noted."""
    return try_validate(model, content.get(key, {}))


def _written_keys(keys: Keys) -> dict[str, object]:
    """The keys that the file sets, without defaults."""
    return {name: getattr(keys, name) for name in keys.model_fields_set}


def _reprompt_rule(keys: RepromptKeys, base: RepromptRule) -> RepromptRule:
    return replace(base, **_written_keys(keys))  # type: ignore[arg-type]


def _limits(keys: LimitsKeys) -> Limits:
    return Limits(**_written_keys(keys))  # type: ignore[arg-type]
