"""How fast the raters' site saves: judging posts a second, and the 95th percentile with 20 raters at once.

Beside it, in the same run and over the same connections, a bare starlette route that answers with the same status;
and the site's own row on the disk without the site. Usage: python benchmarks/bench_rating_site.py [ITEMS]
"""

from __future__ import annotations

import re
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable
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


def bare() -> ASGIApp:
    async def post(request: Request) -> Response:
        await request.form()
        return RedirectResponse("/judge", 303)

    return Starlette(routes=[Route("/judge", post, methods=["POST"])])


def served(app: ASGIApp) -> tuple[str, Callable[[], None]]:
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, lifespan="off", log_level="error", access_log=False))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()

    def stop() -> None:
        server.should_exit = True
        thread.join()
        listening.close()

    return f"http://127.0.0.1:{listening.getsockname()[1]}", stop


def all_at_once(work: Callable[[int], list[float]], raters: int) -> tuple[float, np.ndarray]:
    """(posts a second, times of the posts in ms)"""
    times: list[list[float]] = [[] for _ in range(raters)]
    threads = [threading.Thread(target=lambda n=n: times[n].extend(work(n))) for n in range(raters)]
    begun = time.perf_counter()
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    every = np.concatenate([np.array(one) for one in times]) * 1000
    return len(every) / (time.perf_counter() - begun), every


def told(name: str, rate: float, times: np.ndarray) -> None:
    middle, high = np.percentile(times, [50, 95])
    print(f"{name:<34} {rate:7.0f} posts/s   median {middle:6.1f} ms   p95 {high:6.1f} ms")


def main(items: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        session = rating_session(root / "s1", items)
        names = [f"rater{number}" for number in range(RATERS + 1)]
        invitations = Invitations(root / "i.json")
        tokens = invitations.invite(names, 1)
        room = RatingRoom(RatingRound(sessions=(str(session),)))
        site, stop_site = served(RatersSite(room, invitations, RaterKeys()).app)
        plain, stop_plain = served(bare())

        def judging(number: int) -> list[float]:
            times = []
            with httpx2.Client(base_url=site, timeout=60) as client:
                word = dict(FIELD.findall(client.get("/login").text))["form_word"]
                client.post("/login", data={"form_word": word, "token": tokens[names[number]]})
                for _ in range(items):
                    fields = dict(FIELD.findall(client.get("/judge").text))
                    begun = time.perf_counter()
                    answer = client.post("/judge", data={**fields, "do": f"label.{Category.CORRECT.value}"})
                    times.append(time.perf_counter() - begun)
                    assert answer.status_code == 303, answer.text
            return times

        def posting(number: int) -> list[float]:
            times = []
            with httpx2.Client(base_url=plain, timeout=60) as client:
                for _ in range(items):
                    begun = time.perf_counter()
                    client.post("/judge", data={"do": "label.correct", "item": "0" * 8, "turn": "0" * 10})
                    times.append(time.perf_counter() - begun)
            return times

        print(f"{items} responses; each post of the site is followed by the page of the next response")
        for raters in (1, RATERS):
            first = 0 if raters == RATERS else RATERS
            rate, times = all_at_once(lambda number, first=first: judging(number + first), raters)
            bare_rate, bare_times = all_at_once(posting, raters)
            told(f"site, {raters} raters", rate, times)
            told(f"bare route, {raters} clients", bare_rate, bare_times)
            print(f"{'ratio of medians':<34} {np.median(times) / np.median(bare_times):7.1f}")
        assert len({row.id for row in room.rows}) == len(room.rows)
        stop_site()
        stop_plain()
        room.close()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else sized(40, 3))
