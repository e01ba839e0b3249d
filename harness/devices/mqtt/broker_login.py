"""The embedded broker's login plug-in: one user and password. amqtt loads it by its name."""

from __future__ import annotations

import hmac
import os
from dataclasses import dataclass

from amqtt.plugins.base import BaseAuthPlugin
from amqtt.session import Session


class SingleLogin(BaseAuthPlugin):  # type: ignore[misc]  # amqtt has no types
    """Admits one user. Its settings `username` and `password_env` are those of the connection's options."""

    async def authenticate(self, *, session: Session) -> bool:
        expected = os.environ.get(self.config.password_env, "")
        right_user = hmac.compare_digest((session.username or "").encode(), self.config.username.encode())
        right_password = hmac.compare_digest((session.password or "").encode(), expected.encode())
        return bool(expected) and right_user and right_password

    @dataclass
    class Config:
        username: str = ""
        password_env: str = ""
