"""Record a group: eight scripted agents that try to solve the same issue, for real.

    python examples/make_group.py [-o FILE]

Each strategy below is a list of turns, as a language model would take them. It is run in its own
fresh copy of ``repo/``; ``bash`` and ``str_replace_editor`` really do what they are asked, and
what they answer is recorded. Then ``hidden_tests/`` is copied in and run: the reward is 1.0 if
every hidden test passes and 0.0 otherwise. One line of the output is one rollout, as OpenAI chat
messages.

Two recordings are equal to the byte: the commands see a small fixed environment, the workspace is
called ``/repo``, durations and addresses are replaced. Another minor version of Python, or
another version of pytest, may word some output differently; ``info`` names the two.

Needs bash, GNU sed, and a Python that has pytest.
"""

import argparse
import json
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
PROBLEM = "dayplan__back-to-back"
ROOT = "/repo"

SYSTEM = f"""You are a coding agent. Solve the issue in the repository at {ROOT}.
Tools:
  bash(command): runs the command in {ROOT}. Every command starts a new shell: `cd` is forgotten.
  str_replace_editor(command, path, ...): view, create, str_replace, insert, undo_edit.
  submit(): hands in your work. Hidden tests decide whether the issue is solved."""

NUDGE = "Your last message called no tool. Please call a tool, or submit if you are done."


@dataclass(frozen=True)
class Turn:
    """What the agent says in one turn, and the one tool it calls (none: prose only)."""

    thought: str
    tool: str | None = None
    arguments: dict[str, Any] = field(default_factory=dict)


def bash(thought: str, command: str) -> Turn:
    return Turn(thought, "bash", {"command": command})


def edit(thought: str, command: str, path: str, **arguments: Any) -> Turn:
    path = f"{ROOT}/{path}"
    return Turn(thought, "str_replace_editor", {"command": command, "path": path, **arguments})


def view(thought: str, path: str, **arguments: Any) -> Turn:
    return edit(thought, "view", path, **arguments)


def replace(thought: str, change: tuple[str, str, str]) -> Turn:
    path, old, new = change
    return edit(thought, "str_replace", path, old_str=old, new_str=new)


def submit(thought: str) -> Turn:
    return Turn(thought, "submit")


# --- The changes that several strategies make: (file, old text, new text) ------------------------

OVERLAPS = "        return self.start < other.end and other.start < self.end"
TOUCHES = '''
    def touches(self, other: "Interval") -> bool:
        """Tell whether no minute lies between the two: they overlap or follow each other."""
        return self.start <= other.end and other.start <= self.end'''

ADD_TOUCHES = ("dayplan/interval.py", OVERLAPS, f"{OVERLAPS}\n{TOUCHES}")
WIDEN_OVERLAPS = ("dayplan/interval.py", OVERLAPS, OVERLAPS.replace("<", "<="))
FIX_MERGE = (
    "dayplan/merge.py",
    "        if blocks and blocks[-1].overlaps(interval):",
    "        if blocks and blocks[-1].touches(interval):",
)
FIX_ADD = (
    "dayplan/schedule.py",
    "            if other.overlaps(block):",
    "            if other.touches(block):",
)

# --- The strategies ------------------------------------------------------------------------------

REPRO = """from dayplan import Interval, Schedule

first, second = Interval.parse("09:00-10:00"), Interval.parse("10:00-11:00")
at_once = Schedule(Interval.parse("09:00-17:00"), [first, second])
one_by_one = Schedule(Interval.parse("09:00-17:00"))
one_by_one.add(first)
one_by_one.add(second)
print("at once:   ", at_once.longest_busy())
print("one by one:", one_by_one.longest_busy())
raise SystemExit(0 if at_once.longest_busy() == one_by_one.longest_busy() == 120 else 1)
"""

HEREDOC = f"""python - <<'EOF'
from pathlib import Path

path = Path("{ADD_TOUCHES[0]}")
old = '''{ADD_TOUCHES[1]}'''
new = '''{ADD_TOUCHES[2]}'''
text = path.read_text()
assert text.count(old) == 1
path.write_text(text.replace(old, new))
EOF"""

