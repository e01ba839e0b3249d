"""A session live against offline, as it is printed."""

from harness.model.offline import EngineFacts, EngineKind
from harness.offline.figures.session_comparison import AmbientCounts, DeviceComparison
from harness.offline.reports.session import lines
from harness.statistics.latency import latency_figures
from harness.statistics.significance import Discordance

FACTS = EngineFacts(EngineKind.WAKE, "1", 16_000, ("alexa",), "0" * 64)


def test_columns_stay_apart_whatever_is_in_them() -> None:
    cells = {
        "voice=" + "x" * 40: Discordance(9_000_000, 20, 0, 0),
        "level_dbfs=-20": Discordance(0, 0, 200, 1_000),
        "noise=fan": Discordance(1, 0, 0, 0),
    }
    none = latency_figures([])
    found = DeviceComparison("a", (), AmbientCounts(), none, none, none, False, False, (), tuple(cells.items()))
    table = [line for line in lines(found, FACTS, "engine:a", continuous=True) if "=" in line or "condition" in line]
    head, *rows = table
    assert head.split()[-5:] == ["only", "live", "only", "offline", "p"]
    assert [row.split()[1:] for row in rows] == [
        ["9000020", "0", "20", "20", "0", "1.91e-06"],
        ["1200", "1200", "1000", "0", "200", "1.24e-60"],
        ["1", "0", "0", "0", "0", "n/a"],
    ]
    assert len({len(line) for line in table}) == 1
