"""Clips are whole, named once, and what is wrong with them is said."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from harness.model.errors import LogError
from harness.model.record import NoteWritten, ResponseFrozen
from harness.model.stimulus import Waveform
from harness.model.time import Stamp
from harness.session.log.clips import read_clip
from harness.session.log.reader import LogReader, check, clips_without_rows
from harness.session.log.writer import SqliteLog


def tone(hz: float = 440.0, rate_hz: int = 48000) -> Waveform:
    time = np.arange(rate_hz // 10) / rate_hz
    return Waveform((0.5 * np.sin(2 * np.pi * hz * time)).astype(np.float32), rate_hz)


def frozen(log: SqliteLog, hz: float = 440.0) -> ResponseFrozen:
    clip = log.save_clip(tone(hz), 3.25)
    row = ResponseFrozen("t1", 1, 1, clip, Stamp(3.25), Stamp(3.35))
    log.append(row)
    return row


def test_a_clip_comes_back_to_16_bits(tmp_path: Path) -> None:
    with SqliteLog(tmp_path) as log:
        clip = log.save_clip(tone(), 3.25)
    back = read_clip(tmp_path / "clips", clip)
    assert (clip.samples, clip.rate_hz, clip.start_s) == (4800, 48000, 3.25)
    assert back.rate_hz == 48000
    assert np.max(np.abs(back.samples - tone().samples)) <= 1 / 32768
    assert not list((tmp_path / "clips").glob(".*"))


def test_what_is_louder_than_full_scale_is_clipped_and_not_wrapped(tmp_path: Path) -> None:
    with SqliteLog(tmp_path) as log:
        clip = log.save_clip(Waveform(np.full(480, 1.7, dtype=np.float32), 48000), 0.0)
    assert read_clip(tmp_path / "clips", clip).samples.min() > 0.99


def test_a_clip_without_samples_is_refused(tmp_path: Path) -> None:
    with SqliteLog(tmp_path) as log, pytest.raises(LogError, match="without samples"):
        log.save_clip(Waveform(np.zeros(0, dtype=np.float32), 48000), 0.0)


def test_names_go_on_after_a_resume(tmp_path: Path) -> None:
    with SqliteLog(tmp_path) as log:
        first = log.save_clip(tone(), 0.0)
    with SqliteLog(tmp_path) as log:
        second = log.save_clip(tone(), 0.0)
    assert (first.name[:6], second.name[:6]) == ("00001-", "00002-")


def test_missing_altered_and_unnamed_clips_are_reported(tmp_path: Path) -> None:
    with SqliteLog(tmp_path) as log:
        whole, missing, altered = (frozen(log, hz) for hz in (300.0, 400.0, 500.0))
        unnamed = log.save_clip(tone(600.0), 0.0)
    clips = tmp_path / "clips"
    assert check(tmp_path).damage == ()
    (clips / missing.clip.name).unlink()
    content = bytearray((clips / altered.clip.name).read_bytes())
    content[-20] ^= 1
    (clips / altered.clip.name).write_bytes(content)
    (clips / ".00009-x.flac.1.part").write_bytes(b"fLaC")
    findings = check(tmp_path)
    assert findings.damage == (
        f"row 2: clip {missing.clip.name} is missing",
        f"row 3: clip {altered.clip.name} is not what was stored: its SHA-256 differs",
    )
    assert [unnamed.name in findings.notes[0], "half of a clip" in findings.notes[1]] == [True, True]
    assert clips_without_rows(tmp_path) == (unnamed.name,)
    read_clip(clips, whole.clip)
    for clip in (missing.clip, altered.clip):
        with pytest.raises(LogError, match=clip.name):
            read_clip(clips, clip)
    SqliteLog(tmp_path).close()  # the next writer removes the half
    assert not list(clips.glob(".*"))


@pytest.mark.parametrize("name", ["../log.sqlite", "/etc/passwd", ".hidden", "a/b.flac"])
def test_a_row_cannot_name_a_file_elsewhere(tmp_path: Path, name: str) -> None:
    with SqliteLog(tmp_path) as log:
        row = frozen(log)
        log.append(replace(row, clip=replace(row.clip, name=name)))
    assert check(tmp_path).damage == (f"row 2: clip {name} is no name of a clip",)


def test_gaps_and_unreadable_rows_are_reported(tmp_path: Path) -> None:
    with SqliteLog(tmp_path) as log:
        log.append(NoteWritten("a", "t"))
        log._connection.execute(
            "INSERT INTO entries (seq, run, at_s, wall_s, kind, body)"
            " VALUES (3, 0, 0.0, 0.0, 'note_written', '{\"kind\":\"no_such\"}')"
        )
    findings = check(tmp_path)
    assert findings.damage[0] == "rows 2 to 2 are missing"
    assert findings.damage[1].startswith("row 3 (note_written) cannot be read")
    with LogReader(tmp_path) as reader, pytest.raises(LogError, match="row 3 cannot be read"):
        list(reader.entries())


def test_a_damaged_page_is_reported(tmp_path: Path) -> None:
    with SqliteLog(tmp_path) as log:
        for number in range(200):
            log.append(NoteWritten(f"{number}" * 50, "t"))
    database = tmp_path / "log.sqlite"
    content = bytearray(database.read_bytes())
    content[3 * 4096 : 3 * 4096 + 600] = b"\xff" * 600
    database.write_bytes(content)
    assert any("damaged" in damage for damage in check(tmp_path).damage)