TEST = "python -m pytest -q tests/test_schedule.py"

STRATEGIES: dict[str, list[Turn]] = {
    # Wins by shell alone: cat, sed and a heredoc make the same views and edits as the editor.
    "shell": [
        bash("The issue is about Schedule. Let me read it.", "cat dayplan/schedule.py"),
        bash("Run the test the issue names.", "cd tests && python -m pytest -q test_schedule.py"),
        bash("busy() comes from merge() and overlaps().", "sed -n 1,39p dayplan/interval.py"),
        bash("Now merge().", "cat dayplan/merge.py"),
        bash(
            "overlaps() is right: back-to-back meetings share no minute. Joining blocks needs a "
            "second question, whether they touch.",
            HEREDOC,
        ),
        bash(
            "merge() should ask touches().",
            r"sed -i 's/blocks\[-1\].overlaps(/blocks[-1].touches(/' dayplan/merge.py",
        ),
        bash(
            "Schedule.add() joins blocks on its own; the same change there.",
            "sed -i 's/if other.overlaps(block)/if other.touches(block)/' dayplan/schedule.py",
        ),
        bash("Who asks which question now?", 'grep -nE "overlaps|touches" dayplan/*.py'),
        bash("conflicts() keeps overlaps(). Test.", "pytest -q tests/test_schedule.py"),
        bash("And everything.", "python -m pytest -q"),
        submit("All tests pass, both ways into the schedule are fixed."),
    ],
    # Wins: writes a reproduction, edits callers first, verifies, removes the script.
    "reproduce": [
        view("I start with the class of the issue.", "dayplan/schedule.py"),
        edit(
            "Meetings get in through the constructor and through add(). I reproduce both.",
            "create",
            "repro.py",
            file_text=REPRO,
        ),
        bash("Run it.", "python repro.py"),
        view("Both ways are wrong. Look at overlaps().", "dayplan/interval.py", view_range=[1, 39]),
        view("And at merge().", "dayplan/merge.py"),
        replace("merge() must join neighbours. I give Interval a touches() for it.", FIX_MERGE),
        replace("add() asks the same question.", FIX_ADD),
        replace("Now the method itself: like overlaps(), with the ends included.", ADD_TOUCHES),
        bash("Run the reproduction again.", "python repro.py"),
        bash("120 both ways. Do the tests agree?", "pytest -q tests/test_schedule.py"),
        bash("Clean up.", "rm repro.py"),
        submit("Fixed in merge() and add(), reproduction removed."),
    ],
    # Wins, after running an unchanged test again and again.
    "repeat": [
        bash("Let me read the schedule.", "cat dayplan/schedule.py"),
        bash("Run its tests.", f"cd {ROOT} && {TEST}"),
        bash("One failure. Maybe it is flaky, I run it again.", f"cd {ROOT} && {TEST}"),
        bash("Once more to be sure.", f"cd {ROOT} && {TEST}"),
        view("It fails every time. Read Interval.", "dayplan/interval.py"),
        view("Read merge().", "dayplan/merge.py"),
        replace("overlaps() is false for neighbours. Interval needs touches().", ADD_TOUCHES),
        replace("Use it in merge().", FIX_MERGE),
        bash("Test.", f"cd {ROOT} && {TEST}"),
        bash("Passes. Again, to be sure that it is stable.", f"cd {ROOT} && {TEST}"),
        replace("add() has its own loop with overlaps(); it needs touches() too.", FIX_ADD),
        bash("Test.", f"cd {ROOT} && {TEST}"),
        submit("Both places are fixed."),
    ],
    # Wins: widens overlaps(), sees conflicts() break, undoes it; an edit is refused on the way.
    "refused_edit": [
        view("The issue names Schedule.", "dayplan/schedule.py"),
        bash("Run the tests.", TEST),
        view("Everything goes through overlaps().", "dayplan/interval.py"),
        replace("A small change: let overlaps() include the ends.", WIDEN_OVERLAPS),
        bash("Test.", TEST),
        edit(
            "Now back-to-back meetings conflict. overlaps() was right, I take that back.",
            "undo_edit",
            "dayplan/interval.py",
        ),
        replace("A separate touches() for joining blocks.", ADD_TOUCHES),
        replace(
            "Use it in merge().",
            (FIX_MERGE[0], "        if blocks and interval.overlaps(blocks[-1]):", FIX_MERGE[2]),
        ),
        view("I remembered the line wrongly. Read it.", "dayplan/merge.py"),
        replace("The other way round.", FIX_MERGE),
        replace("The same in add().", FIX_ADD),
        bash("Test.", TEST),
        submit("Neighbours are joined and do not conflict."),
    ],
    # Fails: repairs merge() exactly as the winners do, and overlooks add().
    "one_place": [
        view("The issue is about Schedule.", "dayplan/schedule.py"),
        bash("Run the failing test.", TEST),
        view("Look at overlaps().", "dayplan/interval.py"),
        view("Look at merge().", "dayplan/merge.py"),
        replace("Neighbours do not overlap, so merge() needs a touches().", ADD_TOUCHES),
        replace("Use it.", FIX_MERGE),
        bash("Test.", TEST),
        submit("The failing test passes now."),
    ],
    # Fails: the right two places, but minutes are counted as if the end belonged to the meeting.
    "off_by_one": [
        bash("Read the schedule first.", "cat dayplan/schedule.py"),
        bash("Reproduce with the test.", "pytest -q tests/test_schedule.py"),
        bash("Where is overlaps()?", "sed -n 1,39p dayplan/interval.py"),
        bash("And merge()?", "cat dayplan/merge.py"),
        edit(
            "Minutes are whole numbers: two meetings are adjacent if one starts in the minute "
            "after the other ends.",
            "insert",
            "dayplan/interval.py",
            insert_line=35,
            insert_text=TOUCHES.replace("other.end", "other.end + 1").replace(
                "<= self.end", "<= self.end + 1"
            ),
        ),
        replace("Join what touches in merge().", FIX_MERGE),
        replace("And in add().", FIX_ADD),
        bash("Test.", "pytest -q tests/test_schedule.py"),
        bash("Nothing else broken?", "python -m pytest -q"),
        submit("All tests pass."),
    ],
    # Fails: widens overlaps(), then changes the test that objects.
    "edit_tests": [
        view("Start with Schedule.", "dayplan/schedule.py"),
        bash("See what fails.", f"cd {ROOT}/tests && python -m pytest -q test_schedule.py"),
        view("Blocks are joined if they overlap.", "dayplan/interval.py"),
        replace("Back-to-back meetings have to count as overlapping.", WIDEN_OVERLAPS),
        bash("Test.", TEST),
        view("Another test fails now.", "tests/test_schedule.py", view_range=[31, 34]),
        replace(
            "It asserts the old meaning of overlapping. I update the expectation.",
            (
                "tests/test_schedule.py",
                'assert texts(day.conflicts(Interval.parse("11:00-11:30"))) == []',
                'assert texts(day.conflicts(Interval.parse("11:00-11:30"))) == ["10:00-11:00"]',
            ),
        ),
        bash("Test again.", TEST),
        submit("All tests pass."),
    ],
    # Fails: reads, talks, changes nothing.
    "give_up": [
        view("Let me look at Schedule.", "dayplan/schedule.py"),
        bash("Run the tests.", TEST),
        view("Look at merge().", "dayplan/merge.py"),
        Turn(
            "merge() joins blocks that overlap, and 09:00-10:00 does not overlap 10:00-11:00 since "
            "the end is excluded. So the code does what its documentation says."
        ),
        Turn("It is not clear to me that this is a bug. I stop here."),
    ],
}

