"""Read tool calls that a model writes as text: ``<function=NAME><parameter=x>…</parameter>…``."""

from rtmc.rollouts import ToolCall

__all__ = ["MARK", "xml_calls"]

MARK = "<function="
_END = "</function>"
_PARAMETER = "<parameter="
_PARAMETER_END = "</parameter>"


def xml_calls(text: str) -> tuple[str, list[ToolCall]]:
    """Split a message into the prose before its first call and the calls.

    Values stay text, as the model wrote them. A call without its end (a stop word cuts it off) is
    read to the end of the message; one without parameter tags keeps its text as malformed
    arguments.
    """
    first = text.find(MARK)
    if first < 0:
        return text, []
    calls = []
    at = first
    while at >= 0:
        call, end = _call(text, at + len(MARK))
        calls.append(call)
        at = text.find(MARK, end)
    return text[:first].rstrip(), calls


def _call(text: str, at: int) -> tuple[ToolCall, int]:
    """Read the call whose name starts at ``at``; give it and where it ends."""
    body_at = text.find(">", at) + 1
    name = text[at : body_at - 1] if body_at else ""
    if not body_at or "\n" in name:
        end = _find(text, _END, at)
        return ToolCall("unknown", text[at:end]), end
    arguments: dict[str, str] = {}
    at = body_at
    # parameter by parameter: a value may itself hold "<function="
    while (opened := text.find(_PARAMETER, at)) >= 0:
        if opened > min(_find(text, _END, at), _find(text, MARK, at)):
            break
        key_end = _find(text, ">", opened)
        at = _find(text, _PARAMETER_END, key_end)
        # the newlines beside the tags belong to the notation
        value = text[key_end + 1 : at].removeprefix("\n").removesuffix("\n")
        arguments[text[opened + len(_PARAMETER) : key_end].strip()] = value
    end = min(_find(text, _END, at), _find(text, MARK, at))
    if not arguments and (body := text[body_at:end].strip()):
        return ToolCall(name.strip(), body), end
    return ToolCall(name.strip(), arguments), end


def _find(text: str, mark: str, at: int) -> int:
    found = text.find(mark, at)
    return len(text) if found < 0 else found
