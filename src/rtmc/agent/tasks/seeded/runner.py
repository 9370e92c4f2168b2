"""Run small programs, each in a process of its own, and say what each printed; in the sandbox.

The host sends this module as text. It reads the programs from stdin as JSON.
"""

import contextlib
import io
import json
import os
import resource
import sys
import warnings

SECONDS = 5
LONGEST = 1201


def run(program):
    """Give what a program prints, and the exception that ends it, as ``Type: message``."""
    printed, error = io.StringIO(), None
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()):
        try:
            exec(compile(program, "<example>", "exec"), {"__name__": "__main__"})
        except BaseException as raised:
            said = f"{type(raised).__name__}: {raised}"
            error = said if str(raised) else type(raised).__name__
    return {"printed": printed.getvalue()[:LONGEST], "error": error and error[:LONGEST]}


def apart(program):
    """Run a program in a child; None where the child does not live to tell."""
    reads, writes = os.pipe()
    child = os.fork()
    if not child:
        os.close(reads)
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
        with open(writes, "w") as file:
            json.dump(run(program), file)
        os._exit(0)
    os.close(writes)
    with open(reads) as file:
        said = file.read()
    os.waitpid(child, 0)
    return json.loads(said) if said else None


def main():
    """Run all programs; write their results as JSON."""
    warnings.simplefilter("ignore")
    sys.dont_write_bytecode = True  # as in the probe
    sys.path.insert(0, os.getcwd())
    json.dump([apart(program) for program in json.load(sys.stdin)], sys.stdout)


if __name__ == "__main__":
    main()
