"""Plays responses to a rater: one sound at a time, with its position."""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass

from harness.model.errors import SoundError
from harness.model.stimulus import Waveform
from harness.model.time import Stamp
from harness.rating.desk import Desk
from harness.rating.items import Item
from harness.rating.rating_room import RatingRoom
from harness.sound.playback import Playback
from harness.sound.sound_devices import find, sound_devices
from harness.sound.tempo import SLOWER, at_tempo

OnDone = Callable[[float, bool], None]
"""Called at the end of a play, on a thread of the player. Arguments: the seconds that left the device, and whether the
sound was complete."""
LAB_OUTPUT = "harness_monitor"
"""The output of the lab that no device hears."""


@dataclass(slots=True)
class _RaterPlay:
    """A sound that plays or will play. began_at_s: on the clock of the stream; None before it has begun."""

    id: str
    duration_s: float
    on_done: OnDone | None
    began_at_s: float | None = None


class RaterPlayer:
    """Plays through PyAudio in a supervised child. The first play, or `open`, opens the output. Thread-safe.

    `fault` reports a lost output. The next play opens it again.
    """

    def __init__(self, device: str, sound_server: str) -> None:
        self._device, self._sound_server = device, sound_server
        self._playback: Playback | None = None
        self._opening_lock = threading.Lock()  # held while the output opens or closes (seconds); taken first
        self._lock = threading.Lock()  # protects the fields below, and is never held for long
        self._plays: dict[str, _RaterPlay] = {}
        self._numbers = itertools.count(1)
        self._last_stopped_number = 0  # plays with this number or a lower one were stopped
        self.fault = ""
        """Why the output was lost; "" while it works."""

    @property
    def child_pid(self) -> int | None:
        """The process id of PyAudio's child process; None if there is none."""
        playback = self._playback
        return playback.child_pid if playback is not None else None

    def check(self) -> None:
        """Raises SoundError, with a list of all devices, if its device does not exist, or if no device can play.

        Opens nothing.
        """
        devices = sound_devices(self._sound_server)
        if self._device or not any(device.outputs for device in devices):
            find(devices, self._device, plays=True, sound_server=self._sound_server)

    def open(self) -> None:
        """Opens the output within 5 s, if it is not open. Raises SoundError if that fails."""
        with self._opening_lock:
            if self._playback is not None:
                return
            playback = Playback(
                self._device,
                self._sound_server,
                on_started=self._on_started,
                on_ended=self._on_ended,
                on_fault=lambda stamp, problem: self._on_fault(playback, problem),
                frames_per_buffer=960,
            )
            self.fault = ""
            playback.open()
            self._playback = playback
            # Looked at last: the output may be lost at any time since it opened. Then `_on_fault` closes it.
            if self.fault:
                self._playback = None
                raise SoundError(self.fault)

    def order(self) -> int:
        """Reserves a place in the order of plays and stops, for a play whose sound is not ready yet."""
        return next(self._numbers)

    def play(self, waveform: Waveform, on_done: OnDone | None = None, order: int | None = None) -> None:
        """Starts a sound of any rate, and ends the current one. Waits only while the output opens. Raises SoundError.

        order: number from `order`; None for a new one. If `stop` was called after that number was reserved, nothing is
        played, and on_done(0.0, False) is called.
        """
        number = next(self._numbers) if order is None else order
        self.open()
        play = _RaterPlay(f"rater-{number}", waveform.duration_s, on_done)
        with self._lock:
            playback = self._playback
            is_current = playback is not None and number > self._last_stopped_number
            if is_current:
                self._plays[play.id] = play
        if playback is None or not is_current:
            if on_done is not None:
                on_done(0.0, False)
            return
        playback.stop()
        try:
            playback.play(play.id, waveform)
        except SoundError:
            with self._lock:
                self._plays.pop(play.id, None)
            raise

    def stop(self) -> None:
        """Ends the current play, or one that waits for the output; its `on_done` follows."""
        with self._lock:
            self._last_stopped_number = next(self._numbers)
            playback = self._playback
        if playback is not None:
            playback.stop()

    @property
    def position_s(self) -> float | None:
        """Seconds of the current play that have left the device, by the clock of the stream; None if nothing plays.

        It lags behind what is heard by at most one buffer (20 ms) and the error of the stream's time stamps.
        """
        with self._lock:
            playback = self._playback
            latest = next(reversed(self._plays), None)
        return None if playback is None or latest is None else playback.played_s(latest)

    def close(self) -> None:
        """Closes within 1.5 s, in any state. Cuts the current play, and does not call its `on_done`."""
        with self._opening_lock:
            playback, self._playback = self._playback, None
            with self._lock:
                self._plays.clear()
            if playback is not None:
                playback.close()

    def _on_started(self, play_id: str, stamp: Stamp) -> None:
        with self._lock:
            if play_id in self._plays:
                self._plays[play_id].began_at_s = stamp.at_s

    def _on_ended(self, play_id: str, stamp: Stamp, complete: bool) -> None:
        with self._lock:
            play = self._plays.pop(play_id, None)
        if play is None or play.on_done is None:
            return
        played_s = 0.0 if play.began_at_s is None else max(0.0, min(stamp.at_s - play.began_at_s, play.duration_s))
        play.on_done(play.duration_s if complete else played_s, complete)

    def _on_fault(self, playback: Playback, problem: str) -> None:
        self.fault = problem
        if self._playback is playback:
            self._playback = None
        # In another thread: this is the stream's thread, which must finish its report before it can end.
        threading.Thread(target=playback.close, name="rater-player-close", daemon=True).start()


