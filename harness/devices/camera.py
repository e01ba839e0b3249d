"""Devices whose light shows their state, seen by a camera: colour and brightness of a rectangle, frame by frame.

OpenCV reads cameras, network streams and files. A file is played at its own speed.
"""

from __future__ import annotations

import colorsys
import contextlib
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import quote, urlsplit, urlunsplit

from harness.base.clocks import HostClock
from harness.base.foreign import plain_text
from harness.base.plugins import import_extra
from harness.base.ports import Clock, Sink, Surroundings
from harness.devices.device_sources import Picture
from harness.devices.readings import ReadingsFarEnd, ReadingsOptions, ReadingsSource, ReadingsStream
from harness.model.bench import DeviceProfile
from harness.model.errors import DeviceError, InputError
from harness.model.frozen import frozen
from harness.model.numbers import seconds
from harness.model.time import Stamp

OPEN_LIMIT_MS = 3000
READ_LIMIT_MS = 1500
WAITING_FRAME_S = 0.005
"""If reading a frame takes less than this, in s, the frame was already waiting, so it is older than its arrival."""
_PEAK_PERCENTILE = 98.0
"""Percentile of the brightness: the light of a thin ring, without single pixels."""
_RECTANGLE_REMEDY = "Set `rectangle` to x, y, width and height in pixels, such as [310, 220, 40, 40]"
_OPENCV_EXTRA = ("OpenCV, which reads cameras,", "camera")


@frozen
class CameraOptions(ReadingsOptions):
    """source: Number of a camera (0 is /dev/video0), a video file, or a URL such as http://camera.local/video.

    rectangle: x, y, width and height of the light in the picture, in pixels from the top left. Default: all of it.
    hold_back_ms: How long a frame may arrive after its exposure, ms (part of the error of its time; not of a file's).
    silence_limit_s: Time without a frame after which the link counts as lost, s (0: never).
    username: User name for the URL.
    password_env: Name of the environment variable that holds the password.
    """

    source: int | str = ""
    rectangle: tuple[int, ...] | str = ()
    hold_back_ms: float = 100.0
    silence_limit_s: float = 3.0
    username: str = ""
    password_env: str = ""

    def __post_init__(self) -> None:
        super(CameraOptions, self).__post_init__()  # noqa: UP008 (slots: the class is made anew)
        if self.source == "" or (self.number is not None and self.number < 0):
            raise InputError(
                "a camera connection needs `source`",
                remedy="Set `source` to the number of a camera, a video file or a URL",
            )
        if not str(self.source).isprintable():
            raise InputError(
                "`source` contains control characters",
                remedy="Set `source` to the number of a camera, a video file or a URL",
            )
        if self.is_url and "@" in urlsplit(str(self.source)).netloc:
            raise InputError(
                "`source` contains a user name or a password",
                remedy="Move the user name to `username`, and name the variable with the password in `password_env`",
            )
        if (self.username or self.password_env) and not self.is_url:
            raise InputError("only a URL can have a user and a password", remedy="Remove `username` and `password_env`")
        _ = self.box  # raises InputError for a wrong rectangle

    @property
    def number(self) -> int | None:
        """The number of a camera; None for a file or a URL."""
        with contextlib.suppress(ValueError):
            return int(self.source)
        return None

    @property
    def is_url(self) -> bool:
        return "://" in str(self.source)

    @property
    def is_file(self) -> bool:
        return not self.is_url and self.number is None

    @property
    def box(self) -> tuple[int, int, int, int] | None:
        """The rectangle; None for the whole picture. Raises InputError if it is not one."""
        rectangle = self.rectangle
        if not rectangle:
            return None
        try:
            parts = [int(part) for part in (rectangle.split(",") if isinstance(rectangle, str) else rectangle)]
            x, y, width, height = parts
        except (TypeError, ValueError) as error:
            raise InputError(f"rectangle: {rectangle!r} is not four whole numbers", remedy=_RECTANGLE_REMEDY) from error
        if min(x, y) < 0 or min(width, height) < 1:
            raise InputError(
                f"rectangle: {x}, {y}, {width}×{height} covers no area of the picture", remedy=_RECTANGLE_REMEDY
            )
        return x, y, width, height

    def address(self) -> str:
        """What OpenCV opens, with the password. Raises InputError if its variable is not set."""
        if not (self.username or self.password_env):
            return str(self.source)
        password = os.environ.get(self.password_env, "") if self.password_env else ""
        if self.password_env and not password:
            raise InputError(
                f"the environment variable {self.password_env} for the password is not set",
                remedy=f"Set it: export {self.password_env}=…",
            )
        parts = urlsplit(str(self.source))
        login = quote(self.username, safe="") + (f":{quote(password, safe='')}" if password else "")
        return urlunsplit(parts._replace(netloc=f"{login}@{parts.netloc}"))


