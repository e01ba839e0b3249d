"""Sets devices and stands for trials, and sets them back. The log has the devices' own values before any change."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping

from harness.base.findings import nearest
from harness.base.ports import HasSettings
from harness.model.bench import DeviceSetting
from harness.model.errors import DeviceError, HarnessError, InputError
from harness.model.feed import StateWord
from harness.model.record import FaultMet, SettingsNoted, SettingsOf
from harness.model.trial import Trial
from harness.session.run import Run

BY_HAND = "stands"
"""Who pauses the run until the operator has moved a stand, in the rows."""


class TrialSettings:
    """The settings that a plan varies. What a trial does not name has its original value, or its stand goes home."""

    def __init__(self, run: Run, serve: Callable[[], None]) -> None:
        self._run = run
        self._serve = serve
        self._stands = {id: one.stand for id, one in run.stage.stands.items()}
        # A run that was killed may have left them changed.
        self._to_restore = bool(run.standing.originals) or any(map(self._home, self._stands))

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

    def apply(self, trial: Trial) -> bool:
        """Whether the devices and stands report what the trial asks for; False if the run ends first.

        DeviceError if one does not in time.
        """
        for connection in _connections(trial):
            originals = self._run.standing.originals.get(connection)
            if originals:
                self._to_restore = True
                self._set(connection, {**originals, **dict(trial.settings)}, SettingsOf.TRIAL)
        places = dict(trial.stands)
        for id, stand in self._stands.items():
            wanted = {stand.moves: places[id]} if id in places else self._home(id)
            self._to_restore |= bool(wanted)
            self._set(id, wanted, SettingsOf.TRIAL)
        return self._run.ending is None

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
        for source, originals in self._originals():
            try:
                self._set(source, originals, SettingsOf.RESTORED)
            except HarnessError as error:
                values = ", ".join(f"{name}={value}" for name, value in originals.items())
                faults.append(FaultMet(source, f"its settings may not be set back ({error}). Set them: {values}"))
        return faults

    def _originals(self) -> Iterator[tuple[str, Mapping[str, str]]]:
        yield from self._run.standing.originals.items()
        # A person is not sent to the room for nothing at the end of a night.
        yield from ((id, self._home(id)) for id in self._stands if not self._run.stage.stands[id].by_hand)

    def _home(self, stand: str) -> Mapping[str, str]:
        home = self._stands[stand].home
        return {} if home is None else {self._stands[stand].moves: f"{home:g}"}

    def _set(self, source: str, wanted: Mapping[str, str], of: SettingsOf) -> None:
        if not wanted:
            return
        driver = self._driver(source)
        has = driver.settings()
        changes = {name: value for name, value in wanted.items() if name not in has or not has[name].holds(value)}
        for name, value in changes.items():
            if not self._change(source, name, value):
                return
        if changes:
            self._run.append(SettingsNoted(source, of, tuple(changes.items())))

    def _change(self, source: str, name: str, value: str) -> bool:
        """Whether it is done; False if the run ends before the operator has moved a stand."""
        run, stand = self._run, self._run.stage.stands.get(source)
        if stand is None:
            self._driver(source).set_setting(name, value)
            return True
        if stand.by_hand and not run.by_hand(stand.request(value), BY_HAND, self._serve):
            return False
        run.show(StateWord.PREPARING, f"{source}: sets {name} to {value}")
        return run.meanwhile(lambda given_up: stand.set_setting(name, value, given_up), self._serve)

    def _driver(self, source: str) -> HasSettings:
        driver = self._run.stage.stands.get(source) or self._run.stage.settings.get(source)
        if driver is None:
            remedy = "Use a driver that can, such as esphome"
            raise InputError(f"the connection of {source} cannot set settings", remedy=remedy)
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
