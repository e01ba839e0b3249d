"""The annotators' site in a process of its own."""

from __future__ import annotations

from tests.conformance.rating.site import SiteProcess


class AnnotationSiteProcess(SiteProcess):
    """As `harness annotate review` starts it."""

    VERB = ("annotate", "review")
