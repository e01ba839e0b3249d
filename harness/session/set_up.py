"""Power of devices, their settings, and stands: set up before a trial, and restored after the run.

Devices are power cycled between trials as the scenario says, and after a fault as the bench allows. The log has the
original settings of the devices.
"""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Iterable, Iterator, Mapping

from harness.base.ports import HasSettings
from harness.model.bench import DeviceSetting, OnFault
from harness.model.errors import DeviceError, HarnessError, InputError, nearest
from harness.model.feed import StateWord
from harness.model.numbers import exact
from harness.model.observation import DeviceState, LinkBack, Observation, Status
from harness.model.record import FaultMet, PowerSwitched, SettingsNoted, SettingsStage, TrialFinished
from harness.model.trial import Outcome, Trial
from harness.session.liveness import Liveness
from harness.session.run import Run

POWER_BY = "power"
"""The name in the rows for who pauses the run until the operator has switched the power."""
_PROVES_NOTHING = (Outcome.INTERRUPTED, Outcome.SKIPPED, Outcome.ABORTED)
"""Outcomes of trials that do not show whether their devices work."""


class PowerCycling:
    """The power of the devices that have a switch on the bench.

    - _trial_counts: device → number of its trials since its last power cycle in this run. A missing device has had no
      power cycle.
    - _spent_cycles: device → number of power cycles after faults since its last trial that succeeded.
    - _powered_s: when the power of the last cycle came back. _answered_s: source → when it reported after that.
    """

    def __init__(self, run: Run, liveness: Liveness) -> None:
        self._run = run
        self._liveness = liveness
        self._trial_counts: dict[str, int] = {}
        self._spent_cycles: dict[str, int] = {}
        self._powered_s = 0.0
        self._answered_s: dict[str, float] = {}

    def observe(self, observation: Observation) -> None:
        """Takes an observation that may show that a device has booted."""
        match observation:
            case Status(state=DeviceState.GONE):
                pass  # it may be the last will from before the power cycle
            case LinkBack(source=source, at=at) | Status(source=source, at=at) if at.at_s >= self._powered_s:
                self._answered_s[source] = at.at_s
            case _:
                pass

    def cycle_before(self, trial: Trial) -> bool:
        """Power cycles those devices of a trial that are due. False if the run ends first.

        Raises DeviceError if one cannot be switched, or does not answer again.
        """
        if trial.is_follow_up:
            return True  # nothing may happen to the device between a prime and its follow-up
        cycle_every, sources_by_device = trial.power_cycle, _sources_by_device(trial)
        due = {
            device: sources
            for device, sources in sources_by_device.items()
            if cycle_every
            and self._trial_counts.get(device, cycle_every) >= cycle_every
            and device in self._run.context.power
        }
        if due and not self._cycle(due, f"before {trial.id}"):
            return False
        for device in sources_by_device:
            self._trial_counts[device] = self._trial_counts.get(device, 0) + 1
        return True

    def trial_finished(self, trial: Trial, row: TrialFinished) -> None:
        """Records the end of a trial. If it succeeded, its devices may again be power cycled as often as allowed."""
        if row.outcome not in _PROVES_NOTHING:
            for target in trial.targets:
                if not self._liveness.silent(target.device):
                    self._spent_cycles.pop(target.device, None)

    def revive(self, trial: Trial, reason: str, devices: Iterable[str] | None = None) -> tuple[str, ...]:
        """Power cycles devices of a trial after a fault. Returns those that answer again; () if none may be cycled.

        devices: None stands for those whose connection is lost, or that the reason names.
        """
        run, sources_by_device = self._run, _sources_by_device(trial)
        if devices is None:
            failed_sources = run.bench_state.unreachable | set(re.findall(r"[\w.-]*\w", reason))
            devices = [device for device, sources in sources_by_device.items() if failed_sources & set(sources)]
        max_cycles = (run.context.on_fault or OnFault()).power_cycles
        due = {
            device: sources_by_device[device]
            for device in devices
            if device in run.context.power and self._spent_cycles.get(device, 0) < max_cycles
        }
        for device in due:
            self._spent_cycles[device] = self._spent_cycles.get(device, 0) + 1
        if not due:
            return ()
        try:
            has_cycled = self._cycle(due, reason, after_fault=True)
        except DeviceError as error:
            run.append(FaultMet(POWER_BY, str(error)))
            return ()
        return tuple(due) if has_cycled else ()

    def restore(self, reason: str) -> None:
        """Switches on all devices that are off, also those that an earlier run left off. Failures are logged."""
        for device in sorted(self._run.resumption.unpowered):
            try:
                if self._turn([device], on=True):
                    self._run.append(PowerSwitched(device, True, reason))
                    continue
                why = "nobody has switched it on"
            except HarnessError as error:
                why = str(error)
            self._run.append(FaultMet(POWER_BY, f"the power of {device} may still be off: {why}"))

    def abandon(self) -> None:
        """As `restore`, when the run has failed and its log may be unusable."""
        for device in sorted(self._run.resumption.unpowered):
            try:
                self._turn([device], on=True)
            except HarnessError as error:
                sys.stderr.write(f"the power of {device} may still be off: {error}\n")

    def _cycle(self, devices: Mapping[str, tuple[str, ...]], reason: str, *, after_fault: bool = False) -> bool:
        """Power cycles devices. False if the run ends first; `restore` then switches them on."""
        try:
            return self._power_cycle(devices, reason, after_fault)
        except DeviceError:
            self.restore(reason)  # a switch that did not answer may have switched
            raise

    def _power_cycle(self, devices: Mapping[str, tuple[str, ...]], reason: str, after_fault: bool) -> bool:
        """Switches devices off and on, and waits until they are ready. False if the run ends first.

        Raises DeviceError if one is still lost after its boot time.
        """
        run, power = self._run, self._run.context.power
        for device in devices:
            run.append(PowerSwitched(device, False, reason, after_fault=after_fault))
        if not self._turn(devices, on=False):
            return False
        switches = [power[device].switch for device in devices]
        off_s = max(switch.off_s for switch in switches)
        boot_s = max(switch.boot_s for switch in switches)
        ready_s = max(switch.ready_s for switch in switches)
        names = ", ".join(devices)
        run.show(StateWord.PREPARING, f"{names}: the power is off")
        if not run.wait(off_s):
            return False
        self._answered_s, self._powered_s = {}, run.now_s()
        if not self._turn(devices, on=True):
            return False
        run.show(StateWord.PREPARING, f"{names}: boots")
        if not run.wait(boot_s, until=lambda: all(map(self._is_back, devices.values()))):
            return False
        if not run.wait(ready_s):
            return False
        for device, sources in devices.items():
            answers_s = [self._answered_s[source] for source in sources if source in self._answered_s]
            answered_s = max(answers_s) - self._powered_s if answers_s and self._is_back(sources) else None
            run.append(PowerSwitched(device, True, reason, answered_s, after_fault))
            self._trial_counts[device] = 0
        if silent_devices := [device for device, sources in devices.items() if self._are_lost(sources)]:
            raise DeviceError(
                f"{', '.join(silent_devices)}: no answer within {exact(boot_s)} s after power on",
                remedy="Check the device, its switch, and `boot_s` in the bench",
            )
        return True

    def _is_back(self, sources: tuple[str, ...]) -> bool:
        return any(source in self._answered_s for source in sources) and not self._are_lost(sources)

    def _are_lost(self, sources: tuple[str, ...]) -> bool:
        return bool(self._run.bench_state.unreachable & set(sources))

    def _turn(self, devices: Iterable[str], *, on: bool) -> bool:
        """Switches the power of devices, one after another. False if the run ends first."""
        for device in devices:
            power = self._run.context.power[device]
            if power.by_hand and not self._run.pause_for_operator(power.request(on=on), POWER_BY):
                return False
            if not self._run.run_in_background(lambda given_up, power=power: power.turn(on=on, given_up=given_up)):  # type: ignore[misc]
                return False
        return True


