"""Packs a session into one file that can be checked, and unpacks one that may be damaged or hostile.

An archive is a USTAR archive compressed with gzip, or a ZIP file. It contains only regular files. The first member is
the manifest, with size and SHA-256 of each other member, in order. Times, owners and permissions are fixed, so that
equal sessions give equal bytes.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import shutil
import stat
import tarfile
import unicodedata
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Literal, Protocol

from pydantic import TypeAdapter

from harness import __version__
from harness.base.codec import CodecError, decode
from harness.base.foreign import plain_text
from harness.base.places import SessionFolder
from harness.base.progress import tracked
from harness.base.whole_file import FREE_SPACE, atomic_folder, atomic_stream, disk_errors
from harness.model.errors import InputError, LogError, Place
from harness.model.frozen import frozen
from harness.model.numbers import data_size, exact
from harness.session.log.database import resume_lock
from harness.session.log.reader import LogFindings, check

MANIFEST = "manifest.json"
ROOT = "session/"
TAR, ZIP = ".tar.gz", ".zip"
_CHUNK_BYTES = 1 << 20
_MAX_MANIFEST_BYTES = 32 << 20  # About what _MAX_MEMBERS take, with 150 bytes each.
_MAX_PART_BYTES = 255  # The limit of file systems for one part of a path.
_MAX_NAME_BYTES = 1000
_MAX_DEPTH = 8
_MAX_MEMBERS = 200_000
_RATIO_EXEMPT_BYTES = 10_000_000  # Below this, the ratio is not checked.
_ZIP64_FROM_BYTES = 1 << 30
_ENCRYPTED = 0x1  # A bit of a member's flags (APPNOTE 4.4.4).
_BLOCK_BYTES = 512  # Of tar.
_NOT_PACKED = frozenset({"writer.lock", "engine.json", MANIFEST})
"""Files of a running engine, and the manifest of an archive from which the session was unpacked."""


@frozen
class PackedFile:
    """A file of an archive. name: its path in the session folder, with slashes."""

    name: str
    bytes: int
    sha256: str


@frozen
class PackManifest:
    """The first member of an archive: what the archive contains.

    - harness: version of the harness that packed it.
    - rows, clips: number of each.
    - sealed: whether every row has its hash.
    """

    harness: str
    rows: int
    clips: int
    sealed: bool
    files: tuple[PackedFile, ...]
    format: Literal["voice-harness session"] = "voice-harness session"
    version: Literal[1] = 1


_MANIFESTS: TypeAdapter[PackManifest] = TypeAdapter(PackManifest)


@frozen
class UnpackLimits:
    """Limits on what an archive may extract to.

    - bytes: largest total size of its files.
    - ratio: largest ratio of that to the size of the archive, above 10 MB.
    """

    bytes: int = 20_000_000_000
    ratio: float = 100.0


def suffix_of(target: Path) -> str:
    """The file name's ending, which names the format. Raises InputError for any other ending."""
    for suffix in (TAR, ZIP):
        if target.name.endswith(suffix) and target.name != suffix:
            return suffix
    raise InputError(
        f"{plain_text(str(target))}: this format is not supported",
        remedy=f"Use a file name that ends in {TAR} or {ZIP}",
    )


