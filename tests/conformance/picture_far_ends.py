"""Far ends that show light: an MJPEG server on the loopback that can be frozen or go away, and rendered videos."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from tests.conformance.far_end import TcpFarEnd

SIZE = (160, 120)
"""Width and height of the pictures."""
RING = (100, 60, 40, 30)
"""Where the light is: x, y, width, height."""
COLOURS = {"off": (12, 10, 10), "blue": (235, 90, 20), "red": (20, 25, 230)}
"""Blue, green, red."""


def picture(colour: str, noise: int = 6, seed: int = 0) -> Any:
    """A desk with a lamp. Shape (height, width, 3), uint8."""
    drawn = np.full((SIZE[1], SIZE[0], 3), 90, np.uint8)
    x, y, width, height = RING
    drawn[y : y + height, x : x + width] = (15, 15, 15)
    centre = (x + width // 2, y + height // 2)
    cv2.circle(drawn, centre, height // 2 - 2, COLOURS[colour], 6)
    shake = np.random.default_rng(seed).integers(-noise, noise + 1, drawn.shape)
    return np.clip(drawn.astype(int) + shake, 0, 255).astype(np.uint8)


def video(path: Path, colours: Iterable[str], fps: float = 25.0) -> Path:
    """A file with one frame per colour."""
    writer = cv2.VideoWriter(str(path), cv2.VideoWriter.fourcc(*"MJPG"), fps, SIZE)
    for number, colour in enumerate(colours):
        writer.write(picture(colour, seed=number))
    writer.release()
    return path


class PictureServer(TcpFarEnd):
    """Sends what the lamp shows as multipart JPEG, `fps` times per second. frozen: it sends nothing, and stays open."""

    def __init__(self, fps: float = 30.0) -> None:
        self.shows = "off"
        self.frozen = False
        self.fps = fps
        self._jpegs = {colour: cv2.imencode(".jpg", picture(colour))[1].tobytes() for colour in COLOURS}
        super().__init__()

    def show(self, colour: str) -> None:
        self.shows = colour

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/video"

    def _serve(self, peer: socket.socket) -> None:
        with contextlib.suppress(OSError):
            peer.recv(4096)
            peer.sendall(b"HTTP/1.0 200 OK\r\nContent-Type: multipart/x-mixed-replace; boundary=frame\r\n\r\n")
            next_s = time.monotonic()
            while True:
                if not self.frozen:
                    jpeg = self._jpegs[self.shows]
                    head = f"--frame\r\nContent-Type: image/jpeg\r\nContent-Length: {len(jpeg)}\r\n\r\n"
                    peer.sendall(head.encode() + jpeg + b"\r\n")
                next_s = max(next_s + 1 / self.fps, time.monotonic() - 0.1)
                time.sleep(max(0.0, next_s - time.monotonic()))
