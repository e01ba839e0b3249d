from harness.model.numbers import local_time

MINUTE_START_S = 1_800_000_000
"""The start of a minute in every time zone."""


def test_a_local_time_is_cut_to_the_millisecond() -> None:
    assert local_time(MINUTE_START_S + 0.25).endswith(":00.250")
    assert local_time(MINUTE_START_S + 59.9996).endswith(":59.999")
