"""`harness rate invite`: what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from harness.cli import group


def test_listing_does_not_replace_the_link_of_somebody_invited(tmp_path: Path) -> None:
    file = tmp_path / "invitations.json"
    invite = ["rate", "invite", "--invitations", str(file)]
    assert CliRunner().invoke(group, [*invite, "ann"]).exit_code == 0
    before = file.read_bytes()
    refused = CliRunner().invoke(group, [*invite, "ann", "--list"])
    assert "ann is already invited" in str(refused.exception)
    assert file.read_bytes() == before
    assert CliRunner().invoke(group, [*invite, "--list"]).output.startswith("ann ")


@pytest.mark.parametrize(
    ("first", "second", "refusal"),
    [
        ([], ["--adjudicator"], "Ann has the role rater, and the new link would change it to adjudicator"),
        (["--coordinator"], [], "Ann has the role coordinator, and the new link would change it to rater"),
    ],
)
def test_a_new_invitation_does_not_change_a_role_unless_the_first_one_is_revoked(
    tmp_path: Path, first: list[str], second: list[str], refusal: str
) -> None:
    file = tmp_path / "invitations.json"
    invite = ["rate", "invite", "--invitations", str(file)]
    assert CliRunner().invoke(group, [*invite, "Ann", *first]).exit_code == 0
    before = file.read_bytes()
    refused = CliRunner().invoke(group, [*invite, "ben", "ann", *second])
    assert refusal in str(refused.exception)
    assert file.read_bytes() == before
    assert CliRunner().invoke(group, [*invite, "ann", *first]).exit_code == 0
    assert CliRunner().invoke(group, [*invite, "ann", *second, "--revoke", "ann"]).exit_code == 0


@pytest.mark.parametrize("address", ["http://ann:secret@lab.example", "https://lab.example/#raters", "http://lab:0x"])
def test_an_address_of_more_than_scheme_host_and_port_is_refused(tmp_path: Path, address: str) -> None:
    file = tmp_path / "invitations.json"
    refused = CliRunner().invoke(group, ["rate", "invite", "--invitations", str(file), "ann", "--address", address])
    assert "is not a valid site address" in str(refused.exception)
    assert not file.exists()
