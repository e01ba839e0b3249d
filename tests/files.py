"""Files of tests."""

from __future__ import annotations

from pathlib import Path


def file_with(path: Path, content: str | bytes) -> Path:
    """Writes a file, text in UTF-8, and returns its path."""
    path.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)
    return path