def pack(folder: Path, target: Path) -> tuple[PackManifest, LogFindings]:
    """Writes a session into `target`, completely or not at all. Never replaces a file.

    Raises InputError when the target exists or its ending is not known. Raises LogError when the session is running, is
    damaged, contains links, or changes while it is packed. Raises LogFull when the disk is full.
    """
    suffix = suffix_of(target)
    if os.path.lexists(target):
        raise InputError(f"{target} exists", remedy="Choose another file with -o, or remove the existing file first")
    session = SessionFolder(folder).demand()
    with resume_lock(session), disk_errors(f"{target} cannot be written", FREE_SPACE):
        findings = check(folder)
        if findings.damage:
            raise LogError(
                f"{folder} is damaged: {findings.damage[0]}",
                remedy="See all damage with: harness report show SESSION --check",
            )
        names = list(_file_names(folder))
        files = tuple(_packed_file(folder, name) for name in tracked(names, "Reading files"))
        manifest = PackManifest(__version__, findings.rows, findings.clips or 0, findings.sealed, files)
        if target.absolute().is_relative_to(folder.absolute()):
            raise InputError(f"{target} lies inside the session", remedy="Choose a file outside the session with -o")
        with atomic_stream(target) as stream, _member_writer(stream, suffix) as add:
            # The manifest does not name the folder, which may have been renamed.
            manifest_json = _MANIFESTS.dump_json(manifest, indent=1)
            add(MANIFEST, len(manifest_json), io.BytesIO(manifest_json))
            for file in tracked(files, "Packing files"):
                _pack_file(folder / file.name, file, add)
    return manifest, findings


def _pack_file(path: Path, file: PackedFile, add: _AddMember) -> None:
    """Adds a file to an archive. Raises LogError if it is not what the manifest says."""
    with path.open("rb") as source:
        hashed = _HashingReader(source)
        add(file.name, file.bytes, hashed)
        if hashed.sha256.hexdigest() != file.sha256 or source.read(1):
            raise LogError(
                f"{path} changed while it was packed",
                remedy="Wait until nobody is rating the session, then pack it again",
            )


def unpack(archive: Path, target: Path, limits: UnpackLimits) -> tuple[PackManifest, LogFindings]:
    """Extracts an archive into the new folder `target`, completely or not at all, and checks the session in it.

    Raises InputError when the target exists, or the archive is refused, cut short or altered. Raises LogFull when the
    disk is full.
    """
    suffix = suffix_of(archive)
    if os.path.lexists(target):
        raise InputError(f"{target} exists", remedy="Choose another folder with -o")
    with disk_errors(f"{archive} cannot be read"):
        stream = archive.open("rb")
    with stream, disk_errors(f"{archive} cannot be unpacked into {target}", FREE_SPACE), _errors_naming(archive):
        members = _tar_members(stream) if suffix == TAR else _zip_members(stream)
        manifest = _read_manifest(members, stream, limits)
        with atomic_folder(target) as part:
            for file in tracked(manifest.files, "Unpacking files"):
                _unpack_file(next(members, None), file, part / file.name)
            if (extra := next(members, None)) is not None:
                extra_name, _, _ = extra
                raise _refusal(f"{_show(extra_name)} is not in the manifest")
            try:
                findings = check(part)
            except LogError as error:
                raise _refusal(f"its session cannot be opened: {error.what.replace(str(part), str(target))}") from error
            if findings.damage:
                raise _refusal(f"its session is damaged: {findings.damage[0]}")
            # The manifest marks the session as foreign: `resume` asks before it runs programs that others named.
            (part / MANIFEST).write_bytes(_MANIFESTS.dump_json(manifest, indent=1))
            # SQLite leaves its shared-memory index beside a write-ahead log that was only read.
            for index in part.glob("*-shm"):
                index.unlink()
    return manifest, findings


def _unpack_file(member: Member | None, file: PackedFile, path: Path) -> None:
    """Extracts the next member of an archive. Raises InputError if it is not the file of the manifest.

    member: None at the end of the archive.
    """
    if member is None:
        raise _refusal(f"it is cut short: {_show(file.name)} is missing")
    name, size, source = member
    if name != ROOT + file.name or size != file.bytes:
        raise _refusal(f"{_show(name)} ({size:,} bytes) was found instead of {_show(file.name)} ({file.bytes:,} bytes)")
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("xb") as sink:
        hashed = _HashingReader(source)
        shutil.copyfileobj(hashed, sink, _CHUNK_BYTES)
        if hashed.sha256.hexdigest() != file.sha256:
            raise _refusal(f"{_show(file.name)} was altered: its SHA-256 differs from the one in the manifest")


