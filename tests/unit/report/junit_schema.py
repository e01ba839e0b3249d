"""The JUnit schema that CI servers share, as a checker of our own: what is wrong with a report, [] when nothing is.

Rules of junit-10.xsd (Jenkins' xUnit plugin), and those of the stricter Ant schema that others check: one verdict a
case, times as decimals, a time stamp without a zone, counts that are those of the elements.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.etree import ElementTree

VERDICTS = ("failure", "error", "skipped")
DECIMAL, COUNT = r"\d+\.\d+", r"\d+"
MOMENT = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d"
# element: (required attributes, optional ones, each with its form; children)
RULES: dict[str, tuple[dict[str, str], dict[str, str], tuple[str, ...]]] = {
    "testsuites": (
        {},
        {"name": "", "time": DECIMAL, "tests": COUNT, "failures": COUNT, "errors": COUNT},
        ("testsuite",),
    ),
    "testsuite": (
        {"name": ".+", "tests": COUNT, "failures": COUNT, "errors": COUNT, "timestamp": MOMENT, "hostname": ".+"},
        {"time": DECIMAL, "skipped": COUNT, "id": COUNT, "package": ""},
        ("properties", "testcase", "system-out", "system-err"),
    ),
    "properties": ({}, {}, ("property",)),
    "property": ({"name": ".+", "value": ""}, {}, ()),
    "testcase": ({"name": ".+", "classname": ".+", "time": DECIMAL}, {}, (*VERDICTS, "system-out", "system-err")),
    **{name: ({"type": ".+"}, {"message": ""}, ()) for name in VERDICTS},
    "system-out": ({}, {}, ()),
    "system-err": ({}, {}, ()),
}


def problems(report: bytes) -> list[str]:
    root = ElementTree.fromstring(report)
    root_problems = [f"the root is {root.tag}"] if root.tag not in ("testsuites", "testsuite") else []
    return [*root_problems, *_wrong(root, root.tag)]


def _wrong(element: ElementTree.Element, path: str) -> Iterator[str]:
    if element.tag not in RULES:
        yield f"{path}: no such element"
        return
    required, optional, children = RULES[element.tag]
    for name in required.keys() - element.keys():
        yield f"{path}: no {name}"
    for name, value in element.items():
        form = (required | optional).get(name)
        if form is None:
            yield f"{path}: an attribute {name}"
        elif form and re.fullmatch(form, value, re.DOTALL) is None:
            yield f"{path}: {name} is {value!r}"
    if element.tag not in (*VERDICTS, "system-out", "system-err") and (element.text or "").strip():
        yield f"{path}: text {element.text!r}"
    for number, child in enumerate(element):
        if child.tag not in children:
            yield f"{path}: a child {child.tag}"
        yield from _wrong(child, f"{path}/{child.tag}[{number}]")
    yield from _of_whole(element, path)


def _of_whole(element: ElementTree.Element, path: str) -> Iterator[str]:
    if element.tag == "testcase" and sum(child.tag in VERDICTS for child in element) > 1:
        yield f"{path}: more than one verdict"
    if element.tag in ("testsuite", "testsuites"):
        for attribute, tag in (("tests", "testcase"), ("failures", "failure"), ("errors", "error"),
                               ("skipped", "skipped")):  # fmt: skip
            if (stated := element.get(attribute)) is not None and int(stated) != sum(1 for _ in element.iter(tag)):
                yield f"{path}: {attribute} is {stated}"
    if element.tag == "testsuite":
        order = [
            children_of.index(child.tag) for child in element if child.tag in (children_of := RULES["testsuite"][2])
        ]
        if order != sorted(order):
            yield f"{path}: its children are in another order"
