"""Name what one call did: the vocabulary of action signatures.

    category[:scope]@target[:result]

An ``Effect`` is one such thing. ``action_key`` writes the effects of a whole step as its action
key; ``coarse`` drops digest, bucket and result.
"""

import hashlib
from collections.abc import Sequence

from msgspec import Struct

__all__ = ["Effect", "action_key", "detail_key", "digest", "edit_digest"]


_EMPTY = hashlib.blake2b(digest_size=8)


def digest(text: str) -> str:
    """Digest a text to 64 bits, 16 hexadecimal digits."""
    state = _EMPTY.copy()  # faster than a new one
    state.update(text.encode("utf-8", "surrogatepass"))
    return state.hexdigest()


def _trim(text: str) -> str:
    """Strip blank lines at both ends, and normalise line endings."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    inner = text.strip()
    if not inner:
        return ""
    start = text.rfind("\n", 0, text.index(inner[0])) + 1
    end = text.find("\n", text.rindex(inner[-1]))
    return text[start : end if end >= 0 else len(text)]


def edit_digest(new: str, old: str | None = None) -> str:
    """Digest an edit: of old and new text where both are known, else of the new text."""
    return digest(_trim(new) if not old else f"{_trim(old)}\0{_trim(new)}")


class Effect(Struct, frozen=True, gc=False):
    """One thing that a step did.

    Attributes:
        kind: view search modify create delete restore test execute think finish noop malformed.
        target: normalised path, test target or program; empty where there is none.
        scope: of a view ``full  partial[1-2]  partial[3-]  partial[tail]  dir  output``; of a
            modify the verb (``replace``, ``insert``), for display only.
        digest: identity of the text written, or of the command run; 16 hex digits.
        result: ``pass fail error`` of a test, ``ok err timeout`` of a run, ``err`` of what was
            refused; empty where it is unknown.
        detail: what enters only the ``full`` level (a search pattern, a program's arguments).
        runs_code: the run is a validation: it runs project code.
    """

    kind: str
    target: str = ""
    scope: str = ""
    digest: str = ""
    result: str = ""
    detail: str = ""
    runs_code: bool = False

    @property
    def refused(self) -> bool:
        """A refused effect changed nothing and showed nothing."""
        return self.result == "err" and self.kind not in ("test", "execute")

    def key(self, hash_chars: int = 16, verb: bool = False) -> str:
        """Write the effect's key, with digests of ``hash_chars`` digits.

        ``verb`` adds replace or insert for display: the same change has one identity, whichever
        tool made it.
        """
        text = self.kind
        if text == "view":
            text = "view:" + self.scope
        elif self.kind == "modify" and verb:
            text += ":" + self.scope
        if self.digest:
            text += ":" + self.digest[:hash_chars]
        if self.target:
            text += "@" + self.target
        return f"{text}:{self.result}" if self.result else text

    def coarse(self) -> str:
        """Write the effect's key without digest, bucket and result."""
        return f"{self.kind}@{self.target}" if self.target else self.kind


def action_key(effects: Sequence[Effect], hash_chars: int = 16, verb: bool = False) -> str:
    """Write a step's action key: its effects in order, without noops unless there is no other."""
    if len(effects) == 1:
        return effects[0].key(hash_chars, verb)
    return " + ".join(e.key(hash_chars, verb) for e in effects if e.kind != "noop") or "noop"


def coarse_key(effects: Sequence[Effect]) -> str:
    """Write a step's action key for the level ``coarse``."""
    return " + ".join(e.coarse() for e in effects if e.kind != "noop") or "noop"


def detail_key(effects: Sequence[Effect]) -> str:
    """Write what tells steps apart at the level ``full``: key and detail of every effect."""
    return "\n".join(f"{e.key()}\t{e.detail}" for e in effects)
