"""JUnit's XML: suites of cases, each passed or with one reason. Independent of sessions.

The output is valid against the schema that CI servers share (junit-10.xsd of Jenkins' xUnit plugin). It also meets
stricter schemas: one verdict for each case, a timestamp without a zone, host name and properties on a suite.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from enum import StrEnum
from xml.etree import ElementTree

from harness.model.frozen import frozen
from harness.model.numbers import fixed

Properties = tuple[tuple[str, str], ...]
# Characters that XML 1.0 cannot hold, even as references, and line ends that a parser would change.
_INVALID = re.compile("[^\t\n\x20-\x7e\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class CaseVerdict(StrEnum):
    """Why a case did not pass. Values are the names of the XML elements."""

    FAILURE = "failure"
    ERROR = "error"
    SKIPPED = "skipped"


@frozen
class Reason:
    """The reason why a case did not pass.

    - type: one word, for tables.
    - message: one line.
    - text: all details.
    """

    verdict: CaseVerdict
    type: str
    message: str
    text: str = ""


@frozen
class Case:
    """A test case.

    - duration_s: in wall time.
    - reason: None if it passed.
    - output: lines, whether it passed or not.
    """

    name: str
    class_name: str
    duration_s: float = 0.0
    reason: Reason | None = None
    output: tuple[str, ...] = ()


@frozen
class Suite:
    """Cases that belong together, with what they have in common."""

    name: str
    cases: tuple[Case, ...]
    properties: Properties = ()

    def count(self, verdict: CaseVerdict) -> int:
        return sum(case.reason is not None and case.reason.verdict is verdict for case in self.cases)


@frozen
class JUnitReport:
    """The content of a JUnit file.

    - started_s: Unix time.
    - duration_s: of the whole run. It is not the sum over suites, which overlap if devices share a stimulus.
    - host: name of the host on which it ran.
    """

    name: str
    suites: tuple[Suite, ...]
    started_s: float
    duration_s: float = 0.0
    host: str = "localhost"

    def count(self, verdict: CaseVerdict) -> int:
        return sum(suite.count(verdict) for suite in self.suites)


def xml_text(text: str) -> str:
    """The text, with characters that XML cannot hold as visible escapes: \\x1b, \\ud800, \\ufffe."""
    return _INVALID.sub(lambda match: _escape(ord(match[0])), text)


def _escape(code_point: int) -> str:
    return f"\\x{code_point:02x}" if code_point <= 0xFF else f"\\u{code_point:04x}"


def to_xml(report: JUnitReport) -> bytes:
    """The whole document, in UTF-8."""
    root = ElementTree.Element("testsuites", _attributes(name=report.name, **_counts(report)))
    root.set("time", _seconds(report.duration_s))
    stamp = datetime.fromtimestamp(report.started_s, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    for number, suite in enumerate(report.suites):
        element = ElementTree.SubElement(root, "testsuite", _attributes(name=suite.name, **_counts(suite)))
        element.set("skipped", str(suite.count(CaseVerdict.SKIPPED)))
        element.set("time", _seconds(sum(case.duration_s for case in suite.cases)))
        attributes = _attributes(timestamp=stamp, hostname=report.host, id=str(number), package=report.name)
        for key, value in attributes.items():
            element.set(key, value)
        properties = ElementTree.SubElement(element, "properties")
        for name, value in suite.properties:
            ElementTree.SubElement(properties, "property", _attributes(name=name, value=value))
        for case in suite.cases:
            _add_case(element, case)
    ElementTree.indent(root)
    text: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return text + b"\n"


def _add_case(parent: ElementTree.Element, case: Case) -> None:
    element = ElementTree.SubElement(parent, "testcase", _attributes(name=case.name, classname=case.class_name))
    element.set("time", _seconds(case.duration_s))
    reason = case.reason
    if reason is not None:
        attributes = _attributes(type=reason.type, message=reason.message)
        ElementTree.SubElement(element, reason.verdict.value, attributes).text = xml_text(reason.text) or None
    if case.output:
        ElementTree.SubElement(element, "system-out").text = xml_text("\n".join(case.output))


def _counts(part: JUnitReport | Suite) -> dict[str, str]:
    cases = len(part.cases) if isinstance(part, Suite) else sum(len(suite.cases) for suite in part.suites)
    failures, errors = part.count(CaseVerdict.FAILURE), part.count(CaseVerdict.ERROR)
    return {"tests": str(cases), "failures": str(failures), "errors": str(errors)}


def _attributes(**texts: str) -> dict[str, str]:
    """Attributes of an element, with characters that XML can hold."""
    return {key: xml_text(text) for key, text in texts.items()}


def _seconds(value_s: float) -> str:
    return fixed(max(0.0, value_s), 3)
