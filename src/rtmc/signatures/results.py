"""Read off an observation what a command came to: tests passed, an edit was refused.

Nothing else of an observation enters a key, so volatile text (durations, addresses, dates) does
no harm here; ``scrub`` removes it from commands.
"""

import re

__all__ = ["clean", "is_refusal", "missing_files", "scrub", "test_results", "timed_out"]

_CONTROL = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[@-Z\\-_]")
_OVERWRITTEN = re.compile(r"[^\n\x08]\x08")


def clean(text: str) -> str:
    """Remove ANSI codes, carriage returns and what backspaces have overwritten."""
    if "\x1b" in text:
        text = _CONTROL.sub("", text)
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    while "\x08" in text:
        shorter = _OVERWRITTEN.sub("", text)
        text = shorter if shorter != text else text.replace("\x08", "")
    return text


# --- volatile text in commands -----------------------------------------------------------------

_VOLATILE = (
    (re.compile(r"\b0x[0-9a-fA-F]{4,}\b"), "0x*"),
    (re.compile(r"/tmp/tmp[.\w-]{4,}"), "/tmp/tmp*"),
    (re.compile(r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?Z?)?\b"), "<date>"),
    (re.compile(r"(?<=[\w\]]):\d{2,5}(?=/|\s|$|['\"])"), ":<port>"),
    (re.compile(r"((?:--?port[= ]|\bport=|\bPORT=))\d{2,5}\b"), r"\1<port>"),
    (re.compile(r"((?:^|\s)(?:kill|wait)(?:\s+-\w+)*(?:\s+\d+)+)"), "kill <pid>"),
    (re.compile(r"((?:--pid[= ]|\s-p )\s*)\d{2,7}\b"), r"\1<pid>"),
    (re.compile(r"\b\d+(?:\.\d+)?(?:ms|s)\b"), "<time>"),
)


_DIGIT = re.compile("[0-9]")
_MAY_BE_VOLATILE = re.compile(
    r"0x|/tmp/tmp|\d{4}-\d|:\d\d|port|PORT|kill|wait|pid|-p \d|\d(?:ms|s)\b"
)


def scrub(command: str) -> str:
    """Replace addresses, temporary paths, dates, ports, process ids and durations by marks."""
    if not _DIGIT.search(command) and "/tmp/tmp" not in command:
        return command
    if not _MAY_BE_VOLATILE.search(command):
        return command
    for pattern, mark in _VOLATILE:
        command = pattern.sub(mark, command)
    return command


# --- test runners ------------------------------------------------------------------------------

# One alternative per runner's own summary line; what they count decides, see _result. A line's
# start is looked for as a literal, and an alternative that begins with a character or a set of
# them is passed over without being tried: both save most of the time.
_SUMMARY = re.compile(
    r"""
    \n(?:
    = =*[ ](?:[^\n=]*?\b\d+[ ](?:passed|failed|errors?|exceptions?|skipped|deselected
        |xfailed|xpassed|warnings?)|no\ tests\ ran)\b[^\n]*(?P<pytest>)
  | (?:\d+[ ](?:passed|failed|errors?|skipped|deselected|xfailed|xpassed|warnings?)
        (?:,[ ])?)+[ ]in[ ][\d.:]+s?(?P<quiet>)[^\n]*$
  | no[ ]tests[ ]ran[ ]in[ ](?P<none>)[^\n]*$
  | Ran[ ](?P<ran>\d+)[ ]tests?[ ]in[ ][^\n]*\n\s*\n?
        (?P<unittest>OK|FAILED|NO[ ]TESTS[ ]RAN)[^\n]*$
  | test[ ]result:[ ](?P<cargo>ok|FAILED)\.
  | T(?:est[ ]Suites:[^\n]*\nT)?ests:[ ]+[^\n]*\btotal\b(?P<jest>)
  | [ ]*Tests[ ]{2,}[^\n]*\d+[ ](?:passed|failed)(?P<vitest>)[^\n]*$
  | [oF](?P<go>k|AIL)[ \t]+\S+(?:[ \t]+(?:[\d.]+s|\(cached\)|\[build[ ]failed\])|$)
  | \#[ ]fail[ ]+(?P<tap>\d+)$
  | \W*+(?i:(?:tests?[ ])?passed:?[ ]+(?P<good>\d+)[ ]?/[ ]?(?P<of>\d+)
        |(?P<good2>\d+)[ ]?/[ ]?(?P<of2>\d+)[ ](?:tests[ ])?passed)\b[^\n]*$
    )
    """,
    re.VERBOSE | re.MULTILINE,
)
_COUNT = re.compile(r"(\d+) (passed|failed|error|errors|exceptions?)\b")
_NO_PYTEST = re.compile(r"No module named '?pytest\b")
_RAN_NOTHING = (
    "ERROR: file or directory not found",
    "ImportError while loading conftest",
    "error: unrecognized arguments",
    "command not found",
)


def test_results(output: str) -> list[str]:
    """Read the runners' own summaries, in order: ``pass``, ``fail`` or ``error`` each.

    cargo and go print one a binary or package; together they pass if each does.
    """
    found: list[str] = []
    parts: list[str] = []
    for match in _SUMMARY.finditer("\n" + output):
        result = _result(match)
        if match.lastgroup in ("cargo", "go"):
            parts.append(result)
        elif result:
            found.append(result)
    if parts:
        found.append("pass" if set(parts) == {"pass"} else "fail")
    if not found and (_NO_PYTEST.search(output) or any(words in output for words in _RAN_NOTHING)):
        found.append("error")
    return found


def _result(match: re.Match[str]) -> str:
    match match.lastgroup:
        case "unittest":
            if match["ran"] == "0" or match["unittest"].startswith("NO"):
                return "error"
            return "pass" if match["unittest"] == "OK" else "fail"
        case "of":
            return "pass" if int(match["good"]) == int(match["of"]) else "fail"
        case "of2":
            return "pass" if int(match["good2"]) == int(match["of2"]) else "fail"
        case "cargo" | "go":
            return "pass" if match["cargo"] == "ok" or match["go"] == "k" else "fail"
        case "tap":
            return "fail" if int(match["tap"]) else "pass"
    return _counted(match[0])


def _counted(text: str) -> str:
    """Read a summary that counts the outcomes."""
    counts: dict[str, int] = {}
    for number, word in _COUNT.findall(text):
        counts[word.rstrip("s")] = counts.get(word.rstrip("s"), 0) + int(number)
    if counts.get("failed") or counts.get("exception"):
        return "fail"
    if counts.get("error") or "no tests ran" in text:
        return "error"
    if counts.get("passed"):
        return "pass"
    # everything skipped or expected to fail passes; everything deselected ran nothing
    if "deselected" in text:
        return "error"
    return "pass" if "skipped" in text or "xfailed" in text else ""


# --- refusals ----------------------------------------------------------------------------------

_REFUSED = re.compile(
    r"""^\s*(?:
        ERROR: | Error: | error: | Invalid\b | No[ ]replacement[ ]was | Multiple[ ]occurrences
      | Your[ ]proposed[ ]edit[ ]has[ ]introduced | No[ ]match[ ]found | No[ ]occurrences
      | File[ ](?:\S+[ ])?(?:not[ ]found|does[ ]not[ ]exist|has[ ]not[ ]been[ ]read)
      | String[ ]to[ ]replace[ ]not[ ]found
      | Found[ ]\d+[ ]matches[ ]of[ ]the[ ]string[ ]to[ ]replace
      | No[ ]file[ ]open | No[ ]changes[ ]to[ ]make | The[ ]path[ ]\S+[ ]does[ ]not[ ]exist
      | Usage: | <tool_use_error> | Text[ ]not[ ]found | Path[ ](?:not[ ]found|does[ ]not)
      | InputValidationError | \[?ERROR\b | Cannot[ ] | No[ ]edit[ ]history[ ]found
      | old_str[ ]and[ ]new_str | Parameter[ ]`
    )""",
    re.VERBOSE,
)


def is_refusal(output: str) -> bool:
    """Tell whether an editor or viewer answered, in its first words, that it did nothing."""
    return bool(_REFUSED.match(output))


_MISSING = re.compile(
    r"^(?:\w+: )?(?:line \d+: )?(?:[\w./-]+: )?(?:can't read |cannot open |cannot access |"
    r"can't open file |cannot stat |cannot remove )?['\"‘]?(?P<path>[^\n'\"’:]+?)['\"’]?"
    r"(?: for reading)?: (?:\[Errno 2\] )?No such file or directory",
    re.MULTILINE,
)


def missing_files(output: str) -> set[str]:
    """Collect the paths of which a command said that there is no such file."""
    if "No such file" not in output:
        return set()
    return {match["path"] for match in _MISSING.finditer(output)}


_TIMED_OUT = re.compile(
    r"timed out after \d|EXECUTION TIMED OUT|TimeoutExpired|command timed out|Command timed out"
    r"|no change in (?:output|terminal) .{0,20}seconds|was killed because it (?:exceeded|timed)",
)


def timed_out(output: str) -> bool:
    """Tell whether the harness says in an observation's first or last lines that it gave up."""
    return bool(_TIMED_OUT.search(output[:300]) or _TIMED_OUT.search(output[-600:]))
