"""Turn the effects so far into a state key: what has been done, not in which order.

Levels, from coarse to fine (they are not nested by themselves):

    root     one state
    work     kinds of change per file, and test results seen; no views, no searches
    content  what the code is now, and the result of the last test since the last change
    coarse   kinds of operation per file, without digests, buckets and results
    paper    the set of operations per file, and what else has happened with which result
    full     the chained history of action keys: the prefix tree

``paper`` follows Table 1 of "RTMC: Step-Level Credit Assignment via Rollout Trees" (arXiv
2604.11037) as re-implementations render it:

    core.py:M:a3f2,V[1-2],Vf|new.py:C|(test:fail,test:pass,think)

Deviations from the paper:
1. Operations of a file are a sorted set (the paper speaks of ordered sets).
2. Finishes are counted, so that a rollout that goes on after one is elsewhere.
3. What was refused, a noop and a malformed call leave the state alone.
"""

from bisect import insort
from collections.abc import Sequence
from fnmatch import fnmatchcase

from rtmc.signatures.effects import Effect, detail_key, digest
from rtmc.signatures.paths import under

__all__ = ["LEVELS", "STANDINGS", "START", "Progress"]

LEVELS = ("root", "work", "content", "coarse", "paper", "full")
START = "start"
STANDINGS = ("unchanged", "untested", "passed", "failed")
"""How the work stands: no change yet; else the last test since the last change."""

_LETTER = {"view": "V", "search": "S", "modify": "M", "create": "C", "delete": "D", "restore": "R"}
_CHANGES = frozenset(("modify", "create", "delete", "restore"))
_LEAVES_NO_TRACE = frozenset(("noop", "malformed"))


