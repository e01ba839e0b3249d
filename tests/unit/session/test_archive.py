"""Packed sessions come back byte for byte. Running sessions and hostile archives are refused and leave nothing."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from harness.base.whole_file import temporary_path_for
from harness.cli import group
from harness.model.errors import InputError, LogError
from harness.model.record import NoteWritten
from harness.session.archive import UnpackLimits, pack, unpack
from harness.session.engine.assemble import demand_trust
from harness.session.engine.prepare import prepare
from harness.session.log.database import SqliteLog

IN_PROCESS = Path(__file__).parents[2] / "conformance" / "in_process"
KEPT = Path(__file__).parents[2] / "data" / "kept" / "queries"
LIMITS = UnpackLimits()
Edit = Callable[[list[tuple[tarfile.TarInfo, bytes]]], None]


@pytest.fixture
def session(tmp_path: Path) -> Path:
    return shutil.copytree(KEPT, tmp_path / "kitchen 1")


def files(folder: Path) -> dict[str, bytes]:
    paths = [path for path in folder.rglob("*") if path.is_file()]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


@pytest.mark.parametrize("suffix", [".tar.gz", ".zip"])
def test_a_session_comes_back_byte_for_byte(suffix: str, session: Path, tmp_path: Path) -> None:
    first, second = tmp_path / f"a{suffix}", tmp_path / f"b{suffix}"
    pack(session, first)
    unpack(first, tmp_path / "back", LIMITS)
    back = files(tmp_path / "back")
    assert list(json.loads(back.pop("manifest.json")))[:2] == ["harness", "rows"]
    assert back == files(session)
    os.utime(session / "session.json", (1, 1))
    (session / "writer.lock").write_text("pid 1\n")
    pack(session, second)
    assert first.read_bytes() == second.read_bytes()
    shutil.copytree(tmp_path / "back", tmp_path / "again")
    pack(tmp_path / "again", third := tmp_path / f"c{suffix}")
    assert first.read_bytes() == third.read_bytes()


@pytest.mark.parametrize("read_only", [False, True])
def test_reading_a_complete_session_leaves_nothing_behind(read_only: bool, session: Path, tmp_path: Path) -> None:
    before = files(session)
    if read_only:
        session.chmod(0o500)
    for verb in ("show", "show --check", "show --csv", "categories", "report --html page.html"):
        command, *options = verb.split()
        options = [str(tmp_path / option) if option == "page.html" else option for option in options]
        ended = CliRunner().invoke(group, [command, str(session), *options])
        assert ended.exit_code in (0, 1), ended.output
        assert files(session) == before, verb
    session.chmod(0o700)


BENCHES = {
    "notify": ("", "notify: [{command: [sh, -c, 'touch ran']}]"),
    "driver": ("\n      driver: command\n      command: [sh, -c, 'touch ran; sleep 1000']", ""),
}


@pytest.mark.parametrize("way", BENCHES)
def test_resuming_an_archive_of_others_names_its_programs_and_needs_trust(way: str, tmp_path: Path) -> None:
    connection, more = BENCHES[way]
    text = (IN_PROCESS / "bench.yaml").read_text(encoding="utf-8")
    profile = (IN_PROCESS / "device.yaml").read_text(encoding="utf-8")
    rules = "lines: [{match: ^woke$, kind: wake}, {match: '^heard (?P<text>.+)', kind: transcript}]"
    (tmp_path / "device.yaml").write_text(f"{profile}{rules}\n", encoding="utf-8")
    if connection:
        text = text[: text.index("\n      driver: in_process\n      speed: 50\n      mishear")] + f"{connection}\n"
        text = text.replace(", speed: 50", "")
    (tmp_path / "bench.yaml").write_text(f"{text}\n{more}\n", encoding="utf-8")
    folder = prepare(IN_PROCESS / "three.yaml", tmp_path / "bench.yaml", tmp_path / "sessions")
    pack(folder, tmp_path / "a.zip")
    unpack(tmp_path / "a.zip", back := tmp_path / "back", LIMITS)
    demand_trust(folder)
    with pytest.raises(InputError, match=r"was unpacked from an archive.*sh -c 'touch ran") as refused:
        demand_trust(back)
    assert "--trust" in refused.value.remedy
    outcome = CliRunner().invoke(group, ["resume", str(back), "--no-watch"])
    assert isinstance(outcome.exception, InputError)
    with zipfile.ZipFile(tmp_path / "a.zip") as archive:  # without our unpack
        archive.extractall(tmp_path / "by hand")
    with pytest.raises(InputError, match="was unpacked"):
        demand_trust(tmp_path / "by hand" / "session")


def test_other_tools_read_the_archive(session: Path, tmp_path: Path) -> None:
    pack(session, tmp_path / "a.tar.gz")
    pack(session, tmp_path / "a.zip")
    with tarfile.open(tmp_path / "a.tar.gz") as tar, zipfile.ZipFile(tmp_path / "a.zip") as packed:
        assert tar.getnames() == packed.namelist()
        assert packed.testzip() is None
        manifest = json.loads(packed.read("session/manifest.json"))
        for entry in manifest["files"]:
            assert hashlib.sha256(packed.read(f"session/{entry['name']}")).hexdigest() == entry["sha256"]


def test_a_killed_session_keeps_rows_that_are_only_in_the_write_ahead_log(tmp_path: Path) -> None:
    (tmp_path / "live").mkdir()
    log = SqliteLog(tmp_path / "live")
    log.append(NoteWritten(text="first", by="test"))
    with pytest.raises(LogError, match="is running"):
        pack(tmp_path / "live", tmp_path / "a.zip")
    killed = shutil.copytree(tmp_path / "live", tmp_path / "killed")  # as kill -9 leaves it
    log.close()
    _, findings = pack(killed, tmp_path / "a.zip")
    assert any("the end is not sealed" in note for note in findings.notes)
    manifest, _ = unpack(tmp_path / "a.zip", tmp_path / "back", LIMITS)
    assert manifest.rows == 1


def test_a_damaged_session_is_not_packed(session: Path, tmp_path: Path) -> None:
    clip = next((session / "clips").iterdir())
    clip.write_bytes(clip.read_bytes()[:-1])
    with pytest.raises(LogError, match="SHA-256 differs"):
        pack(session, tmp_path / "a.zip")
    assert [path.name for path in tmp_path.iterdir()] == [session.name]


def test_links_are_not_packed_and_nothing_is_replaced(session: Path, tmp_path: Path) -> None:
    (session / "key").symlink_to("/etc/passwd")
    with pytest.raises(LogError, match="not a regular file"):
        pack(session, tmp_path / "a.zip")
    (session / "key").unlink()
    (session / ("x" * 150)).touch()
    with pytest.raises(LogError, match="does not fit"):
        pack(session, tmp_path / "a.tar.gz")
    (session / ("x" * 150)).unlink()
    (tmp_path / "a.zip").write_text("mine")
    with pytest.raises(InputError, match="exists"):
        pack(session, tmp_path / "a.zip")
    with pytest.raises(InputError, match="inside the session"):
        pack(session, session / "a.zip")
    with pytest.raises(InputError, match="not supported"):
        pack(session, tmp_path / "a.tar.zst")


def crafted(session: Path, tmp_path: Path, edit: Edit) -> Path:
    """An archive of the session whose members were edited, in order."""
    pack(session, whole := tmp_path / "whole.tar.gz")
    with tarfile.open(whole) as tar:
        members = [(member, tar.extractfile(member).read()) for member in tar]  # type: ignore[union-attr]
    edit(members)
    with gzip.open(target := tmp_path / "crafted.tar.gz", "wb") as stream:
        for head, content in members:
            stream.write(head.tobuf(tarfile.GNU_FORMAT) + content + bytes(-len(content) % 512))
        stream.write(bytes(1024))
    return target


def listed(name: str | None = None, **changed: Any) -> Edit:
    """Renames the first clip in the archive and its manifest, or changes what the manifest says of it."""

    def edit(members: list[tuple[tarfile.TarInfo, bytes]]) -> None:
        manifest = json.loads(members[0][1])
        manifest["files"][0] |= ({"name": name} if name is not None else {}) | changed
        content = json.dumps(manifest).encode()
        members[0][0].size = len(content)
        members[0] = (members[0][0], content)
        if name is not None:
            members[1][0].name = f"session/{name}"

    return edit


def extra(name: str, kind: bytes = tarfile.REGTYPE, index: int = 1) -> Edit:
    def edit(members: list[tuple[tarfile.TarInfo, bytes]]) -> None:
        head = tarfile.TarInfo(name)
        head.type, head.linkname = kind, "/etc/passwd" if kind in (tarfile.SYMTYPE, tarfile.LNKTYPE) else ""
        members.insert(index, (head, b""))

    return edit


HOSTILE: dict[str, tuple[Edit, str]] = {
    "no members": (lambda members: members.clear(), "it is empty"),
    "parent": (listed("../evil"), "points outside"),
    "deeper parent": (listed("clips/../../evil"), "points outside"),
    "empty part": (listed("clips//evil"), "points outside"),
    "backslash": (listed("clips\\..\\evil"), "backslash"),
    "escape": (listed("clips/\x1b]0;evil"), "cannot be printed"),
    "long": (listed("x" * 300), "too long"),
    "case": (listed("LOG.sqlite"), "only in case"),
    "folder case": (listed("Inputs/x"), "only in case"),
    "below a file": (listed("log.sqlite/x"), "occurs twice"),
    "twice": (listed("log.sqlite"), "occurs twice"),
    "smaller than said": (listed(bytes=700_000_000), "times"),
    "larger than said": (listed(bytes=5), "was found instead of"),
    "other content": (listed(sha256="0" * 64), "was altered"),
    "absolute": (extra("/etc/cron.d/evil"), "absolute"),
    "symbolic link": (extra("session/a", tarfile.SYMTYPE), "a link"),
    "hard link": (extra("session/a", tarfile.LNKTYPE), "a link"),
    "device": (extra("session/a", tarfile.CHRTYPE), "a device"),
    "pipe": (extra("session/a", tarfile.FIFOTYPE), "a device"),
    "extension": (extra("session/a", tarfile.XHDTYPE), "extension"),
    "not listed": (extra("session/zz", index=99), "not in the manifest"),
    "missing": (lambda members: members.pop() and None, "cut short"),
    "no manifest": (lambda members: members.pop(0) and None, "not with the manifest"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_archive_is_refused_and_leaves_nothing(name: str, session: Path, tmp_path: Path) -> None:
    edit, why = HOSTILE[name]
    archive = crafted(session, tmp_path, edit)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(InputError, match=why) as refused:
        unpack(archive, tmp_path / "back", LIMITS)
    assert str(refused.value).startswith(str(archive))
    assert sorted(tmp_path.rglob("*")) == before


def test_an_archive_of_altered_rows_is_refused(session: Path, tmp_path: Path) -> None:
    """The manifest fits, and the hash chain does not."""

    def edit(members: list[tuple[tarfile.TarInfo, bytes]]) -> None:
        index = next(index for index, (head, _) in enumerate(members) if head.name.endswith("log.sqlite"))
        content = members[index][1].replace(b'"by":"', b'"by":"', 1).replace(b"query", b"quern", 1)
        assert content != members[index][1]
        members[index] = (members[index][0], content)
        manifest = json.loads(members[0][1])
        manifest["files"][index - 1]["sha256"] = hashlib.sha256(content).hexdigest()
        document = json.dumps(manifest).encode()
        members[0][0].size = len(document)
        members[0] = (members[0][0], document)

    with pytest.raises(InputError, match="its session is damaged"):
        unpack(crafted(session, tmp_path, edit), tmp_path / "back", LIMITS)
    assert not (tmp_path / "back").exists()


@pytest.mark.parametrize("suffix", [".tar.gz", ".zip"])
def test_an_archive_cut_anywhere_is_refused(suffix: str, session: Path, tmp_path: Path) -> None:
    pack(session, whole := tmp_path / f"a{suffix}")
    content = whole.read_bytes()
    for share in (0.0, 0.001, 0.3, 0.9, 0.9999):
        (cut := tmp_path / f"cut{suffix}").write_bytes(content[: int(len(content) * share)])
        with pytest.raises(InputError, match="has been truncated or altered"):
            unpack(cut, tmp_path / "back", LIMITS)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([session.name, whole.name, cut.name])


def test_limits_apply_before_anything_is_written(session: Path, tmp_path: Path) -> None:
    pack(session, whole := tmp_path / "a.zip")
    with pytest.raises(InputError, match="at most 1,000 bytes are accepted"):
        unpack(whole, tmp_path / "back", UnpackLimits(bytes=1000))
    (tmp_path / "back").mkdir()
    with pytest.raises(InputError, match="exists"):
        unpack(whole, tmp_path / "back", LIMITS)


def test_a_member_that_grows_beyond_what_it_says_is_stopped(session: Path, tmp_path: Path) -> None:
    """100 MB of zeros stand where the manifest lists a clip."""
    pack(session, whole := tmp_path / "a.zip")
    with zipfile.ZipFile(whole) as good, zipfile.ZipFile(bomb := tmp_path / "b.zip", "w", zipfile.ZIP_DEFLATED) as bad:
        for name in good.namelist():
            bad.writestr(name, bytes(10**8) if name.endswith("flac") else good.read(name))
    content = bytearray(bomb.read_bytes())
    listed_size, true = (KEPT / "clips" / "00001-ee9d2bf349fb.flac").stat().st_size, 10**8
    content = content.replace(true.to_bytes(4, "little"), listed_size.to_bytes(4, "little"))
    bomb.write_bytes(content)
    with pytest.raises(InputError, match="altered"):
        unpack(bomb, tmp_path / "back", LIMITS)
    assert not (tmp_path / "back").exists()


TERMINATED = """
import os, signal, sys

