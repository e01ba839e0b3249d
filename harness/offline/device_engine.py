"""A device as an engine: files go into it over its wire, and its own wake events are the spots."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import numpy.typing as npt

from harness.devices.profiles.profile import load_profile, profile_paths
from harness.engines.settings import LEAD_IN, SPOT_DURATION, number
from harness.model.bench import DeviceProfile, Framing
from harness.model.errors import InputError
from harness.model.observation import StimulusEnded, StimulusStarted, Wake
from harness.model.offline import EngineFacts, EngineKind, OfflineModel, OfflineSpot, Setting, SettingKind

if TYPE_CHECKING:
    from harness.offline.device_link import DeviceLink, Reached

RESTART, SILENCE = "restart", "silence"
SENSITIVITY = Setting(
    "sensitivity", SettingKind.WHOLE, "", "of its wake word, 0 (least) to 100; boards with our framing",
    low=0, high=100, scores=True,
)  # fmt: skip
BETWEEN = Setting(
    "between", SettingKind.CHOICE, "",
    "what makes it forget the file before: a restart, or silence; a restart where it can be asked for one",
    choices=(RESTART, SILENCE), scores=True,
)  # fmt: skip
GAP = Setting(
    "gap-ms", SettingKind.NUMBER, "",
    "near silence after each file, ms; what it tells there is the file's. 0 with a restart, else 3000",
    low=0, high=600_000, scores=True,
)  # fmt: skip
REFRACTORY = Setting(
    "refractory-ms", SettingKind.NUMBER, "0", "events closer than this to the one before are the same, ms",
    low=0, high=60_000,
)  # fmt: skip
PORT = Setting("port", SettingKind.TEXT, "", "serial port; of a profile, or in place of the bench's")
USB = Setting("usb", SettingKind.TEXT, "", "USB serial number of the adapter, or vid:pid, in place of port")
BAUD = Setting("baud", SettingKind.WHOLE, "", "rate of the line", low=1)
ADDRESS = Setting("address", SettingKind.TEXT, "", "MQTT broker, host:port")
ENCODING = Setting(
    "encoding", SettingKind.CHOICE, "", "of the sound on the wire; pcm16 changes no sample",
    choices=("pcm16", "ulaw", "adpcm"), scores=True,
)  # fmt: skip
PACE = Setting(
    "pace", SettingKind.CHOICE, "", "as fast as it acknowledges, or in real time", choices=("fastest", "realtime")
)
DEFAULT_GAP_MS = 3000.0
FLOOR_DBFS = -78.0
"""Near silence: no microphone ever gives zeros (docs/wake.md, What is played)."""
PIECE_S = 20.0
_SOUND_KEY = re.compile(rb"\b(audio|framing)\b")
"""In the text of every profile of a device that takes sound over its wire; the others need not be read."""


class DeviceEngine:
    """`device:bench.yaml#id`, or `device:profile` with `port`, `usb` or `address`. Implements `SpotsPhrases`.

    One device is one engine: `bench.yaml#a,b` serves two worker processes. InputError when all are taken, DeviceError
    when the device is not there. more_tries: how often a file is given once more after an EngineError: a cable that was
    pulled says nothing about the file.
    """

    more_tries: ClassVar[int] = 2
    settings: ClassVar[tuple[Setting, ...]] = (
        LEAD_IN, SENSITIVITY, BETWEEN, GAP, REFRACTORY, SPOT_DURATION, PORT, USB, BAUD, ADDRESS, ENCODING, PACE,
    )  # fmt: skip

    def __init__(self, model: str, settings: Mapping[str, str]) -> None:
        # Here, since drivers take long to import and a list of engines needs none.
        from harness.offline.device_link import DeviceLink, first_free, reached

        self._stack = ExitStack()
        try:
            self._reached = self._stack.enter_context(first_free(reached(model, settings)))
            self._link = DeviceLink(self._reached)
            self._stack.callback(self._link.close)
            self._restarts = self._may_restart(settings)
            self._sensitivity = self._asked_sensitivity(settings)
        except BaseException:
            self._stack.close()
            raise
        rate_hz = self._link.rate_hz
        gap_ms = float(settings.get(GAP.name) or (0.0 if self._restarts else DEFAULT_GAP_MS))
        self._gap = _near_silence(round(gap_ms / 1000 * rate_hz))
        self._refractory = round(number(settings, REFRACTORY) / 1000 * rate_hz)
        self._spot = round(number(settings, SPOT_DURATION) / 1000 * rate_hz)
        self._facts = self._described(settings)
        self._stream: DeviceStream | None = None

    @classmethod
    def models(cls) -> tuple[OfflineModel, ...]:
        """Profiles of devices that take sound over a wire; a bench names the devices themselves."""
        paths = profile_paths(Path.cwd() / "devices").values()
        profiles = [load_profile(path, beside=Path.cwd()) for path in paths if _SOUND_KEY.search(path.read_bytes())]
        able = [one for one in profiles if one.audio is not None or one.console.framing is Framing.VH]
        return tuple(OfflineModel(one.id, one.wake_phrases, "", one.title) for one in able)

    @classmethod
    def most_jobs(cls, model: str) -> int:
        """How many workers a task can have: as many as it names devices."""
        _, _, ids = model.partition("#")
        return max(1, len([one for one in ids.split(",") if one.strip()]))

    @property
    def facts(self) -> EngineFacts:
        return self._facts

    def listen(self) -> DeviceStream:
        """The device with nothing in its memory: restarted, or after a silence. EngineError when that cannot be now,
        DeviceError when the device is gone for good."""
        first = self._stream is None
        self._stream = None
        self._link.ready()
        if self._restarts:
            self._link.restart()
        elif first and len(self._gap):
            self._link.give(self._gap)  # what it heard before us is forgotten too
        if self._sensitivity is not None and (first or self._restarts):
            self._link.set_sensitivity(self._sensitivity)
        self._stream = DeviceStream(self._link, self._gap, self._spot, self._refractory)
        return self._stream

    def close(self) -> None:
        self._stack.close()

    def _may_restart(self, settings: Mapping[str, str]) -> bool:
        asked = settings.get(BETWEEN.name, "")
        if asked == RESTART and not self._link.abilities.restarts:
            raise InputError(
                f"{self._link.id} cannot be asked to restart over its connection",
                remedy=f"Set {BETWEEN.name}={SILENCE}, and {GAP.name} to what it needs to forget",
            )
        return self._link.abilities.restarts and asked != SILENCE

    def _asked_sensitivity(self, settings: Mapping[str, str]) -> int | None:
        text = settings.get(SENSITIVITY.name, "")
        if text and not self._link.abilities.tunes:
            raise InputError(
                f"{self._link.id} takes no sensitivity over its connection",
                remedy=f"Set it on the device, and leave {SENSITIVITY.name} out",
            )
        return int(text) if text else None

    def _described(self, settings: Mapping[str, str]) -> EngineFacts:
        profile, about = self._reached.profile, self._link.about()
        return EngineFacts(
            kind=EngineKind.WAKE,
            version=about.firmware or f"profile {profile.id}",
            rate_hz=self._link.rate_hz,
            phrases=about.wake_phrases or profile.wake_phrases,
            fingerprint=_fingerprint(self._reached, profile, about.firmware, settings),
            lead_in_ms=number(settings, LEAD_IN),
            settings=tuple(sorted(settings.items())),
        )


class DeviceStream:
    """A file on its way into a device. Sound goes out in pieces of 20 s; they are one stream to the device."""

    def __init__(self, link: DeviceLink, gap: npt.NDArray[np.int16], spot: int, refractory: int) -> None:
        self._link, self._gap, self._spot, self._refractory = link, gap, spot, refractory
        self._waiting: list[npt.NDArray[np.int16]] = []
        self._held = 0
        self._given = 0  # of the file, up to its last sample so far
        self._began_s: float | None = None  # on the device's audio line
        self._last: int | None = None
        self._found: list[OfflineSpot] = []

    def feed(self, samples: npt.NDArray[np.int16]) -> None:
        """Shape (n,), at the device's rate; waits for the device now and then."""
        piece = round(PIECE_S * self._link.rate_hz)
        self._waiting.append(samples.copy())  # the caller may use its buffer again
        self._held += len(samples)
        if self._held >= piece:
            whole = np.concatenate(self._waiting)
            cut = len(whole) // piece * piece
            for at in range(0, cut, piece):
                self._give(whole[at : at + piece])
            self._waiting, self._held = [whole[cut:].copy()], len(whole) - cut

    def take(self, *, flush: bool) -> tuple[OfflineSpot, ...]:
        """Spots since the last take; what the device tells in the gap after a file lies on the file's last sample."""
        if flush:
            rest = np.concatenate(self._waiting) if self._waiting else np.zeros(0, np.int16)
            self._waiting, self._held = [], 0
            if len(rest):
                self._give(rest)
            if len(self._gap):
                self._give(self._gap, file=False)
        found, self._found = tuple(self._found), []
        return found

    def _give(self, samples: npt.NDArray[np.int16], *, file: bool = True) -> None:
        started, ended, wakes = self._link.give(samples)
        before = self._given
        if file:
            self._given += len(samples)
        if self._began_s is None:
            self._began_s = started.audio_s
        for wake in wakes:
            self._spotted(wake, self._place(wake, before, started, ended))

    def _place(self, wake: Wake, before: int, started: StimulusStarted, ended: StimulusEnded) -> int:
        """The sample of the file at which it woke; one that tells no sample is placed by the host's clock."""
        if wake.audio_s is not None and self._began_s is not None:
            return round((wake.audio_s - self._began_s) * self._link.rate_hz)
        took_s = ended.at.at_s - started.at.at_s
        share = (wake.at.at_s - started.at.at_s) / took_s if took_s > 0 else 1.0
        return before + round(min(1.0, max(0.0, share)) * (self._given - before))

    def _spotted(self, wake: Wake, sample: int) -> None:
        if sample <= 0:
            return  # of before this file
        end = min(sample, self._given)
        last, self._last = self._last, end
        if last is not None and end - last < self._refractory:
            return
        self._found.append(OfflineSpot(wake.phrase, max(0, end - self._spot), end, wake.score))


def _near_silence(count: int) -> npt.NDArray[np.int16]:
    noise = np.random.default_rng(0).standard_normal(count) * 10 ** (FLOOR_DBFS / 20) * 32768
    return np.rint(noise).astype(np.int16)


def _fingerprint(one: Reached, profile: DeviceProfile, firmware: str, settings: Mapping[str, str]) -> str:
    """What the events depend on, as far as anybody knows: the firmware by its own word, the profile, the settings."""
    known = {each.name for each in DeviceEngine.settings if each.scores}
    relevant = [f"{name}={value}" for name, value in sorted(settings.items()) if name in known]
    parts = [one.driver, profile.id, profile.sha256, firmware, str(getattr(one.options, "encoding", "")), *relevant]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()
