"""What the lab's sound path is like here: round trip, stamps, faults of its own, and what it costs.

python benchmarks/bench_sound_path.py   (starts a private sound server; some 30 s)
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np
from private_lab import lab_sound_server
from sizes import sized

from harness.lab.sound_server import LabSoundServer
from harness.sound.capture import Capture
from harness.sound.path_check import check_path
from harness.sound.playback import Playback

COUNT = sized(12, 2)
STREAM_S = sized(5.0, 1.0)


def cpu_s_of(pid: int) -> float:
    """Processor seconds of another process so far: its utime and stime of /proc/PID/stat, behind its name."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def percentiles_text(values: list[float]) -> str:
    low, middle, high = np.percentile(values, (5, 50, 95))
    return f"p50 {middle:.2f}  p5 {low:.2f}  p95 {high:.2f}"


def measure_paths() -> None:
    """Prints delays and faults of the path, with a short and a long buffer."""
    for frames in (480, 2400):
        check = check_path("harness_speaker", "harness_mic", "virtual_lab", count=COUNT, frames_per_buffer=frames)
        round_trips_ms = [arrival.round_trip_ms for arrival in check.heard]
        stamp_errors_ms = [arrival.path_ms for arrival in check.heard]
        print(f"{frames} frames: heard {len(check.heard)}/{check.played}, xruns {check.xruns}")
        print(f"  round trip, call to arrival, ms   {percentiles_text(round_trips_ms)}")
        print(
            f"  error of the start stamp, ms      {percentiles_text(stamp_errors_ms)}  "
            f"claimed ± {check.stamp_error_ms:.1f}"
        )


def measure_cost(server: LabSoundServer) -> None:
    """Prints the processor time of each process while both streams are open, as a share of a core."""

    def ignore(*_: object) -> None: ...

    capture = Capture("harness_mic", "virtual_lab", on_block=ignore, on_fault=ignore, on_back=ignore)
    playback = Playback(
        "harness_speaker", "virtual_lab", on_started=ignore, on_ended=ignore, on_fault=ignore, on_back=ignore
    )
    capture.open()
    playback.open()
    try:
        all_pids = {
            "capture child": capture.child_pid, "playback child": playback.child_pid, "sound server": server.pid,
        }  # fmt: skip
        pids = {name: pid for name, pid in all_pids.items() if pid is not None}
        began_cpu_s = {name: cpu_s_of(pid) for name, pid in pids.items()}
        own_began_s, began_s = time.process_time(), time.monotonic()
        time.sleep(STREAM_S)
        wall_s = time.monotonic() - began_s
        shares = {name: (cpu_s_of(pid) - began_cpu_s[name]) / wall_s for name, pid in pids.items()}
        shares["this process, both streams"] = (time.process_time() - own_began_s) / wall_s
        print("CPU of one core: " + ", ".join(f"{name} {share:.1%}" for name, share in shares.items()))
    finally:
        capture.close()
        playback.close()


def main() -> None:
    with lab_sound_server() as server:
        measure_paths()
        measure_cost(server)


if __name__ == "__main__":
    main()
