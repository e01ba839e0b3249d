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
    """The reason why a case did not pass. type: one word, for tables. message: one line. text: all details."""

    verdict: CaseVerdict
    type: str
    message: str
    text: str = ""


@frozen
class Case:
    """A test case. time_s: its duration. reason: None if it passed. said: lines of its output, whether it passed or
    not."""

    name: str
    class_name: str
    time_s: float = 0.0
    reason: Reason | None = None
    said: tuple[str, ...] = ()


@frozen
class Suite:
    name: str
    cases: tuple[Case, ...]
    properties: Properties = ()

    def count(self, verdict: CaseVerdict) -> int:
        return sum(case.reason is not None and case.reason.verdict is verdict for case in self.cases)


@frozen
class JUnitReport:
    """The content of a JUnit file. started_s: Unix time. time_s: duration of the whole run. It is not the sum over
    suites, which overlap if devices share a stimulus."""

    name: str
    suites: tuple[Suite, ...]
    started_s: float
    time_s: float = 0.0
    host: str = "localhost"

    def count(self, verdict: CaseVerdict) -> int:
        return sum(suite.count(verdict) for suite in self.suites)


def xml_text(text: str) -> str:
    """The text, with characters that XML cannot hold as visible escapes: \\x1b, \\ud800, \\ufffe."""
    return _INVALID.sub(lambda match: _escape(ord(match[0])), text)


def _escape(point: int) -> str:
    return f"\\x{point:02x}" if point <= 0xFF else f"\\u{point:04x}"


def as_xml(report: JUnitReport) -> bytes:
    """The whole document, in UTF-8."""
    root = ElementTree.Element("testsuites", _attributes(name=report.name, **_counts(report)))
    root.set("time", _seconds(report.time_s))
    stamp = datetime.fromtimestamp(report.started_s, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    for number, suite in enumerate(report.suites):
        element = ElementTree.SubElement(root, "testsuite", _attributes(name=suite.name, **_counts(suite)))
        element.set("skipped", str(suite.count(CaseVerdict.SKIPPED)))
        element.set("time", _seconds(sum(case.time_s for case in suite.cases)))
        for key, value in _attributes(
            timestamp=stamp, hostname=report.host, id=str(number), package=report.name
        ).items():
            element.set(key, value)
        properties = ElementTree.SubElement(element, "properties")
        for name, value in suite.properties:
            ElementTree.SubElement(properties, "property", _attributes(name=name, value=value))
        for case in suite.cases:
            _write(element, case)
    ElementTree.indent(root)
    text: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return text + b"\n"


def _write(parent: ElementTree.Element, case: Case) -> None:
    element = ElementTree.SubElement(parent, "testcase", _attributes(name=case.name, classname=case.class_name))
    element.set("time", _seconds(case.time_s))
    if (reason := case.reason) is not None:
        why = _attributes(type=reason.type, message=reason.message)
        ElementTree.SubElement(element, reason.verdict.value, why).text = xml_text(reason.text) or None
    if case.said:
        ElementTree.SubElement(element, "system-out").text = xml_text("\n".join(case.said))


def _counts(part: JUnitReport | Suite) -> dict[str, str]:
    cases = len(part.cases) if isinstance(part, Suite) else sum(len(suite.cases) for suite in part.suites)
    failures, errors = part.count(CaseVerdict.FAILURE), part.count(CaseVerdict.ERROR)
    return {"tests": str(cases), "failures": str(failures), "errors": str(errors)}


def _attributes(**texts: str) -> dict[str, str]:
    return {key: xml_text(text) for key, text in texts.items()}


def _seconds(value_s: float) -> str:
    return fixed(max(0.0, value_s), 3)
