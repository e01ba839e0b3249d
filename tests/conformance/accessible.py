"""What axe-core finds wrong with a page in a browser, for people who do not see it or use no mouse."""

from __future__ import annotations

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page


def barriers(page: Page) -> list[str]:
    """A line for each rule of axe-core that the page breaks, with the elements."""
    violations = Axe().run(page).response["violations"]
    return [
        f"{rule['id']}: {rule['help']}: {[node['html'][:200] for node in rule['nodes'][:5]]}" for rule in violations
    ]
