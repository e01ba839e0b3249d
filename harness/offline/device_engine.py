"""A device as an engine: files go to the device over its wire, and its wake events are the spots."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import numpy.typing as npt

from harness.base.refractory import RefractoryFilter
from harness.devices.profiles.profile import load_profile, profile_paths
from harness.engines.settings import LEAD_IN, SPOT_DURATION, number
from harness.model.bench import DeviceProfile, Framing
from harness.model.errors import InputError
from harness.model.observation import StimulusEnded, StimulusStarted, Wake
from harness.model.offline import EngineFacts, EngineKind, OfflineModel, OfflineSpot, Setting, SettingKind

if TYPE_CHECKING:
    from harness.offline.device_link import DeviceLink, ReachableDevice

RESTART, SILENCE = "restart", "silence"
SENSITIVITY = Setting(
    "sensitivity", SettingKind.WHOLE, "",
    "sensitivity of the wake word, 0 (least) to 100; only with the harness's framing", low=0, high=100, scores=True,
)  # fmt: skip
BETWEEN = Setting(
    "between", SettingKind.CHOICE, "",
    "how the device's state is cleared between files; default: a restart if supported, else silence",
    choices=(RESTART, SILENCE), scores=True,
)  # fmt: skip
GAP = Setting(
    "gap-ms", SettingKind.NUMBER, "",
    "ms of near-silence after each file; events in it count for that file. Default: 0 with a restart, else 3000",
    low=0, high=600_000, scores=True,
)  # fmt: skip
REFRACTORY = Setting(
    "refractory-ms", SettingKind.NUMBER, "0", "ms after an event in which further events count as part of it",
    low=0, high=60_000,
)  # fmt: skip
PORT = Setting("port", SettingKind.TEXT, "", "serial port; overrides the one in the bench")
USB = Setting("usb", SettingKind.TEXT, "", "USB serial number of the adapter, or vid:pid, instead of port")
BAUD = Setting("baud", SettingKind.WHOLE, "", "baud rate", low=1)
ADDRESS = Setting("address", SettingKind.TEXT, "", "MQTT broker, host:port")
ENCODING = Setting(
    "encoding", SettingKind.CHOICE, "", "encoding of the sound on the wire; pcm16 is lossless",
    choices=("pcm16", "ulaw", "adpcm"), scores=True,
)  # fmt: skip
PACE = Setting(
    "pace",
    SettingKind.CHOICE,
    "",
    "as fast as the device acknowledges, or in real time",
    choices=("fastest", "realtime"),
)
DEFAULT_GAP_MS = 3000.0
"""Gap after each file if the device is not restarted."""
FLOOR_DBFS = -78.0
"""Level of the near silence in gaps: no microphone gives zeros (docs/how-to/test-wake-words.md, What is played)."""
PIECE_S = 20.0
"""Length of the pieces in which sound is sent."""
_SOUND_KEY = re.compile(rb"""\b(audio['"]?\s*:|framing['"]?\s*:\s*['"]?vh\b)""")
"""Matches every profile of a device that takes sound over its wire. Other profiles need not be parsed."""


class DeviceEngine:
    """`device:bench.yaml#id`, or `device:profile` with `port`, `usb` or `address`. Implements `SpotsPhrases`.

    One device is one engine: `bench.yaml#a,b` serves two worker processes. Raises InputError if all devices are taken,
    DeviceError if the device does not answer.

    more_tries: number of times that a file is repeated after an EngineError. A pulled cable, for example, is not a
    fault of the file.
    """

    more_tries: ClassVar[int] = 2
    settings: ClassVar[tuple[Setting, ...]] = (
        LEAD_IN, SENSITIVITY, BETWEEN, GAP, REFRACTORY, SPOT_DURATION, PORT, USB, BAUD, ADDRESS, ENCODING, PACE,
    )  # fmt: skip

    def __init__(self, model: str, settings: Mapping[str, str]) -> None:
        # Imported here, since drivers take long to import and a list of engines needs none.
        from harness.offline.device_link import DeviceLink, lock_free_device, task_devices

        self._stack = ExitStack()
        try:
            self._device = self._stack.enter_context(lock_free_device(task_devices(model, settings)))
            self._link = DeviceLink(self._device)
            self._stack.callback(self._link.close)
            self._restarts = self._restarts_between_files(settings)
            self._sensitivity = self._chosen_sensitivity(settings)
        except BaseException:
            self._stack.close()
            raise
        rate_hz = self._link.rate_hz
        gap_ms = float(settings.get(GAP.name) or (0.0 if self._restarts else DEFAULT_GAP_MS))
        noise = np.random.default_rng(0).standard_normal(round(gap_ms / 1000 * rate_hz))
        self._gap = np.rint(noise * 10 ** (FLOOR_DBFS / 20) * 32768).astype(np.int16)
        self._refractory_samples = round(number(settings, REFRACTORY) / 1000 * rate_hz)
        self._spot_samples = round(number(settings, SPOT_DURATION) / 1000 * rate_hz)
        self.facts = self._make_facts(settings)
        self._stream: DeviceStream | None = None

    @classmethod
    def models(cls) -> tuple[OfflineModel, ...]:
        """Profiles of devices that take sound over a wire. The devices themselves are in a bench."""
        paths = profile_paths(Path.cwd() / "devices").values()
        profiles = [load_profile(path, beside=Path.cwd()) for path in paths if _SOUND_KEY.search(path.read_bytes())]
        sound_profiles = [
            profile for profile in profiles if profile.audio is not None or profile.console.framing is Framing.VH
        ]
        return tuple(OfflineModel(profile.id, profile.wake_phrases, "", profile.title) for profile in sound_profiles)

    @classmethod
    def most_jobs(cls, model: str) -> int:
        """Largest number of workers for a task: one per device."""
        _, _, ids = model.partition("#")
        return max(1, len([device_id for device_id in ids.split(",") if device_id.strip()]))

    def listen(self) -> DeviceStream:
        """Clears the device's state, by a restart or by a gap of near silence, and begins a file.

        Raises EngineError if that fails this time, DeviceError if the device does not come back.

        Without restarts, the gap after each file clears the state, so that only the first file needs one before it.
        """
        is_first = self._stream is None
        self._stream = None
        self._link.await_link()
        if self._restarts:
            self._link.restart()
        elif is_first and len(self._gap):
            self._link.play(self._gap)  # clears what the device heard before
        if self._sensitivity is not None and (is_first or self._restarts):
            self._link.set_sensitivity(self._sensitivity)
        self._stream = DeviceStream(self._link, self._gap, self._spot_samples, self._refractory_samples)
        return self._stream

    def close(self) -> None:
        self._stack.close()

    def _restarts_between_files(self, settings: Mapping[str, str]) -> bool:
        choice = settings.get(BETWEEN.name, "")
        if choice == RESTART and not self._link.abilities.restarts:
            raise InputError(
                f"{self._link.id} cannot be restarted over its connection",
                remedy=f"Set {BETWEEN.name}={SILENCE}, and {GAP.name} to a silence long enough to clear its state",
            )
        return self._link.abilities.restarts and choice != SILENCE

    def _chosen_sensitivity(self, settings: Mapping[str, str]) -> int | None:
        text = settings.get(SENSITIVITY.name, "")
        if text and not self._link.abilities.tunes:
            raise InputError(
                f"{self._link.id} does not accept a sensitivity over its connection",
                remedy=f"Set the sensitivity on the device, and remove {SENSITIVITY.name}",
            )
        return int(text) if text else None

    def _make_facts(self, settings: Mapping[str, str]) -> EngineFacts:
        profile, about = self._device.profile, self._link.about()
        return EngineFacts(
            kind=EngineKind.WAKE,
            version=about.firmware or f"profile {profile.id}",
            rate_hz=self._link.rate_hz,
            phrases=about.wake_phrases or profile.wake_phrases,
            fingerprint=_fingerprint(self._device, profile, about.firmware, settings),
            lead_in_ms=number(settings, LEAD_IN),
            settings=tuple(sorted(settings.items())),
        )


class DeviceStream:
    """Sends one file to a device, in pieces of 20 s that the device takes as one stream.

    - gap: near silence that follows the file.
    - spot: assumed length of a spot, in samples.
    - refractory: refractory time, in samples.
    """

    def __init__(self, link: DeviceLink, gap: npt.NDArray[np.int16], spot: int, refractory: int) -> None:
        self._link, self._gap, self._spot_samples = link, gap, spot
        self._refractory_filter = RefractoryFilter(refractory)
        self._waiting: list[npt.NDArray[np.int16]] = []
        self._waiting_samples = 0
        self._file_samples = 0  # samples of the file so far
        self._began_s: float | None = None  # on the device's audio line
        self._spots: list[OfflineSpot] = []

    def feed(self, samples: npt.NDArray[np.int16]) -> None:
        """Shape (n,), at the device's rate. May wait for the device."""
        piece_samples = round(PIECE_S * self._link.rate_hz)
        self._waiting.append(samples.copy())  # the caller may reuse its buffer
        self._waiting_samples += len(samples)
        if self._waiting_samples >= piece_samples:
            whole = np.concatenate(self._waiting)
            cut = len(whole) // piece_samples * piece_samples
            for start in range(0, cut, piece_samples):
                self._play(whole[start : start + piece_samples])
            self._waiting, self._waiting_samples = [whole[cut:].copy()], len(whole) - cut

    def take(self, *, flush: bool) -> tuple[OfflineSpot, ...]:
        """Spots since the last take. flush: the file has ended, so the rest of it and the gap are sent first. An event
        in the gap counts as if it came at the file's last sample."""
        if flush:
            last_piece = np.concatenate(self._waiting) if self._waiting else np.zeros(0, np.int16)
            self._waiting, self._waiting_samples = [], 0
            if len(last_piece):
                self._play(last_piece)
            if len(self._gap):
                self._play(self._gap, is_file=False)
        spots, self._spots = tuple(self._spots), []
        return spots

    def _play(self, samples: npt.NDArray[np.int16], *, is_file: bool = True) -> None:
        """Plays a piece, and adds the spots of the events in it. is_file: False for the gap after the file."""
        started, ended, wakes = self._link.play(samples)
        samples_before = self._file_samples
        if is_file:
            self._file_samples += len(samples)
        if self._began_s is None:
            self._began_s = started.audio_s
        for wake in wakes:
            self._add_spot(wake, self._sample_of(wake, samples_before, started, ended))

    def _sample_of(self, wake: Wake, samples_before: int, started: StimulusStarted, ended: StimulusEnded) -> int:
        """The sample of the file at which the device woke. If the event does not state its place in the sound, the
        host's clock decides. samples_before: number of samples of the file that preceded this piece."""
        if wake.audio_s is not None and self._began_s is not None:
            return round((wake.audio_s - self._began_s) * self._link.rate_hz)
        took_s = ended.at.at_s - started.at.at_s
        share = (wake.at.at_s - started.at.at_s) / took_s if took_s > 0 else 1.0
        return samples_before + round(min(1.0, max(0.0, share)) * (self._file_samples - samples_before))

    def _add_spot(self, wake: Wake, sample: int) -> None:
        if sample <= 0:  # the event belongs to earlier sound
            return
        end = min(sample, self._file_samples)
        if self._refractory_filter.accept("", end):  # one refractory time for all phrases of a device
            self._spots.append(OfflineSpot(wake.phrase, max(0, end - self._spot_samples), end, wake.score))


def _fingerprint(device: ReachableDevice, profile: DeviceProfile, firmware: str, settings: Mapping[str, str]) -> str:
    """A hash of everything known on which events depend: the reported firmware version, the profile, the settings."""
    scoring = {setting.name for setting in DeviceEngine.settings if setting.scores}
    relevant = [f"{name}={value}" for name, value in sorted(settings.items()) if name in scoring]
    rules = [file.sha256 for file in profile.files]
    encoding = str(getattr(device.options, "encoding", ""))  # only some drivers have this option
    parts = [device.driver, profile.id, *rules, firmware, encoding, *relevant]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()
