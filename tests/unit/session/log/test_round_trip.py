"""Every kind of row comes back from its text as it went in."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.base.codec import RECORDS, decode, encode
from tests.unit.session.log.records import KINDS, rows_of


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(drawn=st.data())
def test_row_to_text_and_back(kind: type, drawn: st.DataObject) -> None:
    record = drawn.draw(rows_of(kind))
    text = encode(RECORDS, record)
    assert b"\n" not in text
    back = decode(RECORDS, text)
    assert type(back) is kind
    assert back == record
