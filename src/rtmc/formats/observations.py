"""Take the harness's own wrapping off an observation, and read what it says.

    OpenHands       EXECUTION RESULT of [tool]: … [The command completed with exit code N.] …
    mini-swe-agent  <returncode>N</returncode> <output>…</output>, or the same as a JSON object
    SWE-smith       OBSERVATION: …
    R2E-Gym         Exit code: N / Execution output of [tool]: …

The text that the command or tool printed stays as it is.
"""

import re

import msgspec

__all__ = ["FINISH_MARKERS", "Observed", "mini_wrapped", "observe"]

FINISH_MARKERS = ("COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT", "MINI_SWE_AGENT_FINAL_OUTPUT")
"""What mini-swe-agent echoes to end; nothing runs then, so no return code is recorded."""


class Observed(msgspec.Struct, frozen=True, gc=False):
    """What came back from one call.

    ``cwd`` is the directory after the call. ``fresh_shell`` says that the wrapping is that of
    mini-swe-agent, which starts a new shell for every command.
    """

    output: str
    exit_code: int | None = None
    is_error: bool | None = None
    timed_out: bool = False
    cwd: str | None = None
    fresh_shell: bool = False


_MAX_TRAILER = 2000  # the trailer's lines are short, but they hold paths
_EXIT_CODE = re.compile(r"exit code (-?\d+)")
_CWD = re.compile(r"^\[Current working directory: (.*)\]$", re.MULTILINE)


def observe(text: str) -> Observed:
    """Read the observation ``text`` of whatever harness wrote it."""
    if text.startswith(("<returncode>", "<exception>")):
        return _mini_tags(text)
    if text.startswith("{") and '"returncode"' in text[:80]:
        return _mini_json(text)
    if text.startswith("The last command <command>"):
        return Observed(_inner(text, "output") or "", timed_out=True, fresh_shell=True)
    code = None
    if text.startswith("EXECUTION RESULT of ["):
        text = text.partition("]:\n")[2] or text.partition("]:")[2]
    elif text.startswith("OBSERVATION:"):
        text = text.removeprefix("OBSERVATION:").removeprefix("\n")
    elif text.startswith("Observation: "):
        text = text.removeprefix("Observation: ")
    elif text.startswith("Exit code: "):
        first, _, rest = text.partition("\n")
        if rest.startswith("Execution output of ["):
            code, text = first.removeprefix("Exit code: "), rest.partition("]:\n")[2]
    elif text.startswith("Execution output of ["):
        text = text.partition("]:\n")[2]
    if text.endswith(("]", "]\n")):
        return _openhands_trailer(text)
    return Observed(text, _number(code), timed_out=code == "-1")


def _number(code: str | None) -> int | None:
    """Read an exit code; −1 is the harness's way to say that it has none."""
    return int(code) if code and code != "-1" and code.lstrip("-").isdecimal() else None


def _openhands_trailer(text: str) -> Observed:
    """Cut the bracketed lines that OpenHands appends to what a command printed."""
    tail_at = max(0, len(text) - _MAX_TRAILER)
    starts = [
        at
        for mark in ("[The command ", "[Command finished with exit code ", "[Your command ")
        if (at := text.find(mark, tail_at)) >= 0 and (at == 0 or text[at - 1] == "\n")
    ]
    if not starts:
        return Observed(text)
    at = min(starts)
    trailer = text[at:]
    found = _EXIT_CODE.search(trailer)
    code = found.group(1) if found else None
    cwd = _CWD.search(trailer)
    # "[Your command … is NOT executed": the one before it still occupies the terminal
    refused = trailer.startswith("[Your command ")
    still_runs = code == "-1" or "has no new output after" in trailer
    return Observed(
        text[: max(0, at - 1)],
        _number(code),
        is_error=True if refused else None,
        timed_out=still_runs and not refused,
        cwd=cwd.group(1) if cwd else None,
    )


def mini_wrapped(text: str) -> bool:
    """Tell whether ``text`` is an output of mini-swe-agent that lacks its return code."""
    return text.startswith("<output>") and text.endswith("</output>")


def _inner(text: str, tag: str) -> str | None:
    start = text.find(f"<{tag}>")
    end = text.rfind(f"</{tag}>")
    if start < 0 or end < start:
        return None
    # the template puts one newline behind the opening tag and strips the one before the closing
    return text[start + len(tag) + 2 : end].removeprefix("\n")


def unwrap_output(text: str) -> str:
    """Take the output out of mini-swe-agent's tags, all of it or its two ends."""
    whole = _inner(text, "output")
    if whole is not None:
        return whole
    ends = [_inner(text, tag) for tag in ("output_head", "elided_chars", "output_tail")]
    if ends[0] is None and ends[2] is None:
        return text
    return "".join(part for part in ends if part is not None)


# The template of every observation but those of commands that failed to run or printed too much.
_MINI_TAGS = re.compile(r"<returncode>(-?\d+)</returncode>\n?<output>\n?(.*)</output>", re.DOTALL)


def _mini_tags(text: str) -> Observed:
    if whole := _MINI_TAGS.fullmatch(text):
        return _mini(whole[2], whole[1], None)
    at = text.find("<returncode>")
    if at < 0:
        return _mini("", None, _inner(text, "exception") or text)
    end = text.find("</returncode>", at)
    exception = _inner(text[:at], "exception") if at else None
    body = text[end + len("</returncode>") :].removeprefix("\n")
    return _mini(unwrap_output(body), text[at + len("<returncode>") : end], exception)


class _MiniJson(msgspec.Struct):
    returncode: int | None = None
    output: str | None = None
    output_head: str = ""
    output_tail: str = ""
    elided_chars: int = 0
    exception_info: str | None = None


def _mini_json(text: str) -> Observed:
    try:
        said = msgspec.json.decode(text, type=_MiniJson)
    except msgspec.MsgspecError:
        return Observed(text)
    output = said.output
    if output is None:
        elided = f"\n{said.elided_chars} characters elided\n" if said.elided_chars else ""
        output = said.output_head + elided + said.output_tail
    code = None if said.returncode is None else str(said.returncode)
    return _mini(output, code, said.exception_info)


def _mini(output: str, code: str | None, exception: str | None) -> Observed:
    number = _number(code)
    if exception:
        # −1 is also the code of a command that could not be started
        text = f"{exception}\n{output}" if output else exception
        return Observed(text, number, True, "timed out" in exception, fresh_shell=True)
    return Observed(output, number, None, code == "-1", fresh_shell=True)
