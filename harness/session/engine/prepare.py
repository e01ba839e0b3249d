"""Turns a scenario and a bench into a session's folder.

Errors of the files are reported here, before any sound.
"""

from __future__ import annotations

import errno
import hashlib
import json
import platform
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from harness import __version__
from harness.base.places import SessionFolder
from harness.base.processor import host_facts
from harness.base.progress import step
from harness.base.whole_file import disk_errors, sync_to_disk, temporary_path, write_atomically
from harness.devices.declared import demand_host, is_simulated
from harness.model.bench import Bench, Device, OperatorPresence
from harness.model.errors import DeviceError, InputError, InputProblems, LanguageError, Place, PluginError, VoiceError
from harness.model.numbers import exact
from harness.model.record import SessionStarted
from harness.model.scenario import Query, Scenario, TrialTemplate
from harness.model.stimulus import Ambience, Recording, SpokenText, StimulusRecipe, VoiceSpec
from harness.model.trial import Trial
from harness.scenario.bench import load_bench
from harness.scenario.compatibility import check_compatibility
from harness.scenario.scenario import load_scenario
from harness.session.engine.assemble import ResolvedSession, clock_of, equipment_of, write_resolved
from harness.session.engine.notify import demand_ready
from harness.session.log.database import SqliteLog
from harness.session.plan import plan
from harness.sound.stimuli.renderer import renderer

SOUND_PATHS = {"system": "this host's sound devices", "virtual_lab": "PulseAudio in the virtual lab"}


def sound_path(bench: Bench, trials: Iterable[Trial] = ()) -> str:
    """How sound reaches each device of the trials, as text for the log and for people."""
    parts = (*bench.loudspeakers, bench.microphone)
    calibrations = (
        f"{part.id}: {part.calibration.words()}" for part in parts if part is not None and part.calibration is not None
    )
    return "; ".join([_sound_servers(bench), *_sound_routes(bench, trials), *calibrations])


def _sound_routes(bench: Bench, trials: Iterable[Trial]) -> Iterator[str]:
    """Text on how the sound of each real device with a connection travels, and why."""
    injected_by_device: dict[str, set[bool]] = {}
    for trial in trials:
        for target in trial.targets:
            injected_by_device.setdefault(target.device, set()).add(target.injected)
    for device, injected in injected_by_device.items():
        connection = bench.device(device).connection
        if connection is None or is_simulated(connection.driver):
            continue
        wire = f"its {connection.driver} connection"
        if injected == {True}:
            yield f"{device} gets its sound over {wire}"
        elif is_deaf(bench, bench.device(device)):
            audible = "nothing" if injected == {False} else f"only what is sent over {wire}"
            yield f"{device} hears {audible}: {ALL_SIMULATED}"
        elif injected == {False}:
            why = "its trials are played aloud" if connection.injects else f"{wire} does not accept sound"
            yield f"{device} hears the loudspeaker, since {why}"
        else:
            yield f"{device} gets some sound over {wire}, and hears the rest from the loudspeaker"


ALL_SIMULATED = "the bench's loudspeakers are simulated in this process"
"""Why a real device does not hear the loudspeakers."""


def is_deaf(bench: Bench, device: Device) -> bool:
    """Whether the bench's loudspeakers are simulated while the device is real, so that it does not hear them."""
    if device.connection is None or is_simulated(device.connection.driver) or not bench.loudspeakers:
        return False
    return all(is_simulated(loudspeaker.driver) for loudspeaker in bench.loudspeakers)


def _sound_servers(bench: Bench) -> str:
    """Text on what carries the sound: this host's devices, the lab, or this process."""
    parts = [part for part in (*bench.loudspeakers, bench.microphone, bench.monitor) if part is not None]
    has_simulated = any(is_simulated(part.driver) for part in equipment_of(bench) if part not in bench.actuators)
    has_real = not all(is_simulated(part.driver) for part in parts)
    if not has_simulated:
        return SOUND_PATHS[bench.sound_server] if has_real else "no sound device"
    in_process = f"inside this process ×{exact(clock_of(bench).speed)}"
    return f"{in_process}, and {SOUND_PATHS[bench.sound_server]}" if has_real else f"{in_process}, no real sound"


