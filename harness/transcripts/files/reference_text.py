"""The text of what a file of audio says, from a text file (the second field of a -c list)."""

from __future__ import annotations

from harness.model.offline import RejectReason
from harness.sound.sound_files import open_file
from harness.sound.wave_file import UnusableSound

LONGEST_BYTES = 1 << 20
"""Of a reference; a longer one is the wrong file (an hour of speech has some 60 kB)."""

_BYTE_ORDER_MARK = "\ufeff"


def read_reference(path: str) -> str:
    """The words of a reference: UTF-8, without a byte order mark, every run of white space one blank.

    UnusableSound with REFERENCE when there is none: a file that cannot be read, is no text, is empty or too long.
    """
    try:
        with open_file(path) as file:
            content = file.read(LONGEST_BYTES + 1)
    except UnusableSound as error:
        raise _refused(path, error.detail) from error
    except OSError as error:
        raise _refused(path, error.strerror or str(error)) from error
    if len(content) > LONGEST_BYTES:
        raise _refused(path, f"it is longer than {LONGEST_BYTES >> 20} MiB")
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _refused(path, f"it is not UTF-8 at byte {error.start}") from error
    if "\0" in text:
        raise _refused(path, "it is no text (a NUL stands in it)")
    words = " ".join(text.removeprefix(_BYTE_ORDER_MARK).split())
    if not words:
        raise _refused(path, "it is empty")
    return words


def _refused(path: str, detail: str) -> UnusableSound:
    return UnusableSound(RejectReason.REFERENCE, f"{path}: {detail}")