class CameraFrames:
    """An open camera, stream or file.

    Raises DeviceError if it is missing, or the rectangle lies outside of its picture.
    """

    def __init__(self, options: CameraOptions, clock: Clock) -> None:
        self._options, self._clock = options, clock
        os.environ.setdefault("OPENCV_FFMPEG_LOGLEVEL", "-8")  # its messages would appear on our screens
        self._cv2: Any = import_extra("cv2", *_OPENCV_EXTRA)
        self._cv2.utils.logging.setLogLevel(self._cv2.utils.logging.LOG_LEVEL_ERROR)
        name = plain_text(str(options.source), 200)
        self._capture = self._open_capture()
        has_frame, self._first_frame = self._capture.read()
        self._first_frame_s = clock.now_s()
        if not has_frame:
            self._capture.release()
            raise DeviceError(
                f"the camera {name} delivers no picture",
                remedy="Check that the camera is connected and unused by other programs, and that `source` is correct",
            )
        self.last_frame = self._first_frame
        height, width = self._first_frame.shape[:2]
        x, y, box_width, box_height = self.box = options.box or (0, 0, width, height)
        if x + box_width > width or y + box_height > height:
            self._capture.release()
            raise DeviceError(
                f"the rectangle {box_width}×{box_height} at {x}, {y} is outside the picture ({width}×{height})",
                remedy=_RECTANGLE_REMEDY,
            )
        self.name = f"camera {name}, {width}×{height}, rectangle {x},{y},{box_width},{box_height}"

    def _open_capture(self) -> Any:
        """OpenCV's capture of the source, which may deliver nothing.

        Raises DeviceError for a file that does not exist.
        """
        options, cv2 = self._options, self._cv2
        if options.number is not None:
            return cv2.VideoCapture(options.number, cv2.CAP_V4L2)
        if options.is_file and not Path(str(options.source)).is_file():
            raise DeviceError(f"the video {options.source} does not exist", remedy="Correct `source`")
        limits = [cv2.CAP_PROP_OPEN_TIMEOUT_MSEC, OPEN_LIMIT_MS, cv2.CAP_PROP_READ_TIMEOUT_MSEC, READ_LIMIT_MS]
        return cv2.VideoCapture(options.address(), cv2.CAP_FFMPEG, limits)

    def measure(self, report: Callable[[str, Stamp], None], stop: threading.Event) -> str:
        """Reports each frame until the end, or until `stop` is set. Returns why it ended."""
        try:
            return self._play(report, stop) if self._options.is_file else self._watch(report, stop)
        finally:
            self._capture.release()

    def _play(self, report: Callable[[str, Stamp], None], stop: threading.Event) -> str:
        """Plays a file: each frame at its recorded time after the first one, which has no error of its own."""
        frame, position_s, number = self._first_frame, 0.0, 0
        while not stop.is_set():
            at_s = self._first_frame_s + position_s
            while (left_s := at_s - self._clock.now_s()) > 0 and not stop.is_set():
                stop.wait(self._clock.real_s(left_s))
            report(self._format_line(frame, position_s), Stamp(at_s))
            number += 1
            has_frame, frame = self._capture.read()
            if not has_frame:
                return f"the video ended after {number} frames"
            position_s = max(position_s, self._capture.get(self._cv2.CAP_PROP_POS_MSEC) / 1000)
        return ""

    def _watch(self, report: Callable[[str, Stamp], None], stop: threading.Event) -> str:
        """Reads live frames. A frame that was already waiting may be as old as the last one that did not wait."""
        hold_back_s = self._options.hold_back_ms / 1000
        last_live_s: float | None = None
        read_from_s = self._clock.now_s()
        while not stop.is_set():
            has_frame, frame = self._capture.read()
            now_s = self._clock.now_s()
            if not has_frame:
                waited_s = now_s - read_from_s
                if waited_s >= READ_LIMIT_MS / 1000:
                    return f"no frame arrived for {seconds(waited_s)}"
                return "the stream ended"
            if now_s - read_from_s >= WAITING_FRAME_S:
                last_live_s = now_s
            read_from_s = now_s
            if last_live_s is None:
                continue  # from before we looked
            at_s = self._exposure_s(now_s)
            start_s = (last_live_s if at_s is None else at_s) - hold_back_s
            end_s = now_s if at_s is None else at_s
            stamp = Stamp((start_s + end_s) / 2, (end_s - start_s) / 2)
            report(self._format_line(frame, now_s - self._first_frame_s), stamp)
        return ""

    def _exposure_s(self, now_s: float) -> float | None:
        """When a frame was exposed, by the kernel's timestamp; None if that is not on this host's clock."""
        if self._options.number is None:
            return None
        at_s = float(self._capture.get(self._cv2.CAP_PROP_POS_MSEC)) / 1000
        return at_s if 0 <= now_s - at_s <= 1.0 else None

    def _format_line(self, frame: Any, position_s: float) -> str:
        """The line with the numbers of the rectangle: hue 0–360, red, green and blue 0–255, the others 0–1."""
        import numpy as np

        self.last_frame = frame
        x, y, width, height = self.box
        detail = frame[y : y + height, x : x + width]
        blue, green, red = (float(channel) for channel in detail.reshape(-1, 3).mean(axis=0))
        hue, saturation, brightness = colorsys.rgb_to_hsv(red / 255, green / 255, blue / 255)
        peak = float(np.percentile(detail.max(axis=2), _PEAK_PERCENTILE)) / 255
        return (
            f"at={position_s:.3f} brightness={brightness:.3f} peak={peak:.3f} hue={hue * 360:.0f} "
            f"saturation={saturation:.2f} red={red:.0f} green={green:.0f} blue={blue:.0f}"
        )

    def picture(self, columns: int, rows: int) -> Picture:
        """The picture with its rectangle marked, and the rectangle alone."""
        frame, (x, y, width, height) = self.last_frame, self.box

        def resized(picture: Any) -> Any:
            return self._cv2.resize(picture, (columns, rows), interpolation=self._cv2.INTER_AREA)

        x_scale, y_scale = columns / frame.shape[1], rows / frame.shape[0]
        overview, detail = resized(frame), resized(frame[y : y + height, x : x + width])
        corners = (
            (int(x * x_scale), int(y * y_scale)),
            (int((x + width - 1) * x_scale), int((y + height - 1) * y_scale)),
        )
        self._cv2.rectangle(overview, *corners, (0, 255, 255), 1)
        return overview[:, :, ::-1], detail[:, :, ::-1]