def without_unneeded(bench: Bench, trials: Iterable[Trial]) -> Bench:
    """The bench without the stands and switches that no trial needs; they may be switched off, or not connected."""
    trials = tuple(trials)
    moved = {id for trial in trials for id, _ in trial.stands}
    stands = tuple(stand for stand in bench.stands if stand.id in moved)
    after_faults = bench.on_fault is not None and bench.on_fault.power_cycles > 0
    power = bench.power if after_faults or any(trial.power_cycle for trial in trials) else ()
    used = {stand.connection for stand in stands} | {switch.connection for switch in power}
    actuators = tuple(actuator for actuator in bench.actuators if actuator.id in used)
    return replace(bench, stands=stands, power=power, actuators=actuators)


_ANY_TEXT = "hello"
"""The text that a voice must be able to say if the wake phrase of a device is unknown."""


def refuse_unplayable(scenario: Scenario, trials: Iterable[Trial]) -> None:
    """Renders the loudest stimulus with every voice and every recording. Raises InputProblems with all that cannot be
    rendered.

    A single problem is raised as it is.
    """
    rendered_trials = [trial for trial in trials if not trial.talker]
    rendered_trials.sort(key=lambda trial: _levels(trial.recipe), reverse=True)
    _refuse_unrenderable(scenario, ((trial.template, trial.recipe, _render_kind(trial)) for trial in rendered_trials))


def _levels(recipe: StimulusRecipe) -> list[float]:
    """The levels of the speech, its noise and its opening, dBFS, the highest first."""
    levels = [recipe.level_dbfs]
    if recipe.noise is not None:
        levels.append(recipe.noise.dbfs(recipe.level_dbfs))
    if recipe.opening is not None:
        levels.append(recipe.opening.level_dbfs)
    return sorted(levels, reverse=True)


def refuse_unspeakable(scenario: Scenario) -> None:
    """As `refuse_unplayable`, but without a bench: every voice says a text of the scenario, in its own language.

    Problems with the language or the wake phrase of a device can only be found with a bench.
    """
    recipes = (
        (name, StimulusRecipe(SpokenText(text), None, voice), voice)
        for name, text, voice in _list_spoken(scenario)
        if not voice.is_person
    )
    _refuse_unrenderable(scenario, recipes, languages=False)


def _refuse_unrenderable(
    scenario: Scenario, recipes: Iterable[tuple[str, StimulusRecipe, object]], *, languages: bool = True
) -> None:
    """Renders the first of each kind of recipe.

    Raises the problem with the one that fails, or InputProblems with several.

    - recipes: (trial, recipe, kind). If the first of a kind can be rendered, so can the others.
    - languages: whether the recipes name the language that will be used; otherwise it may be the device's.
    """
    renders, tried_kinds = renderer(), set[object]()
    problems: list[InputError] = []
    for name, recipe, kind in recipes:
        if kind in tried_kinds:
            continue
        tried_kinds.add(kind)
        step(f"Rendering a stimulus of {name}")
        if isinstance(recipe.query, Ambience) and recipe.query.noise is not None:
            # A second of noise shows it: no length of noise fails where a shorter one can be made.
            recipe = replace(recipe, query=replace(recipe.query, duration_s=min(recipe.query.duration_s, 1.0)))
        try:
            renders.render(recipe)
        except (VoiceError, PluginError) as error:
            has_language = languages or recipe.voice.language != VoiceSpec().language
            if has_language or not isinstance(error, LanguageError):
                problem = f"trial {name!r} cannot be spoken: {error.what}"
                problems.append(InputError(problem, place=Place(scenario.path), remedy=error.remedy))
        except InputError as error:
            error.place = error.place or Place(scenario.path)
            problems.append(error)
    if problems:
        raise InputProblems(problems) if len(problems) > 1 else problems[0]


def _render_kind(trial: Trial) -> object:
    """The kind of a trial's stimulus. If the loudest of a kind can be rendered, so can the others."""
    match trial.recipe.query:
        case SpokenText():
            return trial.recipe.voice
        case Recording() as recording:
            return trial.recipe.voice, recording
        case Ambience():
            return trial.template, trial.listening.source if trial.listening else ""


