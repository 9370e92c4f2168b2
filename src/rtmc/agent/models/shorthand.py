"""A chat of few words, for a model of few parameters that plays ``tiny``.

The model reads and writes one token a word. What a tool says is shortened to the words it knows:
a file loses brackets and filler, a remark is written as the code it tells of, an edit becomes
``ok``, a run of pytest the names that failed and the counts. What the model writes is spelled out
to the call of a tool: ``view farm end`` becomes a call of the editor, ``replace farm a = x - y by
a = x + y end`` another. Any sequence of words has a text, so that the model can be wrong in every
way that a larger one can.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from rtmc.agent.models.base import Message
from rtmc.errors import FormatError

__all__ = ["ACTIONS", "END", "FILE", "GO", "LINE", "PAD", "Shorthand", "code"]

FILE = "shorthand.json"
"""The words, in the folder of a checkpoint."""

PAD, UNKNOWN, NUMBER, GO, END, LINE = "<pad>", "<unknown>", "<number>", "go", "end", "<line>"
ACTIONS = ("search", "view", "replace", "undo", "test", "finish")
CODE = "= return + - * max min if > else #".split()
SYMBOLS = {
    "plus": "+", "minus": "-", "times": "*", "larger": "max", "smaller": "min", "over": ">",
}  # fmt: skip
"""What remarks say in words: to the model it is the same."""
SPOKEN = {symbol: word for word, symbol in SYMBOLS.items()}
SAID = "def from import by ok error repeated failed passed issue".split()
VARIABLES = tuple("xyabcdefg")
NUMBERS = tuple(str(number) for number in range(100))

MOST = 240
"""Words of one observation at most."""

_WORD = re.compile(r"[A-Za-z_]+|\d+|[-+*=>#]")
_NUMBERED = re.compile(r"\s*\d+\t(.*)")
_FOUND = re.compile(r"(\w+)\.py:\d+:(.*)")
_FAILED = re.compile(r"FAILED \S+::test_(\w+)")
_COUNT = re.compile(r"(\d+) (failed|passed|error)")
_SUMMARY = re.compile(r"^(\d+ (failed|passed|errors?)(, )?)+ in ", re.MULTILINE)
_TOLD = (
    (re.compile(r"edited \S+; it reads now:|took back "), ["ok"]),
    (re.compile(r"old_str occurs \d+ times"), ["error", "repeated"]),
    (re.compile(r"old_str |there is no |.*does not exist|That |\s*no tests ran"), ["error"]),
)


class Shorthand:
    """The chat: a list of words, and how they stand for texts."""

    def __init__(self, words: Sequence[str]) -> None:
        """Take the vocabulary; a word's token is its place."""
        self.words = tuple(words)
        self.ids = {word: number for number, word in enumerate(words)}
        self.stop_ids = frozenset[int]()  # a turn ends with the text of the word ``end``

    @classmethod
    def of(cls, names: Iterable[str]) -> "Shorthand":
        """Make the vocabulary.

        Args:
            names: of modules and functions.
        """
        known = (PAD, UNKNOWN, NUMBER, GO, END, LINE, *ACTIONS, *CODE, *SAID, *VARIABLES, *NUMBERS)
        return cls([*known, *names])

    @classmethod
    def load(cls, folder: Path) -> "Shorthand":
        """Read the vocabulary of a checkpoint.

        Raises:
            FormatError: the file is no list of words.
        """
        path = folder / FILE
        try:
            words = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise FormatError(f"{path}: {error}; expected a JSON list of words") from error
        if not (isinstance(words, list) and len(set(map(str, words))) == len(words)):
            raise FormatError(f"{path}: expected a JSON list of words, each once")
        return cls(words)

    def save(self, folder: Path) -> None:
        """Write the vocabulary."""
        text = json.dumps(self.words, ensure_ascii=False)
        (folder / FILE).write_text(f"{text}\n", encoding="utf-8")

    def begin(self, messages: Sequence[Message]) -> list[int]:
        """Shorten the issue; what the system says is the same for all, and left out."""
        return self.encode(["issue", *self.words_in(_text(messages[-1])), GO])

    def go_on(self, messages: Sequence[Message], last: int) -> list[int]:
        """Shorten what came back."""
        words = [word for message in messages for word in self.shorten(_text(message))]
        return self.encode([*words[:MOST], GO])

    def decode(self, ids: Sequence[int]) -> str:
        """Spell out what the model wrote."""
        words = [self.words[id] if id < len(self.words) else UNKNOWN for id in ids]
        return "".join(_spelled(turn, ended) for turn, ended in _turns(words))

    def encode(self, words: Iterable[str]) -> list[int]:
        """Give the tokens of words."""
        unknown = self.ids[UNKNOWN]
        return [self.ids.get(word, unknown) for word in words]

    def shorten(self, text: str) -> list[str]:
        """Give the words of an observation, ``error`` where it has none."""
        for pattern, words in _TOLD:
            if pattern.match(text):
                return words
        if _SUMMARY.search(text):
            return list(self._run(text))
        words = []
        for line in text.split("\n"):
            if numbered := _NUMBERED.fullmatch(line):
                row = self.words_in(numbered[1])
            elif found := _FOUND.match(line):
                row = self.words_in(f"{found[1]} {found[2]}")
            else:
                row = self.words_in(line.removesuffix(".py"))
            words += [LINE, *row] if row else []
        return words or ["error"]

    def _run(self, text: str) -> Iterator[str]:
        """Shorten a run of pytest."""
        for name in _FAILED.findall(text):
            yield "failed"
            yield from self.words_in(name)
        for count, outcome in _COUNT.findall(text[_SUMMARY.search(text).start() :]):  # ty: ignore
            yield from self.words_in(count)
            yield outcome

    def words_in(self, text: str) -> list[str]:
        """List the words of a text that the model knows; a number it does not know is named so."""
        found = [SYMBOLS.get(word, word) for word in _WORD.findall(text)]
        return [
            word if word in self.ids else NUMBER
            for word in found
            if word in self.ids or word.isdigit()
        ]