# --- The tools -----------------------------------------------------------------------------------


class Workspace:
    """A fresh copy of the repository, and the two tools that work in it."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "repo"
        self.bin = folder / "bin"
        self.undo: dict[Path, list[str]] = {}
        skip = shutil.ignore_patterns("__pycache__", ".*")
        shutil.copytree(HERE / "repo", self.root, ignore=skip)
        self.bin.mkdir()
        for name, module in (("python", ""), ("pytest", " -m pytest")):
            script = self.bin / name
            script.write_text(f'#!/bin/sh\nexec "{sys.executable}"{module} "$@"\n')
            script.chmod(0o755)

    def run(self, arguments: list[str]) -> tuple[str, int]:
        """Run a program in the root, with nothing of this machine's environment but the PATH."""
        environment = {
            "PATH": f"{self.bin}:{os.environ.get('PATH', os.defpath)}",
            "HOME": str(self.root),
            "LC_ALL": "C.UTF-8",
            "TZ": "UTC",
            "COLUMNS": "80",
            "PYTHONHASHSEED": "0",
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONNOUSERSITE": "1",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "PYTEST_ADDOPTS": "-p no:cacheprovider --color=no",
        }
        done = subprocess.run(
            arguments,
            cwd=self.root,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            timeout=120,
            check=False,
        )
        return self.scrub(done.stdout), done.returncode

    def scrub(self, text: str) -> str:
        """Remove what differs from run to run: folder, durations, addresses."""
        text = text.replace(str(self.root), ROOT).replace(str(self.bin), "/usr/bin")
        text = re.sub(r"\bin \d+\.\d\ds\b", "in 0.02s", text)
        return re.sub(r"\b0x[0-9a-f]{6,}\b", "0x7f0000000000", text)

    def bash(self, command: str) -> str:
        command = re.sub(rf"(?<![\w.]){ROOT}\b", lambda _: shlex.quote(str(self.root)), command)
        output, code = self.run(["bash", "-c", command])
        if output and not output.endswith("\n"):
            output += "\n"
        return f"{output}[Command finished with exit code {code}]"

    def str_replace_editor(self, command: str, path: str, **arguments: Any) -> str:
        file = self.root / Path(path).relative_to(ROOT)
        if command == "create":
            if file.exists():
                return f"File already exists at: {path}. Cannot overwrite files using `create`."
            file.write_text(arguments["file_text"])
            return f"File created successfully at: {path}"
        if not file.is_file():
            return f"The path {path} does not exist. Please provide a valid path."
        text = file.read_text()
        if command == "view":
            first, last = arguments.get("view_range") or (1, -1)
            if not (1 <= first <= (count := len(text.splitlines())) and last <= count):
                return f"Invalid `view_range`: {[first, last]}. {path} has {count} lines."
            shown = _numbered(text, first, last)
            return f"Here's the result of running `cat -n` on {path}:\n{shown}"
        if command == "undo_edit":
            if not self.undo.get(file):
                return f"No edit history found for {path}."
            file.write_text(self.undo[file].pop())
            shown = _numbered(file.read_text())
            return (
                f"Last edit to {path} undone successfully. "
                f"Here's the result of running `cat -n` on {path}:\n{shown}"
            )
        if command == "str_replace":
            old, new = arguments["old_str"], arguments["new_str"]
            if (count := text.count(old)) != 1:
                problem = f"No replacement was performed, old_str `{old}` did not appear verbatim"
                if count:
                    problem = f"No replacement was performed. Multiple occurrences of `{old}`"
                return f"{problem} in {path}."
            line = text[: text.index(old)].count("\n") + 1
            changed = text.replace(old, new)
        elif command == "insert":
            new, line = arguments["insert_text"], arguments["insert_line"] + 1
            lines = text.split("\n")
            changed = "\n".join([*lines[: line - 1], *new.split("\n"), *lines[line - 1 :]])
        else:
            raise ValueError(f"unknown command of str_replace_editor: {command!r}")
        self.undo.setdefault(file, []).append(text)
        file.write_text(changed)
        shown = _numbered(changed, max(1, line - 4), line + new.count("\n") + 4)
        return (
            f"The file {path} has been edited. "
            f"Here's the result of running `cat -n` on a snippet of {path}:\n{shown}\n"
            "Review the changes and make sure they are as expected. "
            "Edit the file again if necessary."
        )

    def submit(self) -> str:
        return "Submitted."

    def passes_hidden_tests(self) -> bool:
        """Copy the hidden tests in and run them: the outcome of the rollout."""
        shutil.copytree(HERE / "hidden_tests", self.root / "hidden_tests")
        pytest = [sys.executable, "-m", "pytest", "-q", "--tb=no", "hidden_tests"]
        output, code = self.run(pytest)
        if code not in (0, 1):
            raise RuntimeError(f"the hidden tests did not run (pytest exit code {code}):\n{output}")
        return code == 0