BY_HAND = "stands"
"""The name in the rows for who pauses the run until the operator has moved a stand."""


class TrialSettings:
    """The settings that a plan varies. All that a trial does not name get their original value, or a stand its home."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._stands = {id: setting.stand for id, setting in run.context.stands.items()}
        # A run that was killed may have left them changed.
        self._has_changes = bool(run.resumption.originals) or any(map(self._home_settings, self._stands))

    def note_originals(self) -> None:
        """Logs the original values, unless an earlier run has.

        Raises InputError if a device cannot be set as a trial needs it, and DeviceError if it reports no original.
        """
        values_by_connection: dict[str, dict[str, set[str]]] = {}
        for trial in self._run.trials.values():
            for connection, (name, value) in itertools.product(_connections(trial), trial.settings):
                values_by_connection.setdefault(connection, {}).setdefault(name, set()).add(value)
        for connection, settings in values_by_connection.items():
            device_settings = self._driver(connection).settings()
            for name, values in settings.items():
                for value in sorted(values):
                    _check_value(connection, name, value, device_settings)
            known_originals = self._run.resumption.originals.get(connection, {})
            originals = tuple(
                (name, device_settings[name].value) for name in sorted(settings) if name not in known_originals
            )
            if unread := [name for name, value in originals if not value]:
                raise DeviceError(
                    f"{connection} reports no value for {unread[0]}, so the original could not be restored",
                    remedy="Set a value by hand once, or remove the setting from `device_settings`",
                )
            if originals:
                self._run.append(SettingsNoted(connection, SettingsStage.ORIGINAL, originals))

    def apply(self, trial: Trial) -> bool:
        """Sets devices and stands as the trial needs them, and waits for their reports. False if the run ends first.

        Raises DeviceError if a report does not come in time.
        """
        for connection in _connections(trial):
            originals = self._run.resumption.originals.get(connection)
            if originals:
                self._has_changes = True
                self._set(connection, {**originals, **dict(trial.settings)}, SettingsStage.TRIAL)
        positions = dict(trial.stands)
        for id, stand in self._stands.items():
            settings = {stand.moves: positions[id]} if id in positions else self._home_settings(id)
            self._has_changes |= bool(settings)
            self._set(id, settings, SettingsStage.TRIAL)
        return self._run.ending is None

    def restore(self) -> list[FaultMet]:
        """Restores the original values everywhere. Returns the faults."""
        faults: list[FaultMet] = []
        if not self._has_changes:
            return faults
        self._has_changes = False
        for source, originals in self._originals():
            try:
                self._set(source, originals, SettingsStage.RESTORED)
            except HarnessError as error:
                values = ", ".join(f"{name}={value}" for name, value in originals.items())
                faults.append(
                    FaultMet(source, f"its settings may not have been restored ({error}). Set them: {values}")
                )
        return faults

    def _originals(self) -> Iterator[tuple[str, Mapping[str, str]]]:
        yield from self._run.resumption.originals.items()
        # A person is not sent to the room for nothing at the end of a night.
        yield from ((id, self._home_settings(id)) for id in self._stands if not self._run.context.stands[id].by_hand)

    def _home_settings(self, stand: str) -> Mapping[str, str]:
        home = self._stands[stand].home
        return {} if home is None else {self._stands[stand].moves: exact(home)}

    def _set(self, source: str, settings: Mapping[str, str], stage: SettingsStage) -> None:
        """Changes those settings that differ, and logs them. Stops without a row if the run ends first."""
        if not settings:
            return
        driver = self._driver(source)
        device_settings = driver.settings()
        changes = {
            name: value
            for name, value in settings.items()
            if name not in device_settings or not device_settings[name].holds(value)
        }
        for name, value in changes.items():
            if not self._change(source, name, value):
                return
        if changes:
            self._run.append(SettingsNoted(source, stage, tuple(changes.items())))

    def _change(self, source: str, name: str, value: str) -> bool:
        """Changes a setting. False if the run ends before the operator has moved a stand."""
        run, stand = self._run, self._run.context.stands.get(source)
        if stand is None:
            self._driver(source).set_setting(name, value)
            return True
        if stand.by_hand and not run.pause_for_operator(stand.request(value), BY_HAND):
            return False
        run.show(StateWord.PREPARING, f"{source}: sets {name} to {value}")
        return run.run_in_background(lambda given_up: stand.set_setting(name, value, given_up))

    def _driver(self, source: str) -> HasSettings:
        driver = self._run.context.stands.get(source) or self._run.context.settings.get(source)
        if driver is None:
            raise InputError(
                f"the driver of {source} cannot change settings",
                remedy="Use a driver that can change settings, such as esphome",
            )
        return driver


def _sources_by_device(trial: Trial) -> dict[str, tuple[str, ...]]:
    return {target.device: target.sources for target in trial.targets}


def _connections(trial: Trial) -> tuple[str, ...]:
    """Ids of the connections of the trial's devices."""
    return tuple(dict.fromkeys(target.connection for target in trial.targets if target.connection))


def _check_value(connection: str, name: str, value: str, device_settings: Mapping[str, DeviceSetting]) -> None:
    """Raises InputError if the device has no such setting, or the setting cannot have that value."""
    if name not in device_settings:
        raise InputError(
            f"device_settings: {connection} has no setting {name!r}",
            remedy=nearest(name, list(device_settings), listed="Its settings"),
        )
    if refusal := device_settings[name].refusal(value):
        raise InputError(
            f"device_settings: {connection}: {name}: {value!r} {refusal}", remedy=device_settings[name].remedy
        )
