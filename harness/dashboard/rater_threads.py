"""Threads of a rater's screen, so that no key waits. They read what others have written, and read and play sounds."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from enum import Enum
from functools import partial

import numpy as np
from textual.message import Message

from harness.dashboard.messages import RoomRead, SoundEnded, SoundFailed, SoundRead
from harness.dashboard.widgets.response import SLICE_COUNT, slice_maxima
from harness.model.errors import HarnessError
from harness.model.frozen import frozen
from harness.model.stimulus import Waveform
from harness.rating.items import Item
from harness.rating.rater_player import RaterPlayer
from harness.rating.rating_room import RatingRoom
from harness.sound.tempo import SLOWER, at_tempo

REFRESH_INTERVAL_S = 10.0


class RefreshThread:
    """A thread that reads the room again at intervals.

    post_message: posts a message to the screen; not called after `close`.
    """

    def __init__(
        self, room: RatingRoom, post_message: Callable[[Message], object], interval_s: float = REFRESH_INTERVAL_S
    ) -> None:
        self._room, self._post, self._interval_s = room, post_message, interval_s
        self._closed = threading.Event()
        self._lock = threading.Lock()
        threading.Thread(target=self._work, name="refreshing", daemon=True).start()

    def close(self) -> None:
        with self._lock:
            self._closed.set()

    def _work(self) -> None:
        while not self._closed.wait(self._interval_s):
            fault = ""
            try:
                self._room.refresh()
            except HarnessError as error:
                fault = str(error)
            with self._lock:
                if not self._closed.is_set():
                    self._post(RoomRead(fault))


class ItemSound(Enum):
    """Which sound of an item plays, and how fast."""

    RESPONSE = "plays"
    SLOWER = "slower"
    QUERY = "query"

    @property
    def tempo(self) -> float:
        return SLOWER if self is ItemSound.SLOWER else 1.0


@frozen
class _PlayRequest:
    """A sound to read, and to play.

    - number: increases with each request; only the last one counts.
    - sound: None to read the response without playing it.
    - order: from `RaterPlayer.order`.
    """

    number: int
    item: Item
    sound: ItemSound | None
    order: int


class ItemSounds:
    """Plays the sounds of an item, and knows the position and how much of the response was heard.

    Only the screen's thread calls the methods. post_message: posts a message to the screen; called from any thread, not
    after `close`.
    """

    def __init__(self, room: RatingRoom, player: RaterPlayer | None, post_message: Callable[[Message], object]) -> None:
        self._room, self._player, self._post = room, player, post_message
        self._requests: queue.SimpleQueue[_PlayRequest | None] = queue.SimpleQueue()
        self._is_open = True
        self._lock = threading.Lock()
        self._number = 0
        """Number of the last request. Only the screen's thread changes it; the worker compares."""
        self._current_sound: ItemSound | None = None
        self._last_end: tuple[int, float] | None = None
        """Number of the play that ended last, and the seconds that it has played."""
        self._current_response: tuple[str, Waveform] | None = None
        """Id of the item whose response was read last, and the response. Only the worker uses it."""
        threading.Thread(target=self._work, name="listening", daemon=True).start()

    @property
    def has_player(self) -> bool:
        return self._player is not None

    @property
    def playing(self) -> ItemSound | None:
        return self._current_sound

    @property
    def position_s(self) -> float | None:
        """The position in the response; None when something else plays, or nothing yet."""
        if self._player is None or self._current_sound in (None, ItemSound.QUERY):
            return None
        position_s = self._player.position_s
        return None if position_s is None or self._current_sound is None else position_s * self._current_sound.tempo

    def read(self, item: Item) -> None:
        """Draws the response without playing it."""
        self._request_sound(item, None)

    def play(self, item: Item, sound: ItemSound) -> None:
        """Plays a sound from its start, in place of the current one. Call `stop` first to learn how much was heard."""
        self._current_sound = sound if self._player is not None else None
        self._request_sound(item, self._current_sound)

    def stop(self) -> int | None:
        """Stops the sound. Returns the milliseconds heard of the response, None for another sound."""
        current, position_s = self._current_sound, self.position_s
        if current is None:
            return None
        if self._last_end is not None:
            number, played_s = self._last_end
            if number == self._number:
                position_s = played_s * current.tempo
        self._number += 1
        self._current_sound = None
        if self._player is not None:
            self._player.stop()
        return None if current is ItemSound.QUERY or not position_s else round(position_s * 1000)

    def end_play(self, message: SoundEnded) -> int | None:
        """Ends the play that reached its end. Returns the same as `stop`; None if it was already stopped."""
        return self.stop() if message.number == self._number else None

    def close(self) -> None:
        """Stops the sound. No message is posted afterwards."""
        with self._lock:
            self._is_open = False
        self._requests.put(None)
        if self._player is not None:
            self._player.stop()

    def _request_sound(self, item: Item, sound: ItemSound | None) -> None:
        self._number += 1
        order = self._player.order() if self._player is not None else 0
        self._requests.put(_PlayRequest(self._number, item, sound, order))

    def _work(self) -> None:
        while (request := self._requests.get()) is not None:
            # Only the last of several quick keys counts.
            if request.number == self._number and self._is_open:
                try:
                    self._play_request(request)
                except HarnessError as error:
                    self._post_if_open(SoundFailed(request.number, request.item.id, error.what, error.remedy))

    def _play_request(self, request: _PlayRequest) -> None:
        """Reads the response if it is not that of the last request, posts its shape, and plays the requested sound."""
        if self._current_response is None or self._current_response[0] != request.item.id:
            response = self._room.response_sound(request.item)
            self._current_response = request.item.id, response
            self._post_if_open(
                SoundRead(request.item.id, slice_maxima(np.abs(response.samples), SLICE_COUNT), response.duration_s)
            )
        sound = self._current_response[1]
        if request.sound is None or self._player is None:
            return
        if request.sound is ItemSound.QUERY:
            sound = self._room.query_sound(request.item)
        elif request.sound is ItemSound.SLOWER:
            sound = at_tempo(sound, SLOWER)
        self._player.play(sound, partial(self._end_play, request.number), request.order)

    def _end_play(self, number: int, played_s: float, complete: bool) -> None:
        self._last_end = number, played_s
        fault = self._player.fault if self._player is not None and not complete else ""
        self._post_if_open(SoundEnded(number, fault))

    def _post_if_open(self, message: Message) -> None:
        with self._lock:
            if self._is_open:
                self._post(message)
