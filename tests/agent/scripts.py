"""Turns for scripted models, in both notations, and a small repository with a bug."""

import json
from operator import itemgetter

from rtmc.agent.drive import drive
from rtmc.agent.loop import attempt
from rtmc.agent.models.base import Dialogue
from rtmc.agent.models.scripted import Scripted

REPOSITORY = {
    "calc.py": b"def add(a, b):\n    return a - b\n",
    "test_calc.py": b"import unittest\n\nfrom calc import add\n\n\nclass Test(unittest.TestCase):\n"
    b"    def test_add(self):\n        self.assertEqual(add(1, 2), 3)\n",
}


def xml(name, **arguments):
    inside = "".join(f"<parameter={k}>{v}</parameter>\n" for k, v in arguments.items())
    return f"<function={name}>\n{inside}</function>"


def native(name, **arguments):
    return {
        "id": f"id_{name}",
        "name": name,
        "arguments": json.dumps(arguments, ensure_ascii=False),
    }


def edit(command, path, **more):
    return xml("str_replace_editor", command=command, path=path, **more)


def driven(attempts, model, **options):
    """Drive attempts, and give what they came to in their order."""
    return [result for _, result in sorted(drive(attempts, model, **options), key=itemgetter(0))]


def play(bench, turns, **options):
    """Attempt with one scripted rollout; give the episode and the dialogue."""
    native_tools = options.pop("native_tools", False)
    model = Scripted([turns], native_tools=native_tools, tokens=options.pop("tokens", True))
    dialogue = Dialogue([])
    one = attempt("Fix add.", bench, dialogue, native_tools, **options)
    (episode,) = driven([one], model)
    return episode, dialogue


FIX = [
    "Let me look.\n" + edit("view", "."),
    edit("view", "calc.py", view_range="[1, 40]"),
    xml("bash", command="python3 -m unittest -q test_calc"),
    xml("bash", command="mkdir -p sub && cd sub"),
    edit("str_replace", "calc.py", old_str="a - b", new_str="a + b"),
    xml("search", pattern="def add"),
    xml("bash", command="cd .. && python3 -m unittest -q test_calc"),
    "Done.\n" + xml("finish", message="add adds"),
]