def _list_spoken(scenario: Scenario) -> Iterator[tuple[str, str, VoiceSpec]]:
    """A trial, a text and a voice, for every voice that may say it."""
    queries = {query.id: query for query in scenario.queries}
    matrix_voices = [value for axis in scenario.matrix.axes if axis.name == "voice" for value in axis.values]
    for template in scenario.trials:
        query = queries.get(template.query)
        text = _spoken_text(template, query)
        if text is not None:
            template_voice = template.voice or (query.voice if query else None) or scenario.defaults.voice
            voices = matrix_voices if matrix_voices and not template.recordings else [template_voice]
            yield from ((template.id, text, voice) for voice in voices if isinstance(voice, VoiceSpec))
        if template.ambient is not None:
            if (probe := template.ambient.probe) is not None and not probe.recording:
                yield template.id, probe.phrase or _ANY_TEXT, probe.voice or scenario.defaults.voice
            for source in template.ambient.sources:
                yield from (
                    (template.id, source_text, voice) for source_text in source.texts[:1] for voice in source.voices
                )


def _spoken_text(template: TrialTemplate, query: Query | None) -> str | None:
    """The text that a template's voice says; None if there is none."""
    if query is not None:
        return query.utterance.text if isinstance(query.utterance, SpokenText) else None
    return None if template.recordings or template.ambient else template.phrase or _ANY_TEXT


PACKAGES = ("numpy", "scipy", "soundfile", "soxr", "pyaudio", "webrtcvad-wheels", "paho-mqtt", "pydantic")
"""Packages whose versions the session records, if they are installed."""


def prepare(
    scenario_path: Path,
    bench_path: Path,
    sessions_root: Path,
    *,
    seed: int | None = None,
    operator: OperatorPresence | None = None,
    extra_assets: Mapping[str, Path] | None = None,
    demand: Callable[[Bench], None] = lambda bench: None,
) -> Path:
    """Creates a session's folder, with the plan as the first row of its log. Nothing is played. Returns the folder.

    - seed: seed of the order and of simulated parts; None takes the scenario's.
    - operator: replaces the bench's value.
    - demand: a further check, which raises an error if the bench lacks something, before there is a folder.

    Raises InputError, InputProblems, PluginError or VoiceError when something is wrong. Raises UnmetNeed when the bench
    lacks what the scenario needs. Raises DeviceError when the host lacks a device that the bench names.
    """
    scenario = load_scenario(scenario_path, extra_assets=extra_assets or {})
    bench = load_bench(bench_path)
    if operator is not None:
        bench = replace(bench, operator=operator)
    check_compatibility(scenario, bench)
    if seed is not None:
        scenario = replace(scenario, seed=seed)
    started = plan_session(scenario, bench, seed)
    bench = without_unneeded(bench, started.trials)
    # The host must have each port, password and program that the bench names.
    for notify in bench.notify:
        demand_ready(notify)
    for part in equipment_of(bench):
        try:
            demand_host(part.driver, part.options)
        except (InputError, DeviceError) as error:
            error.place = error.place or part.place
            raise
    refuse_unplayable(scenario, started.trials)
    demand(bench)
    return _write_folder(sessions_root, ResolvedSession(scenario, bench), started)


def plan_session(scenario: Scenario, bench: Bench, seed: int | None = None) -> SessionStarted:
    """The first row of a session that has no folder and no name yet; reaches no device.

    Both have passed `check_compatibility`. seed: seed of the order; None takes the scenario's. Raises InputError if
    there is no trial, VoiceError or PluginError if a voice is not installed.
    """
    trials = plan(scenario, bench, seed)
    if not trials:
        raise InputError(
            f"{scenario.id!r} has no trials to run", remedy="Add a trial to `trials`, or exclude less in `matrix`"
        )
    return SessionStarted(
        session_id="",
        scenario_id=scenario.id,
        title=scenario.title,
        scenario_sha256=scenario.sha256,
        bench_id=bench.id,
        bench_sha256=bench.sha256,
        seed=scenario.seed,
        sound_path=sound_path(without_unneeded(bench, trials), trials),
        versions=_versions(trials),
        trials=trials,
        host=host_facts(),
    )


def _voices(recipe: StimulusRecipe) -> Iterator[VoiceSpec]:
    match recipe.query:
        case Ambience(sayings=sayings):
            yield from (saying.voice for saying in sayings)
        case _:
            yield recipe.voice


def _write_folder(root: Path, resolved: ResolvedSession, started: SessionStarted) -> Path:
    """Writes the session's folder, named after the time and the scenario. Returns its path."""
    with disk_errors(f"{root} cannot be created"):
        root.mkdir(parents=True, exist_ok=True)
    stem = f"{time.strftime('%Y-%m-%d-%H%M%S')}-{resolved.scenario.id}"
    while (folder := _write_under_free_name(root, stem, resolved, started)) is None:
        pass  # another run that began in the same second took the name
    return folder


