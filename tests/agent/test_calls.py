"""Calls as models write them, natively and in text."""

import pytest

from rtmc.agent.calls import calls_of, describe_in_xml, trouble
from rtmc.agent.tools import TOOLS
from rtmc.rollouts import ToolCall

LS = "<function=bash>\n<parameter=command>ls</parameter>\n</function>"


@pytest.mark.parametrize(
    ("text", "said", "calls"),
    [
        ("only words", "only words", []),
        ("", "", []),
        (f"Look.\n{LS}", "Look.", [("bash", {"command": "ls"})]),
        (f"{LS}\n{LS}", "", [("bash", {"command": "ls"})] * 2),
        ("<function=finish></function>", "", [("finish", {})]),
        # a stop word took the end away
        ("<function=bash><parameter=command>ls", "", [("bash", {"command": "ls"})]),
        ("<function=bash>ls</function>", "", [("bash", "ls")]),
        ("<function=bash", "", [("unknown", "bash")]),
        ("a \ud800 b", "a ? b", []),
    ],
)
def test_calls_in_text(text, said, calls):
    assert calls_of(text) == (said, tuple(ToolCall(*call) for call in calls))


@pytest.mark.parametrize(
    ("text", "last"),
    [
        (LS + " and", {"command": "ls"}),  # the call had ended
        (LS, {"command": "ls"}),
        (LS[:-1], LS[:-1]),
        (LS[:-12], LS[:-12]),  # another parameter could follow
        (LS[:-14], LS[:-14]),
        (LS[:-25], LS[:-25]),
        (LS[:30], LS[:30]),
        ("<function=bash>", "<function=bash>"),
        ("<function=ba", "<function=ba"),
    ],
)
def test_a_call_that_was_cut_off_is_malformed(text, last):
    _, calls = calls_of(f"{LS}\n{text}", cut=True)
    assert calls[0].arguments == {"command": "ls"}
    assert calls[-1].arguments == last
    assert len(calls) == 2


@pytest.mark.parametrize(
    ("call", "read"),
    [
        ({"name": "bash", "arguments": '{"command": "ls"}'}, ("bash", {"command": "ls"})),
        ({"name": "bash", "arguments": {"command": "ls"}}, ("bash", {"command": "ls"})),
        ({"name": "finish", "arguments": ""}, ("finish", {})),
        ({"name": "finish", "arguments": None}, ("finish", {})),
        ({"name": "finish"}, ("finish", {})),
        ({"name": "bash", "arguments": '{"command": "l'}, ("bash", '{"command": "l')),
        ({"name": "bash", "arguments": '["ls"]'}, ("bash", '["ls"]')),
        ({"name": "bash", "arguments": ["ls"]}, ("bash", '["ls"]')),
        ({"name": "bash", "arguments": '{"command": "\\ud800"}'},
         ("bash", '{"command": "\\ud800"}')),
        ({"name": "bash", "arguments": {"command": "\ud800"}}, ("bash", "{'command': '\\ud800'}")),
        ({"name": "bash", "arguments": '{"a":' + "[" * 10**5}, ("bash", '{"a":' + "[" * 10**5)),
        ({"name": "bash", "arguments": '{"a": 1e999}'}, ("bash", '{"a": 1e999}')),
        ({"name": None, "arguments": "{}"}, ("", {})),
        ({}, ("", {})),
    ],
)  # fmt: skip
def test_native_calls(call, read):
    assert calls_of("said " + LS, [call]) == ("said " + LS, (ToolCall(*read),))


@pytest.mark.parametrize(
    ("call", "cut", "text"),
    [
        (ToolCall("bash", {"command": "ls"}), False, None),
        (ToolCall("bash", {"command": "ls"}), True, None),
        (ToolCall("Read", {"path": "x"}), False,
         "there is no tool 'Read'; the tools are str_replace_editor, search, bash, think, finish"),
        (ToolCall("bash", '{"command": "l'), False,
         "the arguments of bash could not be read: '{\"command\": \"l'; expected a JSON object, "
         "or <parameter=KEY>VALUE</parameter> in text; bash takes command"),
        (ToolCall("bash", '{"command": "l'), True,
         "the call of bash was cut off at the limit of a turn, and not carried out; "
         "write less at once"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_call(call, cut, text):
    assert trouble(call, TOOLS, cut) == text


def test_the_tools_in_text():
    text = describe_in_xml({"search": TOOLS["search"], "bash": TOOLS["bash"]})
    assert text == (
        "Call a tool as\n<function=NAME>\n<parameter=KEY>VALUE</parameter>\n</function>\n"
        "The tools:\n"
        "\nsearch: Find lines that match a pattern.\n"
        "  pattern: A regular expression, as of grep -P.\n"
        "  path (optional): File or folder to search in.\n"
        "  include (optional): Only files of such names, as in *.py.\n"
        "\nbash: Run a command in a shell that keeps its working directory and environment.\n"
        "  command: The command line; several lines are fine."
    )
    assert (
        "\n  command: What to do. One of create, insert, str_replace, undo_edit, view."
        in describe_in_xml()
    )