class Progress:
    """What one rollout has done so far.

    ``key(level)`` is the state in which the next step acts; ``apply`` takes that step's effects.

    Args:
        levels: for which keys are wanted; only those are kept.
        hash_chars: hex digits of a digest.
    """

    def __init__(self, levels: Sequence[str] = LEVELS, hash_chars: int = 16) -> None:
        self.levels = levels
        self.hash_chars = hash_chars
        self._operations = {
            level: _Operations() for level in levels if level in ("work", "coarse", "paper")
        }
        self._has_content = "content" in levels
        self._has_full = "full" in levels
        self.steps = 0
        self.finishes = 0
        self.created: set[str] = set()
        self._content: dict[str, list[str]] = {}
        self._last_test = ""
        self._chain = digest("")
        self._unvalidated = False

    def key(self, level: str) -> str:
        """Write the state's key at one level."""
        operations = self._operations.get(level)
        if operations is not None:
            return operations.key()
        if level == "content" and self._has_content:
            return self._content_key()
        if level == "full" and self._has_full:
            return f"{self.steps}:{self._chain}"
        if level == "root":
            return "root"
        raise ValueError(f"level {level!r} is unknown, or was not asked for")

    def keys(self) -> tuple[str, ...]:
        """Write the state's keys at all levels asked for."""
        return tuple([self.key(level) for level in self.levels])

    @property
    def standing(self) -> int:
        """Which of ``STANDINGS`` holds; a test that did not pass has failed."""
        if not self._content:
            return 0
        return 1 if not self._last_test else 2 if self._last_test == "pass" else 3

    def apply(self, effects: Sequence[Effect]) -> int:
        """Take a step's effects; return how many code changes it validated for the first time.

        A validation is a test, or a run of project code, after a successful modify of a file
        that this rollout did not create.
        """
        validated = 0
        for effect in effects:
            kind = effect.kind
            if kind == "test" or (kind == "execute" and effect.runs_code):
                validated += self._unvalidated
                self._unvalidated = False
            if kind in _LEAVES_NO_TRACE or (effect.result == "err" and effect.refused):
                continue
            if kind == "modify" and effect.target not in self.created:
                self._unvalidated = True
            if kind == "finish":
                self._finish()
            elif kind in _LETTER:
                self._on_file(effect)
            else:
                self._flag(effect)
        self.steps += 1
        if self._has_full:
            self._chain = digest(f"{self._chain}\n{detail_key(effects)}")
        return validated

    def _finish(self) -> None:
        self.finishes += 1
        for operations in self._operations.values():
            operations.replace_flag(f"finish×{self.finishes - 1}", f"finish×{self.finishes}")

    def _flag(self, effect: Effect) -> None:
        kind, result = effect.kind, effect.result
        flag = f"{kind}:{result}" if result else kind
        for level, operations in self._operations.items():
            if level == "coarse":
                operations.flag(kind)
            elif level == "paper" or kind == "test":
                operations.flag(flag)
        if kind == "test":
            self._last_test = result or self._last_test

    def _on_file(self, effect: Effect) -> None:
        kind, path, scope = effect.kind, effect.target, effect.scope
        if scope == "output" and kind == "view":
            self._flag(effect)
            return
        letter = _LETTER[kind]
        changes = kind in _CHANGES
        for level, operations in self._operations.items():
            if level == "paper":
                fine = letter
                if kind == "view":
                    fine += scope[7:] if scope.startswith("partial") else scope[0]
                elif kind == "modify":
                    fine += ":" + effect.digest[: self.hash_chars]
                operations.add(path, fine)
            elif level == "coarse" or changes:
                operations.add(path, letter)
        if changes:
            self._change(effect)

    # what the code is now

    def _change(self, effect: Effect) -> None:
        kind, path, content = effect.kind, effect.target, self._content
        self._last_test = ""
        identity = effect.digest[: self.hash_chars]
        if kind == "modify":
            content.setdefault(path, []).append(identity)
        elif kind == "create":
            self.created.add(path)
            content[path] = [f"+{identity}"]
        elif kind == "restore" and effect.scope == "undo":
            edits = content.get(path)
            if edits:
                edits.pop()
            if not edits:
                content.pop(path, None)
                self.created.discard(path)
        else:
            self._clear(path, gone=kind == "delete")

    def _clear(self, path: str, gone: bool) -> None:
        """Restore or delete a file, a folder or a pattern."""
        is_pattern = "*" in path or "?" in path
        matched = [
            name
            for name in self._content
            if under(name, path) or (is_pattern and fnmatchcase(name, path))
        ]
        was_created = path in self.created
        for name in matched:
            if gone and name not in self.created:
                self._content[name] = ["-"]
            else:
                del self._content[name]
        if gone:
            if not matched and not was_created:
                self._content[path] = ["-"]
            self.created.difference_update(matched)
            self.created.discard(path)

    def _content_key(self) -> str:
        parts = [f"{path}:{','.join(self._content[path])}" for path in sorted(self._content)]
        flags = []
        if self.finishes:
            flags.append(f"finish×{self.finishes}")
        if self._last_test:
            flags.append(f"test:{self._last_test}")
        if flags:
            parts.append(f"({','.join(flags)})")
        return "|".join(parts) or START


class _Operations:
    """Sets of operations by file, and flags; the key is written anew only after a change."""

    def __init__(self) -> None:
        self._of_file: dict[str, set[str]] = {}
        self._files: list[str] = []  # sorted
        self._text_of: dict[str, str] = {}
        self._flags: set[str] = set()
        self._key: str | None = START

    def add(self, path: str, operation: str) -> None:
        operations = self._of_file.get(path)
        if operations is None:
            operations = self._of_file[path] = set()
            insort(self._files, path)
        if operation not in operations:
            operations.add(operation)
            self._text_of[path] = f"{path}:{','.join(sorted(operations))}"
            self._key = None

    def flag(self, flag: str) -> None:
        if flag not in self._flags:
            self._flags.add(flag)
            self._key = None

    def replace_flag(self, old: str, new: str) -> None:
        self._flags.discard(old)
        self.flag(new)

    def key(self) -> str:
        if self._key is None:
            parts = [self._text_of[path] for path in self._files]
            if self._flags:
                parts.append(f"({','.join(sorted(self._flags))})")
            self._key = "|".join(parts)
        return self._key