def _numbered(text: str, first: int = 1, last: int = -1) -> str:
    """Number the lines ``first`` to ``last`` (-1: the end) as ``cat -n`` does."""
    lines = text.splitlines()
    last = len(lines) if last == -1 else min(last, len(lines))
    return "\n".join(f"{n:6}\t{lines[n - 1]}" for n in range(first, last + 1))


# --- The recording -------------------------------------------------------------------------------


def record(name: str) -> dict[str, Any]:
    """Play one strategy in a workspace of its own and return its rollout."""
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": SYSTEM},
        {"role": "user", "content": (HERE / "issue.md").read_text()},
    ]
    turns = STRATEGIES[name]
    with tempfile.TemporaryDirectory() as folder:
        workspace = Workspace(Path(folder).resolve())
        for number, turn in enumerate(turns, start=1):
            message: dict[str, Any] = {"role": "assistant", "content": turn.thought}
            messages.append(message)
            if turn.tool is None:
                if turn is not turns[-1]:
                    messages.append({"role": "user", "content": NUDGE})
                continue
            call_id = f"call_{number}"
            function = {"name": turn.tool, "arguments": json.dumps(turn.arguments)}
            message["tool_calls"] = [{"id": call_id, "type": "function", "function": function}]
            tool: Callable[..., str] = getattr(workspace, turn.tool)
            observation = tool(**turn.arguments)
            messages.append({"role": "tool", "tool_call_id": call_id, "content": observation})
        passed = workspace.passes_hidden_tests()
    python = ".".join(platform.python_version_tuple()[:2])
    return {
        "problem_id": PROBLEM,
        "rollout_id": name,
        "model": "scripted",
        "reward": 1.0 if passed else 0.0,
        "status": "submitted" if turns[-1].tool == "submit" else "gave_up",
        "root": ROOT,
        "persistent_shell": False,
        "info": {"python": python, "pytest": version("pytest")},
        "messages": messages,
    }


def write(path: Path, rollouts: list[dict[str, Any]]) -> None:
    """Write one line per rollout; whoever reads meanwhile sees the old file or the new one."""
    lines = [json.dumps(rollout, ensure_ascii=False) + "\n" for rollout in rollouts]
    partial = path.with_name(path.name + ".part")
    partial.write_text("".join(lines), encoding="utf-8")
    partial.replace(path)


def main() -> None:
    about, _, _ = (__doc__ or "").partition("\n")
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        type=Path,
        default=HERE / "group.jsonl",
        help="where to write the rollouts (default: group.jsonl beside this script)",
    )
    output: Path = parser.parse_args().output
    with ProcessPoolExecutor() as pool:
        rollouts = list(pool.map(record, STRATEGIES))
    for rollout in rollouts:
        name, turns = rollout["rollout_id"], STRATEGIES[rollout["rollout_id"]]
        print(f"{name:<13}{len(turns):>3} steps  {'passed' if rollout['reward'] else 'failed'}")
    write(output, rollouts)
    print(f"wrote {output}")


if __name__ == "__main__":
    main()