def _text(message: Message) -> str:
    return str(message.get("content") or "")


def _turns(words: list[str]) -> Iterator[tuple[list[str], bool]]:
    """Split at ``end``; say whether a part was ended."""
    turn: list[str] = []
    for word in words:
        if word == END:
            yield turn, True
            turn = []
        else:
            turn.append(word)
    if turn:
        yield turn, False


def _spelled(turn: list[str], ended: bool) -> str:
    """Write a turn as the call that it stands for, without its end where it was not ended."""
    at = next((at for at, word in enumerate(turn) if word in ACTIONS), len(turn))
    said, action, words = " ".join(turn[:at]), turn[at : at + 1], turn[at + 1 :]
    if not action:
        return f"{said}</function>" if ended else said
    name, arguments = _CALLS[action[0]](words)
    rows = "".join(f"<parameter={key}>{value}</parameter>\n" for key, value in arguments.items())
    return f"{said}<function={name}>\n{rows}{'</function>' if ended else ''}"


Call = tuple[str, dict[str, str]]


def _search(words: list[str]) -> Call:
    return "search", {"pattern": f"def {' '.join(words)}"}


def _view(words: list[str]) -> Call:
    return _editor("view", words)


def _replace(words: list[str]) -> Call:
    at = words.index("by") if "by" in words else len(words)
    name, arguments = _editor("str_replace", words[: min(at, 1)])
    parts = {"old_str": code(words[1:at]), "new_str": code(words[at + 1 :])}
    return name, arguments | parts


def _undo(words: list[str]) -> Call:
    return _editor("undo_edit", words)


def _editor(command: str, words: list[str]) -> Call:
    path = f"{' '.join(words)}.py" if words else "."
    return "str_replace_editor", {"command": command, "path": path}


def _test(words: list[str]) -> Call:
    return "bash", {"command": " ".join(["pytest -q", *(f"test_{word}.py" for word in words)])}


def _finish(words: list[str]) -> Call:
    return "finish", {}


_CALLS: dict[str, Callable[[list[str]], Call]] = {
    "search": _search,
    "view": _view,
    "replace": _replace,
    "undo": _undo,
    "test": _test,
    "finish": _finish,
}


def code(words: Sequence[str]) -> str:
    """Write lines of code and their remarks as they stand in a file, the first without indent."""
    lines: list[list[str]] = [[]]
    for word in words:
        if word == LINE:
            lines.append([])
        else:
            lines[-1].append(word)
    return "\n    ".join(map(_line, lines))


def _line(words: list[str]) -> str:
    at = words.index("#") if "#" in words else len(words)
    written = _called(words[:at])
    return f"{written}  # {_remark(words[at + 1 :])}" if at < len(words) else written


def _called(words: list[str]) -> str:
    """Put brackets around what follows the name of a function."""
    for at, word in enumerate(words):
        if _is_name(word):
            return " ".join([*words[:at], f"{word}({', '.join(words[at + 1 :])})"])
    return " ".join(words)


def _remark(words: list[str]) -> str:
    """Say in words what should stand there."""
    if len(words) == 7 and words[1] == "if" and words[3] == ">":
        first, _, second, _, third, _, fourth = words
        return f"{first} if {second} is over {third}, else {fourth}"
    spoken = [SPOKEN.get(word, word) for word in words]
    if words and _is_name(words[0]):
        return f"the {spoken[0]} of {' and '.join(spoken[1:])}"
    return " ".join(spoken)


def _is_name(word: str) -> bool:
    """Say whether it is the name of a function."""
    return word in ("max", "min") or (
        word.isalpha() and len(word) > 1 and word not in CODE and word not in SAID
    )