def _file_names(folder: Path) -> Iterator[str]:
    """Names of a session's files, in order. Raises LogError for links, devices and names that `unpack` would refuse."""
    names = _NameCheck()
    for path in sorted(folder.rglob("*"), key=lambda path: path.relative_to(folder).as_posix()):
        name, mode = path.relative_to(folder).as_posix(), path.lstat().st_mode
        if stat.S_ISDIR(mode):
            continue
        if not stat.S_ISREG(mode):
            raise LogError(
                f"{_show(str(path))} is not a regular file", remedy="Move the file out of the session, then pack again"
            )
        is_left_over = name.endswith(("-shm", ".part")) or (name.endswith("-wal") and not path.stat().st_size)
        if name in _NOT_PACKED or is_left_over:
            continue
        if problem := names.add(ROOT + name):
            raise LogError(
                f"{_show(str(path))} cannot be packed: {problem}",
                remedy="Rename the file, or move it out of the session",
            )
        yield name


def _packed_file(folder: Path, name: str) -> PackedFile:
    with (folder / name).open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
        return PackedFile(name, stream.tell(), digest)


class _ByteSource(Protocol):
    def read(self, size: int, /) -> bytes: ...


class _HashingReader:
    """Reads a file, and computes the SHA-256 of what was read."""

    def __init__(self, source: _ByteSource) -> None:
        self._source, self.sha256 = source, hashlib.sha256()

    def read(self, size: int = _CHUNK_BYTES, /) -> bytes:
        chunk = self._source.read(size)
        self.sha256.update(chunk)
        return chunk


_AddMember = Callable[[str, int, BinaryIO | _HashingReader], None]
"""Adds a member to an archive: its name without ROOT, its size in bytes, and its content."""


@contextmanager
def _member_writer(stream: BinaryIO, suffix: str) -> Iterator[_AddMember]:
    """Writes an archive of the format that the suffix names, and finishes it when the block ends."""
    if suffix == TAR:
        with (
            gzip.GzipFile("", "wb", 6, stream, mtime=0) as gzip_stream,
            tarfile.open(fileobj=gzip_stream, mode="w", format=tarfile.USTAR_FORMAT, encoding="utf-8") as tar,
        ):

            def add_to_tar(name: str, size: int, source: BinaryIO | _HashingReader) -> None:
                tar_info = tarfile.TarInfo(ROOT + name)
                tar_info.size = size
                try:
                    tar.addfile(tar_info, source)
                except ValueError as error:
                    raise LogError(
                        f"{_show(name)} does not fit into {TAR}: {error}", remedy=f"Use a {ZIP} file"
                    ) from error

            yield add_to_tar
    else:
        with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as zip_file:

            def add_to_zip(name: str, size: int, source: BinaryIO | _HashingReader) -> None:
                zip_info = zipfile.ZipInfo(ROOT + name)
                zip_info.compress_type = zipfile.ZIP_DEFLATED
                zip_info.external_attr = 0o100644 << 16  # A regular file, rw-r--r--, in the half for Unix.
                zip_info.create_system = 3  # Unix.
                # Files of 2 GiB need the 64-bit form, and zipfile does not know the size here.
                with zip_file.open(zip_info, "w", force_zip64=size > _ZIP64_FROM_BYTES) as sink:
                    shutil.copyfileobj(source, sink, _CHUNK_BYTES)

            yield add_to_zip


Member = tuple[str, int, _ByteSource]
"""A member of an archive: name, size in bytes, and its content, which must be read before the next member."""


def _refusal(problem: str) -> InputError:
    """The error for an archive that is not accepted."""
    return InputError(problem, remedy="Nothing was unpacked. Copy or download the archive again")


def _show(name: str) -> str:
    return plain_text(name, 120)


