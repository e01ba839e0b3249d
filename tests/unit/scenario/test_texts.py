"""Variables in texts, and in each other."""

from __future__ import annotations

import pytest

from harness.base import strict_yaml
from harness.base.findings import Findings
from harness.scenario.scenario import expanded, filled_in

VARIABLES = """\
variables:
  wish: "the weather in ${place} for $5 or $$6"
  place: "${city}, ${state}"
  city: Lincoln
  state: Nebraska
"""


def read(text: str) -> tuple[dict[str, str], Findings]:
    tree = strict_yaml.parse(text.encode(), "s.yaml")
    found = Findings("s.yaml", tree)
    written = tree.plain()
    assert isinstance(written, dict)
    variables = written["variables"]
    assert isinstance(variables, dict)
    return expanded({name: str(value) for name, value in variables.items()}, found), found


def test_variables_may_name_others_in_any_order() -> None:
    variables, found = read(VARIABLES)
    assert variables["wish"] == "the weather in Lincoln, Nebraska for $5 or $6"
    assert filled_in("what is ${wish}", variables, found, ()) == f"what is {variables['wish']}"
    assert not found.problems


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        ("  a: 'x ${b}'\n  b: 'y ${c}'\n  c: 'z ${b}'", "s.yaml:4:6: a variable stands for itself: b → c → b."),
        ("  a: 'x ${a}'", "s.yaml:2:6: a variable stands for itself: a → a."),
        ("  city: York\n  place: 'in ${ctiy}'", "s.yaml:3:10: no variable is called 'ctiy'. Did you mean 'city'?"),
    ],
)
def test_what_cannot_be_expanded_has_its_place(lines: str, problem: str) -> None:
    _, found = read(f"variables:\n{lines}\n")
    (told,) = found.problems
    assert str(told).startswith(problem)


def test_variables_that_double_end_early() -> None:
    lines = "\n".join(f"  v{number}: '${{v{number + 1}}}${{v{number + 1}}}'" for number in range(60))
    _, found = read(f"variables:\n{lines}\n  v60: ha\n")
    assert "characters long" in str(found.problems[0])
