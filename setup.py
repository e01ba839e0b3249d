"""Builds what pyproject.toml describes, and puts the project's data folders into the package."""

from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

SHIPPED = ("devices", "scenarios")


class BuildPy(build_py):
    """Copies device profiles and scenarios to harness/shipped/, where harness.base.places looks for them.

    An editable install has them beside harness/, as a checkout does.
    """

    def run(self):
        super().run()
        if not self.editable_mode:
            for source, target in self._shipped():
                self.mkpath(str(Path(target).parent))
                self.copy_file(source, target)

    def get_outputs(self, include_bytecode=1):
        return [*super().get_outputs(include_bytecode), *(target for _, target in self._shipped())]

    def _shipped(self):
        root = Path(self.build_lib) / "harness" / "shipped"
        for folder in SHIPPED:
            for path in sorted(Path(folder).rglob("[!.]*")):
                if path.is_file():
                    yield str(path), str(root / path)


setup(cmdclass={"build_py": BuildPy})