def _write_under_free_name(root: Path, stem: str, resolved: ResolvedSession, started: SessionStarted) -> Path | None:
    """Writes the folder under a name that is free. None if another process takes that name before it is complete.

    Until then, the folder has a temporary name.
    """
    with temporary_path(root / stem) as part:
        with disk_errors(f"{part} cannot be written"):
            part.mkdir()
        final, count = root / stem, 1
        while final.exists():
            count += 1
            final = root / f"{stem}-{count}"
        started = replace(started, session_id=final.name)
        _copy_inputs(SessionFolder(part).inputs, resolved.scenario, resolved.bench)
        write_resolved(part, resolved)
        write_atomically(SessionFolder(part).summary, _summary(started, resolved.bench))
        started = replace(started, files=tuple(_hashes(part)), tied=True)
        clock = clock_of(resolved.bench)
        with SqliteLog(part, now_s=clock.now_s, wall_s=clock.wall_s) as log:
            log.append(started)
        with disk_errors(f"{final} cannot be created"):
            try:
                part.rename(final)  # refuses a folder that is not empty
            except OSError as error:
                if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
                    return None
                raise
            sync_to_disk(root)
    return final


def _hashes(folder: Path) -> Iterator[tuple[str, str]]:
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        with disk_errors(f"{path} cannot be read"):
            yield str(path.relative_to(folder)), hashlib.sha256(path.read_bytes()).hexdigest()


def _copy_inputs(folder: Path, scenario: Scenario, bench: Bench) -> None:
    with disk_errors(f"{folder} cannot be created"):
        (folder / "profiles").mkdir(parents=True)
    _copy(scenario.path, scenario.sha256, folder / "scenario.yaml")
    _copy(bench.path, bench.sha256, folder / "bench.yaml")
    for device in bench.devices:
        for profile in (device.profile, *(source.profile for source in device.also)):
            for file in profile.files:
                _copy(file.path, file.sha256, folder / "profiles" / f"{file.id}.yaml")
        if device.earcons is not None:
            with disk_errors(f"{folder} cannot be created"):
                (folder / "earcons").mkdir(exist_ok=True)
            # Named as `learn-earcon` does, since files from different folders may have the same name.
            _copy(device.earcons.path, device.earcons.sha256, folder / "earcons" / f"{device.id}.earcons.yaml")
            for sound in device.earcons.sounds:
                name = f"{device.id}.{sound.meaning}{Path(sound.path).suffix}"
                _copy(sound.path, sound.sha256, folder / "earcons" / name)


def _copy(source: str, sha256: str, target: Path) -> None:
    with disk_errors(f"{source} cannot be read"):
        content = Path(source).read_bytes()
    if hashlib.sha256(content).hexdigest() != sha256:
        raise InputError(f"{source} was changed while it was read", remedy="Run the command again")
    write_atomically(target, content)


def _summary(started: SessionStarted, bench: Bench) -> bytes:
    content = {
        "format": 1,
        "session": started.session_id,
        "made": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "scenario": {"id": started.scenario_id, "title": started.title, "sha256": started.scenario_sha256},
        "bench": {"id": started.bench_id, "sha256": started.bench_sha256, "labels": dict(bench.labels)},
        "profiles": {file.id: file.sha256 for device in bench.devices for file in device.profile.files},
        "seed": started.seed,
        "sound_path": started.sound_path,
        "trials": len(started.trials),
        "versions": dict(started.versions),
        "host": dict(started.host),
    }
    return json.dumps(content, indent=2, ensure_ascii=False).encode() + b"\n"


def _versions(trials: Iterable[Trial]) -> tuple[tuple[str, str], ...]:
    """(package, version) of everything that results depend on.

    Raises VoiceError or PluginError if a voice is not installed.
    """
    versions = {"voice-harness": __version__, "python": platform.python_version(), "sqlite": sqlite3.sqlite_version}
    for package in PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    renders = renderer()
    for engine in sorted({voice.engine for trial in trials if not trial.talker for voice in _voices(trial.recipe)}):
        versions[f"voice {engine}"] = renders.voice(engine).version()
    return tuple(sorted(versions.items()))