class Camera(ReadingsStream):
    """The light of a device."""

    Options: ClassVar[type] = CameraOptions

    def __init__(self, id: str, options: CameraOptions, surroundings: Surroundings) -> None:
        super().__init__(id, options, surroundings)
        self._file_was_played = False

    def open(self, sink: Sink) -> None:
        self._file_was_played = False
        super().open(sink)

    def connect(self) -> ReadingsFarEnd:
        if self._file_was_played:
            raise DeviceError("the video has ended", remedy="Use a camera, a URL or a longer video")
        frames = CameraFrames(self._options, self._clock)
        self._file_was_played = bool(self._options.is_file)
        return ReadingsFarEnd(f"camera {self.id}", frames.measure)

    @staticmethod
    def source(options: CameraOptions, profile: DeviceProfile, device: str, topics: tuple[str, ...]) -> CameraSource:
        return CameraSource(options)

    @staticmethod
    def demand_host(options: CameraOptions) -> None:
        """DeviceError without the camera, InputError without the file or the password; PluginError without OpenCV."""
        import_extra("cv2", *_OPENCV_EXTRA)
        options.address()
        path = Path(str(options.source) if options.number is None else f"/dev/video{options.number}")
        if not options.is_url and not path.exists():
            kind = InputError if options.number is None else DeviceError
            raise kind(f"{path} does not exist", remedy="Connect the camera, or correct `source`")

    @staticmethod
    def far_end(options: CameraOptions, id: str) -> str:
        return f"{options.source} {options.box}"


class CameraSource(ReadingsSource):
    """A camera for the monitor, with its picture."""

    def __init__(self, options: CameraOptions) -> None:
        self._options = options
        super().__init__(f"camera {options.source}", self._start_frames)

    def _start_frames(self) -> ReadingsFarEnd:
        self._frames = CameraFrames(self._options, HostClock())
        self.name = self._frames.name
        return ReadingsFarEnd("camera", self._frames.measure)

    def picture(self, columns: int, rows: int) -> Picture:
        return self._frames.picture(columns, rows)
