"""Run pytest and write down how each test ended; runs inside the sandbox that judges.

The host sends this module as text to the interpreter that has pytest. So it knows nothing of rtmc.
"""

import os
import sys

import pytest

sys.dont_write_bytecode = True  # -I is blind to the variable that says so

WORST = ("passed", "skipped", "failed")


class Reporter:
    """A plugin of pytest."""

    def __init__(self):
        self.outcomes = {}
        self.broken = []

    def pytest_collectreport(self, report):
        """Note a file that cannot be collected."""
        if report.failed:
            self.broken.append(report.nodeid)

    def pytest_runtest_logreport(self, report):
        """Note the worst of a test's set-up, call and tear-down."""
        before = self.outcomes.get(report.nodeid, "passed")
        self.outcomes[report.nodeid] = max(before, report.outcome, key=WORST.index)


def main(path, *arguments):
    """Run pytest with these arguments in the present directory; write JSON to ``path``."""
    import json

    sys.path.insert(0, os.getcwd())  # as `python -m pytest` has it, but behind pytest's own imports
    reporter = Reporter()
    code = int(pytest.main(list(arguments), plugins=[reporter]))
    sys.stdout.flush()
    with open(path, "w") as file:
        json.dump({"code": code, "outcomes": reporter.outcomes, "broken": reporter.broken}, file)


if __name__ == "__main__":
    main(*sys.argv[1:])
    os._exit(0)  # what the code under test would do at exit is no part of the verdict
