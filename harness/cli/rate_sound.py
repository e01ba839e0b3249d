"""What a rater hears between two lines: begun and stopped by commands, and counted for the judgment."""

from __future__ import annotations

import threading

from harness.model.stimulus import Waveform
from harness.rating.desk import Desk
from harness.rating.items import Item
from harness.rating.rater_player import RaterPlayer
from harness.rating.rating_room import RatingRoom
from harness.sound.tempo import SLOWER, at_tempo

ENDS_WITHIN_S = 2.0


class Listening:
    """Plays one sound at a time; what was heard of a response goes into the desk's draft, on the caller's thread."""

    def __init__(self, room: RatingRoom, desk: Desk, player: RaterPlayer) -> None:
        self._room, self._desk, self._player = room, desk, player
        self._over: threading.Event | None = None
        self._heard_s = 0.0
        self._of_response = False
        self._tempo = 1.0

    def response(self, item: Item, *, slower: bool = False) -> float:
        """Begins the response; its duration in seconds. SoundError, LogError, VoiceError."""
        tempo = SLOWER if slower else 1.0
        sound = self._room.response_sound(item)
        self._begin(at_tempo(sound, tempo), of_response=True, tempo=tempo)
        self._desk.heard(0, began=True)
        return sound.duration_s / tempo

    def query(self, item: Item) -> float:
        """Begins the query; its duration in seconds."""
        sound = self._room.query_sound(item)
        self._begin(sound, of_response=False, tempo=1.0)
        return sound.duration_s

    def stop(self) -> None:
        """Ends what plays, and counts what was heard of it."""
        if self._over is not None and not self._over.is_set():
            self._player.stop()
        self.wait(ENDS_WITHIN_S)

    def wait(self, at_most_s: float) -> None:
        """Returns when the sound has ended."""
        if self._over is None:
            return
        self._over.wait(at_most_s)
        self._over = None
        if self._of_response:
            # Milliseconds of the response, however slowly it was played.
            self._desk.heard(round(self._heard_s * self._tempo * 1000), began=False)
        self._heard_s = 0.0

    def _begin(self, sound: Waveform, *, of_response: bool, tempo: float) -> None:
        self.stop()
        over = threading.Event()

        def done(played_s: float, complete: bool) -> None:
            if self._over is over:
                self._heard_s = played_s
            over.set()

        self._over, self._of_response, self._tempo = over, of_response, tempo
        try:
            self._player.play(sound, done)
        except BaseException:
            self._over = None
            raise