def open_player(sound_device: str | None) -> RaterPlayer:
    """A player on an output of this host, not opened yet. sound_device: None for the host's default.

    With HARNESS_LAB set, outputs belong to that virtual lab, and None stands for its monitor, which no device hears.
    """
    if os.environ.get("HARNESS_LAB"):
        return RaterPlayer(sound_device or LAB_OUTPUT, "virtual_lab")
    return RaterPlayer(sound_device or "", "system")


END_TIMEOUT_S = 2.0
"""Longest time that `stop` waits for the output to report how much was heard."""


class ItemPlayer:
    """Plays one sound at a time, and adds what was heard to the desk's draft, on the caller's thread."""

    def __init__(self, room: RatingRoom, desk: Desk, player: RaterPlayer) -> None:
        self._room, self._desk, self._player = room, desk, player
        self._end_event: threading.Event | None = None
        """Set at the end of the current sound; None if nothing plays."""
        self._played_s = 0.0
        self._item_id: str | None = None
        """The item whose response plays; None for another sound."""
        self._tempo = 1.0

    def play_response(self, item: Item, *, slower: bool = False) -> float:
        """Starts the response. Returns its duration in seconds. Raises SoundError, LogError or VoiceError."""
        tempo = SLOWER if slower else 1.0
        sound = self._room.response_sound(item)
        self._begin(at_tempo(sound, tempo), item_id=item.id, tempo=tempo)
        self._desk.record_play(0, began=True)
        return sound.duration_s / tempo

    def play_query(self, item: Item) -> float:
        """Starts the query. Returns its duration in seconds. Raises SoundError or VoiceError."""
        sound = self._room.query_sound(item)
        self._begin(sound, item_id=None, tempo=1.0)
        return sound.duration_s

    def stop(self) -> None:
        """Ends the current sound, and counts what was heard."""
        if self._end_event is not None and not self._end_event.is_set():
            self._player.stop()
        self.wait(END_TIMEOUT_S)

    def wait(self, timeout_s: float) -> None:
        """Waits until the sound has ended, and adds what was heard to the draft."""
        if self._end_event is None:
            return
        self._end_event.wait(timeout_s)
        self._end_event = None
        if self._item_id is not None:
            # Milliseconds of the response at its original tempo.
            played_ms = round(self._played_s * self._tempo * 1000)
            self._desk.record_play(played_ms, began=False, item_id=self._item_id)
        self._played_s = 0.0

    def _begin(self, sound: Waveform, *, item_id: str | None, tempo: float) -> None:
        self.stop()
        end_event = threading.Event()

        def on_done(played_s: float, complete: bool) -> None:
            if self._end_event is end_event:  # else this sound was given up, or another one plays
                self._played_s = played_s
            end_event.set()

        self._end_event, self._item_id, self._tempo = end_event, item_id, tempo
        try:
            self._player.play(sound, on_done)
        except BaseException:
            self._end_event = None
            raise
