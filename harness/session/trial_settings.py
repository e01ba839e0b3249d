"""Sets the settings of devices for trials, and sets them back. The log has the original values before any change."""

from __future__ import annotations

import sys
from collections.abc import Mapping

from harness.base.findings import nearest
from harness.base.ports import HasSettings
from harness.model.bench import DeviceSetting
from harness.model.errors import DeviceError, HarnessError, InputError
from harness.model.record import FaultMet, SettingsNoted, SettingsOf
from harness.model.trial import Trial
from harness.session.run import Run


class TrialSettings:
    """The settings that a plan varies. What a trial does not name has its original value."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._to_restore = bool(run.standing.originals)  # a run that was killed may have left them changed

    def note(self) -> None:
        """Logs the original values, unless an earlier run has. InputError or DeviceError if a device cannot be set."""
        wanted: dict[str, dict[str, set[str]]] = {}
        for trial in self._run.trials.values():
            for connection in _connections(trial) if trial.settings else ():
                for name, value in trial.settings:
                    wanted.setdefault(connection, {}).setdefault(name, set()).add(value)
        for connection, values in wanted.items():
            has = self._driver(connection).settings()
            for name, texts in values.items():
                for text in sorted(texts):
                    _demand(connection, name, text, has)
            known = self._run.standing.originals.get(connection, {})
            originals = tuple((name, has[name].value) for name in sorted(values) if name not in known)
            if unread := [name for name, value in originals if not value]:
                what = f"{connection} reports no value of {unread[0]}, so it could not be set back"
                raise DeviceError(what, remedy="Set it once by hand, or leave it out of `device_settings`")
            if originals:
                self._run.append(SettingsNoted(connection, SettingsOf.ORIGINAL, originals))

    def apply(self, trial: Trial) -> None:
        """Returns when the devices of the trial have reported its settings; DeviceError if one does not in time."""
        for connection in _connections(trial):
            originals = self._run.standing.originals.get(connection)
            if originals:
                self._to_restore = True
                self._set(connection, {**originals, **dict(trial.settings)}, SettingsOf.TRIAL)

    def restore(self) -> None:
        """Sets everything back to the original values. What fails is a fault in the log."""
        for fault in self._restore():
            self._run.append(fault)

    def abandon(self) -> None:
        """As `restore`, when the run has failed and its log may be unusable."""
        for fault in self._restore():
            sys.stderr.write(f"{fault.source}: {fault.what}\n")

    def _restore(self) -> list[FaultMet]:
        faults: list[FaultMet] = []
        if not self._to_restore:
            return faults
        self._to_restore = False
        for connection, originals in self._run.standing.originals.items():
            try:
                self._set(connection, originals, SettingsOf.RESTORED)
            except HarnessError as error:
                values = ", ".join(f"{name}={value}" for name, value in originals.items())
                faults.append(FaultMet(connection, f"its settings may not be set back ({error}). Set them: {values}"))
        return faults

    def _set(self, connection: str, wanted: Mapping[str, str], of: SettingsOf) -> None:
        driver = self._driver(connection)
        has = driver.settings()
        changes = {name: value for name, value in wanted.items() if name not in has or not has[name].holds(value)}
        for name, value in changes.items():
            driver.set_setting(name, value)
        if changes:
            self._run.append(SettingsNoted(connection, of, tuple(changes.items())))

    def _driver(self, connection: str) -> HasSettings:
        driver = self._run.stage.settings.get(connection)
        if driver is None:
            remedy = "Use a driver that can, such as esphome"
            raise InputError(f"the connection of {connection} cannot set settings", remedy=remedy)
        return driver


def _connections(trial: Trial) -> tuple[str, ...]:
    """Ids of the connections of the trial's devices."""
    if trial.listening is None:
        return (trial.connection,) if trial.connection else ()
    return tuple(dict.fromkeys(one.connection for one in trial.listening.targets))


def _demand(connection: str, name: str, value: str, has: Mapping[str, DeviceSetting]) -> None:
    """InputError if the device has no such setting, or the setting no such value."""
    if name not in has:
        what = f"device_settings: {connection} has no setting {name!r}"
        raise InputError(what, remedy=nearest(name, list(has), listed="Its settings"))
    if refusal := has[name].refusal(value):
        raise InputError(f"device_settings: {connection}: {name}: {value!r} {refusal}", remedy=has[name].remedy)