def hook(event, args):  # in the middle: something is there already, and the sound is about to be read or written
    if event == "open" and str(args[0]).endswith("large.wav") and os.listdir():
        os.kill(os.getpid(), signal.SIGTERM)

sys.addaudithook(hook)
from harness.cli import main
main()
"""


@pytest.mark.parametrize("verb", ["pack", "unpack"])
def test_sigterm_leaves_no_partial_archive(verb: str, session: Path, tmp_path: Path) -> None:
    (session / "large.wav").write_bytes(os.urandom(1_000_000))
    pack(session, archive := tmp_path / "a.zip")
    work = tmp_path / "work"
    work.mkdir()
    source = [str(session), "-o", "b.tar.gz"] if verb == "pack" else [str(archive), "-o", "back"]
    command = [sys.executable, "-c", TERMINATED, verb, *source]
    ended = subprocess.run(command, cwd=work, capture_output=True, timeout=120)
    assert ended.returncode == 128 + signal.SIGTERM, ended
    assert not any(work.iterdir())


def test_a_gzip_bomb_behind_the_manifest_is_stopped(tmp_path: Path) -> None:
    head = tarfile.TarInfo("session/manifest.json")
    head.size = 10**9
    with gzip.open(bomb := tmp_path / "a.tar.gz", "wb") as stream:
        stream.write(head.tobuf(tarfile.USTAR_FORMAT) + bytes(10**7))
    with pytest.raises(InputError, match=r"at most 33\.55 MB are accepted"):
        unpack(bomb, tmp_path / "back", LIMITS)
    assert [path.name for path in tmp_path.iterdir()] == ["a.tar.gz"]


def test_only_the_time_level_and_system_of_gzip_are_not_covered(session: Path, tmp_path: Path) -> None:
    target = tmp_path / "a.tar.gz"
    pack(session, target)
    content, accepted = target.read_bytes(), []
    for position in (*range(14), *range(len(content) - 10, len(content))):
        target.write_bytes(content[:position] + bytes([content[position] ^ 0xFF]) + content[position + 1 :])
        try:
            unpack(target, tmp_path / f"out{position}", LIMITS)
        except InputError:
            assert not (tmp_path / f"out{position}").exists()
        else:
            accepted.append(position)
            assert (tmp_path / f"out{position}" / "log.sqlite").read_bytes() == (session / "log.sqlite").read_bytes()
    assert accepted == [4, 5, 6, 7, 8, 9]


def test_the_next_pack_names_what_a_killed_one_left(session: Path, tmp_path: Path) -> None:
    left = temporary_path_for(tmp_path / "a.zip")
    left.touch()
    (tmp_path / ".a.zip.notes.part").touch()  # not a name that pack gives
    packed = CliRunner().invoke(group, ["pack", str(session), "-o", str(tmp_path / "a.zip")])
    assert packed.exit_code == 0, packed.output
    assert [line for line in packed.stdout.splitlines() if ".part" in line] == [
        f"note   {left} is an incomplete archive. Remove it, unless `harness admin pack` is still writing it"
    ]
    assert left.exists()
