"""A transport of somebody else: a board that speaks lines of text over TCP, and takes PCM16 at 16 kHz.

AUDIO <bytes>, then so many bytes of sound      heard <samples since its start>
RESET                                           boot: reset
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import soxr

from harness.base.host_check import Check, Level
from harness.base.ports import Sink, Surroundings
from harness.devices.declared import Abilities, About
from harness.devices.device_sources import StreamSource
from harness.devices.wire.console import Console
from harness.model.bench import DeviceProfile
from harness.model.errors import DeviceError, InputError
from harness.model.observation import (
    DeviceDescribed,
    DeviceState,
    LinkBack,
    LinkLost,
    ListeningProved,
    Observation,
    Proof,
    Status,
    StimulusEnded,
    StimulusStarted,
    Wake,
)
from harness.model.stimulus import Waveform
from harness.model.time import Stamp

RATE_HZ = 16_000
PIECE_BYTES = RATE_HZ  # half a second
ANSWER_S = 5.0


@dataclass(frozen=True, slots=True)
class TcpLineOptions:
    """The keys of its connection in a bench file. address: host:port."""

    address: str

    def __post_init__(self) -> None:
        if not self.address.rpartition(":")[2].isdecimal():
            raise InputError(f"{self.address!r} is not an address", remedy="Write host:port")


def connected(options: TcpLineOptions) -> socket.socket:
    host, _, port = options.address.rpartition(":")
    try:
        link = socket.create_connection((host, int(port)), ANSWER_S)
    except OSError as error:
        raise DeviceError(f"{options.address} cannot be reached: {error}", remedy="Switch the board on") from error
    link.settimeout(None)
    return link


class TcpLine:
    """Observes by the profile's lines; Stimulates by injection, as fast as the board takes it."""

    Options = TcpLineOptions

    def __init__(self, id: str, options: TcpLineOptions, surroundings: Surroundings) -> None:
        self.id = id
        self._options, self._now_s = options, surroundings.clock.now_s
        self._console = Console(surroundings.profile, id)
        self._changed = threading.Condition()
        self._link: socket.socket | None = None
        self._sink: Sink | None = None
        self._about = About(rate_hz=RATE_HZ)
        self._heard = 0  # samples that the board has acknowledged since its start
        self._before_s = 0.0  # on the audio line, at its last start
        self._playing = ""

    # What it declares

    @staticmethod
    def abilities(options: TcpLineOptions, profile: DeviceProfile | None) -> Abilities:
        return Abilities(injects=True, restarts=True)

    @staticmethod
    def source(options: TcpLineOptions, profile: DeviceProfile, device: str, topics: tuple[str, ...]) -> StreamSource:
        return StreamSource(options.address, lambda: connected(options).makefile("rb", buffering=0))

    @staticmethod
    def host_checks(connections: Sequence[tuple[str, TcpLineOptions]]) -> Iterator[Check]:
        for id, options in connections:
            try:
                connected(options).close()
            except DeviceError as error:
                yield Check("tcp", Level.FAIL, f"{id}: {error.what}", error.remedy)
            else:
                yield Check("tcp", Level.OK, f"{id}: {options.address} answers")

    def about(self) -> About:
        return self._about

    # What every driver does

    def open(self, sink: Sink) -> None:
        self._sink, self._link = sink, connected(self._options)
        threading.Thread(target=self._read, name=f"tcp {self.id}", daemon=True).start()
        with self._changed:
            if not self._changed.wait_for(lambda: self._about.firmware, ANSWER_S):
                self.close()
                raise DeviceError(f"{self.id}: {self._options.address} does not say what it is", remedy="Update it")

    def close(self) -> None:
        with self._changed:
            link, self._link, self._sink, self._playing = self._link, None, None, ""
            self._changed.notify_all()
        if link is not None:
            link.close()

    # What a driver does that takes sound

    def play(self, play_id: str, waveform: Waveform) -> None:
        with self._changed:
            if self._link is None or self._playing:
                raise DeviceError(f"{self.id} is not open, or plays already", remedy="Stop it first")
            self._playing = play_id
        samples = soxr.resample(waveform.samples, waveform.rate_hz, RATE_HZ)
        pcm = np.clip(np.rint(samples * 32768), -32768, 32767).astype("<i2").tobytes()
        threading.Thread(target=self._give, args=(play_id, pcm), name=f"tcp {self.id} sound", daemon=True).start()

    def stop(self) -> None:
        with self._changed:
            self._playing = ""
            self._changed.notify_all()

    def level_dbfs(self) -> float | None:
        return None

    def restart(self) -> None:
        self._send(b"RESET\n")

    def _give(self, play_id: str, pcm: bytes) -> None:
        self._tell(StimulusStarted(self.id, Stamp(self._now_s()), play_id, self._line_s()))
        for start in range(0, len(pcm), PIECE_BYTES):
            piece = pcm[start : start + PIECE_BYTES]
            with self._changed:
                total = self._heard + len(piece) // 2
            self._send(b"AUDIO %d\n%s" % (len(piece), piece))
            if not self._acknowledged(total, play_id):
                break
        complete, self._playing = self._playing == play_id and self._heard >= total, ""
        now = Stamp(self._now_s())
        self._tell(ListeningProved(self.id, now, Proof.ACKNOWLEDGED, self._line_s()))
        self._tell(StimulusEnded(self.id, now, play_id, complete, self._line_s()))

    def _acknowledged(self, total: int, play_id: str) -> bool:
        with self._changed:
            self._changed.wait_for(lambda: self._heard >= total or self._playing != play_id, ANSWER_S)
            return self._heard >= total and self._playing == play_id

    def _line_s(self) -> float:
        return self._before_s + self._heard / RATE_HZ

    def _send(self, data: bytes) -> None:
        link = self._link
        try:
            if link is not None:
                link.sendall(data)
        except OSError:
            return  # the reading thread notices, and says so

    def _read(self) -> None:
        while (link := self._link) is not None:
            try:
                data = link.recv(4096)
            except OSError:
                data = b""
            stamp = Stamp(self._now_s(), 0.005)
            if not data and self._link is not None:
                self._lost()
            for reading in self._console.read(data, stamp) if data else ():
                for observation in reading.observations:
                    self._take(observation)
                number = reading.text.removeprefix("heard ")
                if number != reading.text:
                    with self._changed:
                        self._heard = int(number)
                        self._changed.notify_all()

    def _take(self, observation: Observation) -> None:
        match observation:
            case Status(state=DeviceState.STARTED):
                self._before_s, self._heard = self._line_s(), 0
            case DeviceDescribed(firmware=firmware):
                with self._changed:
                    self._about = replace(self._about, firmware=firmware)
                    self._changed.notify_all()
            case Wake(audio_s=float(audio_s)):
                observation = replace(observation, audio_s=self._before_s + audio_s)
            case _:
                pass
        self._tell(observation)

    def _lost(self) -> None:
        self.stop()
        self._tell(LinkLost(self.id, Stamp(self._now_s()), f"{self._options.address} has closed the connection"))
        while self._link is not None:
            try:
                link = connected(self._options)
            except DeviceError:
                with self._changed:
                    self._changed.wait(0.5)
                continue
            with self._changed:
                self._link, self._heard = link, 0
            self._tell(LinkBack(self.id, Stamp(self._now_s())))
            return

    def _tell(self, observation: Observation) -> None:
        sink = self._sink
        if sink is not None:
            sink(observation)
