"""How fast the raters' site saves: judging posts a second, and the 95th percentile with 20 raters at once.

Beside it stands, in the same run, a bare starlette route that answers with the same status.

python benchmarks/bench_rating_site.py [ITEMS]
"""

from __future__ import annotations

import re
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import httpx2
import numpy as np
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

sys.path.insert(0, str(Path(__file__).parents[1]))

from sizes import sized

from harness.model.judgment import Category, RaterKeys, RatingRound
from harness.rating.rating_room import RatingRoom
from harness.web.invitations import Invitations
from harness.web.raters_site import RatersSite
from tests.rating_sessions import rating_session

RATERS = sized(20, 2)
FIELD = re.compile(r'name="(form_word|item|turn|page)" value="([^"]*)"')


def bare_app() -> ASGIApp:
    async def post(request: Request) -> Response:
        await request.form()
        return RedirectResponse("/judge", 303)

    return Starlette(routes=[Route("/judge", post, methods=["POST"])])


@contextmanager
def serving(app: ASGIApp) -> Iterator[str]:
    """Serves an application from a thread within the `with` block; gives its URL."""
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, lifespan="off", log_level="error", access_log=False))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
        listening.close()


@dataclass(frozen=True, slots=True)
class Posts:
    """How many were made a second, and how long each of them took."""

    per_s: float
    times_ms: np.ndarray

    def print_row(self, name: str) -> None:
        middle, high = np.percentile(self.times_ms, [50, 95])
        print(f"{name:<34} {self.per_s:7.0f} posts/s   median {middle:6.1f} ms   p95 {high:6.1f} ms")


def post_at_once(clients: Sequence[Callable[[], list[float]]]) -> Posts:
    """Runs the clients in a thread each. A client returns the seconds that each of its posts took."""
    began_s = time.perf_counter()
    with ThreadPoolExecutor(len(clients)) as pool:
        futures = [pool.submit(client) for client in clients]
        times_ms = 1000 * np.concatenate([np.array(future.result()) for future in futures])
    return Posts(len(times_ms) / (time.perf_counter() - began_s), times_ms)


def judge(url: str, token: str, items: int) -> list[float]:
    """Logs a rater in and judges so many responses. Returns the seconds of each judging post."""
    times_s = []
    with httpx2.Client(base_url=url, timeout=60) as client:
        form_word = dict(FIELD.findall(client.get("/login").text))["form_word"]
        client.post("/login", data={"form_word": form_word, "token": token})
        for _ in range(items):
            fields = dict(FIELD.findall(client.get("/judge").text))
            began_s = time.perf_counter()
            response = client.post("/judge", data={**fields, "do": f"label.{Category.CORRECT.value}"})
            times_s.append(time.perf_counter() - began_s)
            assert response.status_code == 303, response.text
    return times_s


def post_plainly(url: str, items: int) -> list[float]:
    """Makes as many posts to the bare route, of about the same size. Returns the seconds of each."""
    times_s = []
    with httpx2.Client(base_url=url, timeout=60) as client:
        for _ in range(items):
            began_s = time.perf_counter()
            client.post("/judge", data={"do": "label.correct", "item": "0" * 8, "turn": "0" * 10})
            times_s.append(time.perf_counter() - began_s)
    return times_s


def main(items: int) -> None:
    with ExitStack() as stack:
        root = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        session = rating_session(root / "s1", items)
        names = [f"rater{number}" for number in range(RATERS + 1)]
        invitations = Invitations(root / "i.json")
        tokens = invitations.invite(names, 1)
        room = RatingRoom(RatingRound(sessions=(str(session),)))
        stack.callback(room.close)
        site_url = stack.enter_context(serving(RatersSite(room, invitations, RaterKeys()).app))
        bare_url = stack.enter_context(serving(bare_app()))
        print(f"{items} responses; each post of the site is followed by the page of the next response")
        for raters in (names[RATERS:], names[:RATERS]):  # one rater, then all the others at once
            judged = post_at_once([partial(judge, site_url, tokens[rater], items) for rater in raters])
            bare = post_at_once([partial(post_plainly, bare_url, items)] * len(raters))
            judged.print_row(f"site, {len(raters)} raters")
            bare.print_row(f"bare route, {len(raters)} clients")
            print(f"{'ratio of medians':<34} {np.median(judged.times_ms) / np.median(bare.times_ms):7.1f}")
        assert len({row.id for row in room.rows}) == len(room.rows)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else sized(40, 3))