@contextmanager
def _errors_naming(archive: Path) -> Iterator[None]:
    """Turns an error inside the archive into one that names the archive."""
    try:
        yield
    except InputError as error:
        raise InputError(error.what, place=Place(str(archive)), remedy=error.remedy) from error
    except (
        EOFError,
        zlib.error,
        gzip.BadGzipFile,
        zipfile.BadZipFile,
        NotImplementedError,
        UnicodeDecodeError,
    ) as error:
        refused = _refusal(f"it has been truncated or altered: {error}")
        raise InputError(refused.what, place=Place(str(archive)), remedy=refused.remedy) from error


class _NameCheck:
    """Checks the names of members one after another: characters, lengths, and clashes with earlier names."""

    def __init__(self) -> None:
        self._spelling_by_key: dict[str, str] = {}
        """Path in NFC without case → its first spelling."""
        self._files: set[str] = set()

    def add(self, name: str) -> str:
        """Records a name. Returns why it is refused, or "" if it is accepted."""
        parts = name.split("/")
        if name.startswith("/") or "\\" in name or ":" in parts[0]:
            return "it is an absolute path or contains a backslash"
        if ".." in parts or "." in parts or "" in parts or name[: len(ROOT)] != ROOT:
            return f"it points outside {ROOT}"
        if not name.isprintable():
            return "it contains characters that cannot be printed"
        if len(name.encode()) > _MAX_NAME_BYTES or max(len(part.encode()) for part in parts) > _MAX_PART_BYTES:
            return "it is too long"
        if len(parts) > _MAX_DEPTH:
            return f"it is more than {_MAX_DEPTH} folders deep"
        for depth in range(1, len(parts) + 1):
            path = "/".join(parts[:depth])
            key = unicodedata.normalize("NFC", path).casefold()
            earlier = self._spelling_by_key.get(key, path)
            if earlier != path:
                return f"it differs from {_show(earlier)} only in case or accents"
            if path in self._files or (key in self._spelling_by_key and path == name):
                return "it occurs twice" if path == name else f"{_show(path)} is a file"
            self._spelling_by_key[key] = path
        self._files.add(name)
        return ""


def _demand_name(names: _NameCheck, name: str) -> None:
    """Records the name of a member. Raises InputError if it is refused."""
    if problem := names.add(name):
        raise _refusal(f"the name {_show(name)} is refused: {problem}")


def _read_manifest(members: Iterator[Member], stream: BinaryIO, limits: UnpackLimits) -> PackManifest:
    """Reads the first member, the manifest. Raises InputError if a name or size in it is refused."""
    first = next(members, None)
    if first is None:
        raise _refusal("it is not a session archive: it is empty")
    name, size, source = first
    if name != ROOT + MANIFEST:
        raise _refusal(f"it is not a session archive: it begins with {_show(name)}, not with the manifest")
    if size > _MAX_MANIFEST_BYTES:
        raise _refusal(f"its manifest has {data_size(size)}; at most {data_size(_MAX_MANIFEST_BYTES)} are accepted")
    try:
        manifest = decode(_MANIFESTS, _read_exactly(source, size))
    except CodecError as error:
        raise _refusal(f"its manifest cannot be read: {error.what}") from error
    names = _NameCheck()
    _demand_name(names, ROOT + MANIFEST)
    if len(manifest.files) > _MAX_MEMBERS:
        raise _refusal(f"it has {len(manifest.files):,} files; at most {_MAX_MEMBERS:,} are accepted")
    for file in manifest.files:
        _demand_name(names, ROOT + file.name)
        if file.bytes < 0:
            raise _refusal(f"{_show(file.name)} has {file.bytes} bytes")
    total, archive_bytes = sum(file.bytes for file in manifest.files), os.fstat(stream.fileno()).st_size
    if total > limits.bytes:
        raise InputError(
            f"it contains {data_size(total)}; at most {data_size(limits.bytes)} are accepted", remedy="Raise --max-size"
        )
    if total > max(_RATIO_EXEMPT_BYTES, limits.ratio * archive_bytes):
        growth = f"from {data_size(archive_bytes)} to {data_size(total)}"
        raise InputError(
            f"it would expand {growth}, more than {exact(limits.ratio)} times its size", remedy="Raise --max-ratio"
        )
    return manifest


