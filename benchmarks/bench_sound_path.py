"""What the lab's sound path is like here: round trip, stamps, faults of its own, and what it costs.

python benchmarks/bench_sound_path.py   (starts a private sound server; some 30 s)
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
from pathlib import Path

import numpy as np
from sizes import sized

from harness.lab.sound_server import LabSoundServer
from harness.sound.capture import Capture
from harness.sound.path_check import check_path
from harness.sound.playback import Playback

COUNT = sized(12, 2)
STREAM_S = sized(5.0, 1.0)


def cpu_s(pid: int) -> float:
    words = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def three(values: list[float]) -> str:
    low, middle, high = np.percentile(values, (5, 50, 95))
    return f"p50 {middle:.2f}  p5 {low:.2f}  p95 {high:.2f}"


def paths() -> None:
    for frames in (480, 2400):
        found = check_path("harness_speaker", "harness_mic", "virtual_lab", count=COUNT, frames_per_buffer=frames)
        trip = [one.round_trip_ms for one in found.heard]
        stamp = [one.path_ms for one in found.heard]
        print(f"{frames} frames: heard {len(found.heard)}/{found.played}, xruns {found.xruns}")
        print(f"  round trip, call to arrival, ms   {three(trip)}")
        print(f"  error of the start stamp, ms      {three(stamp)}  claimed ± {found.stamp_error_ms:.1f}")


def cost(server: LabSoundServer) -> None:
    def nothing(*_: object) -> None: ...

    capture = Capture("harness_mic", "virtual_lab", on_block=nothing, on_fault=nothing, on_back=nothing)
    playback = Playback(
        "harness_speaker", "virtual_lab", on_started=nothing, on_ended=nothing, on_fault=nothing, on_back=nothing
    )
    capture.open()
    playback.open()
    try:
        pids = {"capture child": capture.child_pid, "playback child": playback.child_pid, "sound server": server.pid}
        known = {name: pid for name, pid in pids.items() if pid is not None}
        before = {name: cpu_s(pid) for name, pid in known.items()}
        own, begun_s = time.process_time(), time.monotonic()
        time.sleep(STREAM_S)
        wall_s = time.monotonic() - begun_s
        shares = {name: (cpu_s(pid) - before[name]) / wall_s for name, pid in known.items()}
        shares["this process, both streams"] = (time.process_time() - own) / wall_s
        print("CPU of one core: " + ", ".join(f"{name} {share:.1%}" for name, share in shares.items()))
    finally:
        capture.close()
        playback.close()


def main() -> None:
    folder = Path(tempfile.mkdtemp(prefix="vh-"))
    os.environ["HARNESS_LAB"] = str(folder)
    server = LabSoundServer(folder)
    try:
        environment = server.start()
        state = {"environment": environment, "mqtt_host": "127.0.0.1", "mqtt_port": 0, "pids": {}}
        (folder / "lab.json").write_text(json.dumps(state), encoding="utf-8")
        paths()
        cost(server)
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
