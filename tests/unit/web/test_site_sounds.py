"""What the raters' site plays, and to whom."""

from __future__ import annotations

from pathlib import Path

from harness.rating.purging import redact
from tests.known import known
from tests.unit.web.visitors import Browser, Premises, item_of


def test_raters_hear_only_sounds_of_their_own_queue(premises: Premises) -> None:
    premises.change_round(raters=("ann", "bob"), raters_per_item=1)
    ann, bob = premises.visitor("ann"), premises.visitor("bob")
    item = item_of(ann.page())
    assert ann.client.get(f"/sound/{item}/response").status_code == 200
    assert bob.client.get(f"/sound/{item}/response").status_code == 404
    assert ann.client.get(f"/sound/{item}/clip").status_code == 404
    assert premises.visitor("zoe").client.get(f"/sound/{item}/response").status_code == 404


def test_a_redacted_or_removed_sound_is_not_served_from_memory(premises: Premises, ann: Browser) -> None:
    item = known(premises.room.desk("ann").view.item)
    path = known(premises.room.clip_path(item))
    address = f"/sound/{item.id}/response"
    before = ann.client.get(address).content
    redact(Path(premises.round.sessions[0]), path.name, [(0.1, 0.4)], "a name", "carla")
    assert ann.client.get(address).content != before
    path.unlink()
    assert ann.client.get(address).status_code == 503