def _read_exactly(source: _ByteSource, size: int) -> bytes:
    """Reads that many bytes. Raises EOFError when the source ends before."""
    content = bytearray()
    while len(content) < size:
        chunk = source.read(min(size - len(content), _CHUNK_BYTES))
        if not chunk:
            raise EOFError("the end is missing")
        content += chunk
    return bytes(content)


class _BoundedReader:
    """Reads the next `size` bytes of a stream. Raises EOFError when it ends before."""

    def __init__(self, stream: _ByteSource, size: int) -> None:
        self._stream, self.remaining_bytes = stream, size

    def read(self, size: int, /) -> bytes:
        chunk = self._stream.read(min(size, self.remaining_bytes))
        if self.remaining_bytes and size and not chunk:
            raise EOFError("the end is missing")
        self.remaining_bytes -= len(chunk)
        return chunk


def _tar_members(stream: BinaryIO) -> Iterator[Member]:
    """Members of a USTAR archive. Extended headers, whose size has no limit, are refused, as are links and devices."""
    source, names = gzip.GzipFile(fileobj=stream, mode="rb"), _NameCheck()
    while (block := _read_exactly(source, _BLOCK_BYTES)) != bytes(_BLOCK_BYTES):
        try:
            header = tarfile.TarInfo.frombuf(block, "utf-8", "strict")
        except (tarfile.HeaderError, UnicodeDecodeError) as error:
            raise _refusal(f"it was altered: a header cannot be read: {error}") from error
        if header.type != tarfile.REGTYPE:
            raise _refusal(f"{_show(header.name)} is a link, a folder, a device or an extension, not a regular file")
        if header.size < 0:
            raise _refusal(f"{_show(header.name)} has {header.size} bytes")
        _demand_name(names, header.name)
        content = _BoundedReader(source, header.size)
        yield header.name, header.size, content
        padding_bytes = -header.size % _BLOCK_BYTES  # content is padded to whole blocks
        _read_exactly(source, content.remaining_bytes + padding_bytes)
    # After the first block of zeros only zeros may follow, at most a record of them.
    if any(source.read(tarfile.RECORDSIZE)) or source.read(1):
        raise _refusal("it was altered: it contains data after its end")


def _zip_members(stream: BinaryIO) -> Iterator[Member]:
    """Members of a ZIP file. Links, folders, encryption and unusual compression are refused."""
    names = _NameCheck()
    with zipfile.ZipFile(stream) as archive:
        members = archive.infolist()
        if len(members) > _MAX_MEMBERS + 1:
            raise _refusal(f"it has {len(members):,} members; at most {_MAX_MEMBERS:,} files are accepted")
        for member in members:
            # 0: written by a system without Unix modes.
            if stat.S_IFMT(member.external_attr >> 16) not in (0, stat.S_IFREG) or member.filename.endswith("/"):
                raise _refusal(f"{_show(member.filename)} is a link, a folder or a device, not a regular file")
            if member.orig_filename != member.filename:
                raise _refusal(f"the name {_show(member.orig_filename)} is refused: it contains a zero byte")
            if member.flag_bits & _ENCRYPTED or member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise _refusal(f"{_show(member.filename)} is encrypted or compressed by an unknown method")
            _demand_name(names, member.filename)
            with archive.open(member) as content:
                bounded = _BoundedReader(content, member.file_size)
                yield member.filename, member.file_size, bounded
                if content.read(1):
                    raise _refusal(f"{_show(member.filename)} is longer than its header says")
