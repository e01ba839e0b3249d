"""`harness rate invite`: what it refuses."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner

from harness.cli import group


def test_listing_does_not_replace_the_link_of_somebody_invited(tmp_path: Path) -> None:
    file = tmp_path / "invitations.json"
    invite = ["rate", "invite", "--invitations", str(file)]
    assert CliRunner().invoke(group, [*invite, "ann"]).exit_code == 0
    before = file.read_bytes()
    refused = CliRunner().invoke(group, [*invite, "ann", "--list"])
    assert "ann is invited already" in str(refused.exception)
    assert file.read_bytes() == before
    assert CliRunner().invoke(group, [*invite, "--list"]).output.startswith("ann ")
