"""A microphone of the harness: records the device under test, and keeps the last minutes for clips."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from harness.base import plugins, threads
from harness.base.plugins import Group
from harness.base.ports import Sink, Surroundings
from harness.devices.outlet import BROKEN
from harness.model.errors import refuse_out_of_range
from harness.model.frozen import frozen
from harness.model.observation import LinkBack, LinkLost, Overrun
from harness.model.stimulus import Waveform
from harness.model.time import Stamp
from harness.sound.capture import Block, Capture, RingBuffer
from harness.sound.endpoints import EndpointRules
from harness.sound.level import rms_dbfs

if TYPE_CHECKING:
    from harness.sound.earcons import LearnedEarcon
    from harness.sound.hearing import Hearing

_QUEUE_BLOCKS = 1000  # 10 s.
_METER_BLOCKS = 10  # 100 ms.


@frozen
class MicrophoneOptions:
    """YAML keys of a microphone.

    - sound_device: Name of the recording device, as `harness admin sound list` prints it.
    - speech_detector: Entry point of `harness.speech_detectors`.
    - keep_s: Time for which sound is kept for clips.
    - min_speech_ms: Shorter sounds do not count as speech.
    - earcon_max_ms: A tonal sound up to this length is an earcon. A longer one counts as speech.
    """

    sound_device: str
    speech_detector: str = "webrtcvad"
    keep_s: float = 180.0
    min_speech_ms: int = 60
    earcon_max_ms: int = 800

    def __post_init__(self) -> None:
        refuse_out_of_range(
            self,
            keep_s=(30, 1800),
            # More than a click. Speech is recognised in twice this time, which must be well below `hold_ms`, 400 ms.
            min_speech_ms=(40, 150),
            # From `bridge_ms`, after which a sound is over. Sound of tones only is reported late by up to this time.
            earcon_max_ms=(200, 2000),
        )


_QueueEntry = Block | Callable[[], None] | None
"""A block to analyse, a call to make between two blocks, or the end."""


class Microphone:
    """Observes StimulusHeard, SpeechStarted, SpeechEnded, Earcon, Overrun, LinkLost and LinkBack.

    The driver analyses blocks in its own thread. Up to 10 s of them wait there; blocks beyond that are reported as
    Overrun. Clips are cut from the unchanged recording, which includes the harness's own sound.
    """

    Options: ClassVar[type] = MicrophoneOptions

    def __init__(self, id: str, options: MicrophoneOptions, surroundings: Surroundings) -> None:
        # Imported here: slow, and a bench that is only read does not need it; `open` is too late, as others may report.
        from harness.sound.hearing import Hearing

        self.id = id
        self._options = options
        self._surroundings = surroundings
        self._ring = RingBuffer(options.keep_s)
        self._queue: queue.Queue[_QueueEntry] = threads.bounded_queue(_QUEUE_BLOCKS)
        self._capture: Capture | None = None
        self._thread: threading.Thread | None = None
        self._hearing_class = Hearing
        self._hearing: Hearing | None = None
        self._sink: Sink | None = None
        self._meter_blocks: list[Block] = []  # the last 100 ms
        self._lost_blocks = 0
        self._earcons: tuple[LearnedEarcon, ...] = ()

    def expect_earcons(self, earcons: tuple[LearnedEarcon, ...]) -> None:
        """Detects these chimes from `open` on. They are reported under their own sources, which share the microphone's
        link."""
        self._earcons = earcons

    def open(self, sink: Sink) -> None:
        """Opens the device. Raises PluginError for an unknown detector, SoundError when the device is missing."""
        detector = plugins.load(Group.SPEECH_DETECTORS, self._options.speech_detector)()
        rules = EndpointRules(min_speech_ms=self._options.min_speech_ms, earcon_max_ms=self._options.earcon_max_ms)
        self._hearing = self._hearing_class(self.id, detector, rules=rules, earcons=self._earcons)
        self._sink = sink
        self._thread = threads.thread(self._listen, self._hearing, sink, name=f"{self.id}-hearing")
        self._thread.start()
        self._capture = Capture(
            self._options.sound_device,
            self._surroundings.sound_server,
            on_block=self._queue_block,
            on_fault=lambda stamp, reason: self._queue_entry(lambda: self._report_loss(stamp, reason)),
            on_back=lambda stamp: self._queue_entry(lambda: self._report_link_back(stamp)),
            on_overrun=self._report_overrun,
        )
        try:
            self._capture.open()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Ends the recording and the thread; clips can still be cut from the sound in memory."""
        if self._capture is not None:
            self._capture.close()
            self._capture = None
        thread, self._thread = self._thread, None
        if thread is not None:
            self._queue_entry(None)
            thread.join(2.0)
        self._meter_blocks = []

    def own_sound(self, play_id: str, waveform: Waveform, starts_at_s: float) -> None:
        """Notes which sound the harness plays, and when it begins."""
        hearing = self._hearing
        if hearing is not None:
            self._queue_entry(lambda: hearing.own_sound(play_id, waveform, starts_at_s))

    def cut(self, start_s: float, end_s: float) -> tuple[Waveform, float]:
        """A clip of the recording, and the time of its first sample. Waits at most 1 s for its end."""
        return self._ring.cut(start_s, end_s, wait_s=1.0)

    def level_dbfs(self) -> float | None:
        """RMS level of the last 100 ms; None while nothing is recorded."""
        blocks = self._meter_blocks  # read once: the recording thread replaces it
        return rms_dbfs(np.concatenate([block.samples for block in blocks])) if blocks else None

    def noise_floor_dbfs(self) -> float | None:
        """Level of the room's noise; None when the microphone is closed, or the level is not known yet."""
        return self._hearing.floor_dbfs if self._hearing is not None and self._thread is not None else None

    def _queue_block(self, block: Block) -> None:
        """Runs in the recording thread, which must not wait: a block for which there is no room is counted as lost."""
        self._ring.put(block)
        self._meter_blocks = [*self._meter_blocks[1 - _METER_BLOCKS :], block]
        try:
            self._queue.put_nowait(block)
        except queue.Full:
            self._lost_blocks += 1

    def _queue_entry(self, entry: _QueueEntry) -> None:
        """Queues an entry that must not be lost; drops the oldest block if there is no room."""
        while True:
            try:
                self._queue.put_nowait(entry)
                return
            except queue.Full:
                try:
                    self._queue.get_nowait()
                    self._lost_blocks += 1
                except queue.Empty:
                    continue

    def _report_overrun(self, count: int) -> None:
        if self._sink is not None:
            self._sink(Overrun(self.id, Stamp(self._surroundings.clock.now_s()), count))

    def _listen(self, hearing: Hearing, sink: Sink) -> None:
        """Runs in the driver's thread: analyses blocks until closed. An error that ends it is a lost link."""
        try:
            self._process_queue(hearing, sink)
        except Exception:  # such as of a speech detector: from here on, nothing would be heard
            for source in self._sources:
                sink(LinkLost(source, Stamp(self._surroundings.clock.now_s()), BROKEN))
            raise

    def _process_queue(self, hearing: Hearing, sink: Sink) -> None:
        while (entry := self._queue.get()) is not None:
            if self._lost_blocks:
                count, self._lost_blocks = self._lost_blocks, 0
                self._report_overrun(count)
            if isinstance(entry, Block):
                for observation in hearing.feed(entry):
                    sink(observation)
            else:
                entry()

    def _report_loss(self, stamp: Stamp, reason: str) -> None:
        self._meter_blocks = []
        if self._hearing is not None and self._sink is not None:
            for observation in self._hearing.interrupted():
                self._sink(observation)
            for source in self._sources:
                self._sink(LinkLost(source, stamp, reason))

    def _report_link_back(self, stamp: Stamp) -> None:
        for source in self._sources:
            if self._sink is not None:
                self._sink(LinkBack(source, stamp))

    @property
    def _sources(self) -> tuple[str, ...]:
        """Its own id, and the sources of the devices whose chimes it detects."""
        return (self.id, *dict.fromkeys(earcon.source for earcon in self._earcons))
