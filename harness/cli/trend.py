"""`harness report trend`: measures of nightly sessions in their order, and where they change."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from pathlib import Path

import click

from harness.cli.options import A_FILE, LIMIT_FAILED, OutputFormat, argument, option, printed_options, repeatable, verb
from harness.cli.streams import drawn_progress, width


@verb("trend")
def command(
    *,
    folder: Path = argument(type=click.Path(exists=True, file_okay=False, path_type=Path)),
    names: tuple[str, ...] = repeatable("Track only this measure; repeatable.", "--measure", metavar="NAME"),
    device: str | None = option("Track only this device.", metavar="NAME"),
    since: datetime | None = option(
        "Include only sessions that began at this time or later (UTC).",
        type=click.DateTime(("%Y-%m-%d", "%Y-%m-%dT%H:%M")),
    ),
    html: Path | None = option("Also write an HTML page.", type=A_FILE, writes=True),
    printed: OutputFormat = printed_options(
        "Print one JSON object.", "Print one row per session and measure, for a spreadsheet."
    ),
    recent: int | None = option(
        "Exit with status 1 if the last change of a measure is for the worse and began in the last N sessions.",
        "--fail-on-change",
        within=(3, None),
        metavar="N",
    ),
) -> None:
    """Track the measures of nightly sessions, and find the nights when they changed.

    FOLDER: completed sessions at any depth below it are ordered by their start. Each scenario and device is analysed
    separately. Other sessions are listed with the reason.

    Exit status: 0 done · 1 with --fail-on-change: a recent change for the worse · 2 wrong usage or input.
    """
    from harness.report import trend_page
    from harness.report.trend import read_trends

    with drawn_progress():
        since_wall_s = None if since is None else since.replace(tzinfo=UTC).timestamp()
        trend_report = read_trends(folder, names, device, since_wall_s)
    if html is not None:
        trend_page.write_page(trend_report, html)
    printed.print(
        json=lambda: json.dumps(trend_page.as_json(trend_report)),
        csv=lambda: trend_page.as_csv(trend_report),
        lines=lambda: trend_page.lines(trend_report, width()),
    )
    if recent is not None and any(trend.worsened_within(recent) for trend in trend_report.trends):
        sys.exit(LIMIT_FAILED)
