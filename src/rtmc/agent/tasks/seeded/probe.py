"""Run pytest and write down all that a builder of problems wants to know; runs in the sandbox.

The host sends this module as text to the interpreter that has pytest. So it knows nothing of rtmc.
It reads a request from stdin: the tests to run (null: all), whether to note which functions each
test calls, and how many seconds of processor time there are.
"""

import ast
import inspect
import json
import os
import resource
import sys
import threading
import time
from typing import Any

import pytest

WORST = ("passed", "skipped", "failed")
LONGEST = 2000


class Probe:
    """A plugin of pytest."""

    def __init__(self, only, traced):
        self.only = None if only is None else set(only)
        self.traced = traced
        self.root = os.getcwd() + os.sep
        self.calls = {}
        self.found: dict[str, Any] = {
            "outcomes": {}, "seconds": {}, "where": {}, "failures": {}, "broken": [], "calls": {},
        }  # fmt: skip
        self.trace_into("")

    def trace_into(self, test):
        """Note the functions that are called from now on as this test's."""
        if not self.traced:
            return
        called = self.calls.setdefault(test, set())
        root = self.root

        def trace(frame, event, argument):
            code = frame.f_code
            if code.co_filename.startswith(root):
                called.add((code.co_filename[len(root) :], code.co_firstlineno))

        threading.settrace(trace)
        sys.settrace(trace)

    def pytest_collectreport(self, report):
        """Note a file that cannot be collected."""
        if report.failed:
            self.found["broken"].append(report.nodeid)

    def pytest_collection_modifyitems(self, config, items):
        """Keep the tests that are asked for, and note where each is written."""
        if self.only is not None:
            items[:] = [item for item in items if item.nodeid in self.only]
        for item in items:
            function = inspect.unwrap(getattr(item, "function", None) or print)
            code = getattr(getattr(function, "__func__", function), "__code__", None)
            if code is not None and code.co_filename.startswith(self.root):
                place = [code.co_filename[len(self.root) :], code.co_firstlineno]
                self.found["where"][item.nodeid] = place

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item):
        """Time a test."""
        self.trace_into(item.nodeid)
        began = time.process_time()
        try:
            return (yield)
        finally:
            self.found["seconds"][item.nodeid] = time.process_time() - began
            self.trace_into("")

    def pytest_runtest_logreport(self, report):
        """Note the worst of a test's set-up, call and tear-down."""
        before = self.found["outcomes"].get(report.nodeid, "passed")
        self.found["outcomes"][report.nodeid] = max(before, report.outcome, key=WORST.index)

    def pytest_exception_interact(self, node, call, report):
        """Note the line of the test that failed, and the plain values of its names."""
        place = self.found["where"].get(getattr(node, "nodeid", ""))
        if place is None or call.excinfo is None:
            return
        trace, seen = call.excinfo.tb, None
        while trace is not None:
            code = trace.tb_frame.f_code
            if [code.co_filename[len(self.root) :], code.co_firstlineno] == place:
                seen = trace
            trace = trace.tb_next
        if seen is not None:
            named = getattr(getattr(node, "callspec", None), "params", {})
            self.found["failures"][node.nodeid] = {
                "line": seen.tb_lineno,
                "values": plain({**named, **seen.tb_frame.f_locals}),
            }


def plain(values):
    """Write the values that are literals as source."""
    written = {}
    for name, value in values.items():
        try:
            text = repr(value)
            if len(text) <= LONGEST and ast.literal_eval(text) == value:
                written[name] = text
        except Exception:  # whatever a class of the package does in repr or ==
            continue
    return written


def main(path, *arguments):
    """Run pytest with these arguments in the present directory; write JSON to ``path``."""
    request = json.load(sys.stdin)
    limit = request["cpu_seconds"]
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
    # Files are edited within the tick of the clock by which a .pyc is known to be fresh, and -I
    # makes Python blind to the variable that says so.
    sys.dont_write_bytecode = True
    sys.path.insert(0, os.getcwd())
    probe = Probe(request["only"], request["traced"])
    probe.found["code"] = int(pytest.main(list(arguments), plugins=[probe]))
    threading.settrace(None)
    sys.settrace(None)
    probe.found["calls"] = {test: sorted(called) for test, called in probe.calls.items()}
    sys.stdout.flush()
    with open(path, "w") as file:
        json.dump(probe.found, file)


if __name__ == "__main__":
    main(*sys.argv[1:])
    os._exit(0)  # what the code under test would do at exit is no part of the result
