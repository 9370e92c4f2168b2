"""What the tests of the report share: groups of every kind, and reading numbers off a page."""

import json
import math
import re
from pathlib import Path

from click.testing import CliRunner

from browser import Opened, number
from rtmc.cli import main
from rtmc.rollouts import Group, Rollout, Step, ToolCall

EXAMPLE = Path(__file__).parents[1] / "examples" / "group.jsonl"


REAL = {
    "blind-maze-explorer-algorithm",
    "blind-maze-explorer-algorithm.easy",
    "cartpole-rl-training",
    "incompatible-python-fasttext",
    "sanitize-git-repo",
}
"""The real groups with rollouts of different known outcome."""


def bash(command: str, output: str = "") -> Step:
    return Step((ToolCall("bash", {"command": command}, output, 0),), thought=f"I run {command}")


def rollout(name: str, commands: str, reward: float | None, stop: str | None = None) -> Rollout:
    steps = tuple(bash(command) for command in commands.split(";") if command)
    return Rollout("p", name, steps, reward, stop_reason=stop)


def kinds() -> list[Group]:
    """Groups of every kind of outcome."""
    mixed = (
        rollout("a", "ls;pytest;pytest;ls", 1.0),
        rollout("b", "ls;cat x.py;sed -i s/a/b/ x.py;pytest;submit", 0.0),
        rollout("c", "", 0.0),
        rollout("d", "ls;cat x.py;pytest", 0.2, "max_steps"),
        rollout("e", "ls;cat x.py;cat y.py", None),
        rollout("f", "ls", 1.0),
    )
    return [
        Group("mixed", mixed),
        Group("all passed", (rollout("a", "ls;pytest", 1.0), rollout("b", "ls;ls", 1.0))),
        Group("none passed", (rollout("a", "ls;pytest", 0.0), rollout("b", "ls;ls", 0.0))),
        Group("unknown", (rollout("a", "ls", None), rollout("b", "cat x.py;ls", None))),
        Group("single", (rollout("a", "ls;pytest", 1.0),)),
        Group("No step", (rollout("a", "", 1.0), rollout("b", "", 0.0))),
    ]


def plain(text: str) -> str:
    return text.replace("−", "-")


def near(text: str, value: float, digits: int = 4) -> bool:
    """Tell whether a text shows a value, rounded; a dash shows that there is none."""
    shown = number(text)
    if shown is None or math.isnan(value):
        return shown is None and math.isnan(value)
    return abs(shown - value) <= 0.5 * 10**-digits + 1e-9


def percent(part: float, whole: float) -> str:
    return f"{math.floor(100 * part / whole + 0.5)} %" if whole else "–"


COLUMNS = ["Problem", "Rollouts", "Outcomes", "Steps", "Overlap", "Branching", "Partings",
           "Winners’ A < 0", "Largest |A|"]  # fmt: skip


STATUS = ".tree-view [role=status]"


EDGE = "svg.tree [role=button]:not([aria-label*=' the state as it is'])"


def unfold_all(browser: Opened) -> None:
    browser.page.get_by_role("button", name="Unfold all").click()


def raw_texts(step: Step) -> list[str]:
    """Write a step's texts as the page does, as far as these groups need it."""
    out = [step.thought] if step.thought else []
    for call in step.calls:
        arguments = call.arguments
        if isinstance(arguments, dict):
            values = [
                value if isinstance(value, str) else json.dumps(value, indent=1)
                for value in arguments.values()
            ]
            named = [f"{k}: {v}" for k, v in zip(arguments, values, strict=True)]
            arguments = values[0] if len(values) == 1 else "\n".join(named)
        out += [arguments, *([] if call.output is None else [call.output])]
    return [text.replace("\r", "") for text in out]


def short(key: str) -> str:
    return re.sub(r"(?<![0-9A-Za-z])([0-9a-f]{4})[0-9a-f]{12}(?![0-9a-f])", r"\1", key)


# text that does not stand out from its ground
CONTRAST = """() => {
  const light = (color) => {
    const [r, g, b] = color.match(/[\\d.]+/g).slice(0, 3).map((v) => v / 255)
      .map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (e) => {
    for (let at = e; at; at = at.parentElement) {
      const color = getComputedStyle(at).backgroundColor;
      if (color !== 'rgba(0, 0, 0, 0)') return color;
    }
    return 'rgb(255, 255, 255)';
  };
  const low = [];
  for (const e of document.querySelectorAll('header *, #app *')) {
    if (e instanceof SVGElement || !e.checkVisibility() || e.matches(':disabled')) continue;
    if (![...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim())) continue;
    const pair = [getComputedStyle(e).color, ground(e)];
    const [a, b] = pair.map(light).sort((x, y) => y - x);
    if ((a + 0.05) / (b + 0.05) < 4.5) low.push([e.tagName, e.className, e.textContent, pair]);
  }
  return low;
}"""

# controls and pictures without a name, and ids given twice
NAMELESS = """() => {
  const name = (e) => {
    const by = e.getAttribute('aria-labelledby');
    if (by) return by.split(' ').map((id) => document.getElementById(id).textContent).join(' ');
    if (e.getAttribute('aria-label')) return e.getAttribute('aria-label');
    if (e.labels && e.labels.length) return [...e.labels].map((l) => l.textContent).join(' ');
    return e.matches('button, a, summary, legend') ? e.textContent : '';
  };
  const roles = ['button', 'tab', 'application', 'img', 'tablist', 'tabpanel'];
  const wanted = ['button, a[href], input, select, textarea, summary, nav, aside, form',
    '[tabindex="0"]', ...roles.map((role) => `[role=${role}]`)].join();
  const nameless = [...document.querySelectorAll(wanted)].filter((e) => !name(e).trim()
    && !e.matches('pre'));
  const pictures = [...document.querySelectorAll('svg:not([aria-hidden=true])')].filter(
    (e) => !(e.getAttribute('role') && e.getAttribute('aria-label')));
  const ids = [...document.querySelectorAll('[id]')].map((e) => e.id);
  return [...nameless, ...pictures].map((e) => e.outerHTML.slice(0, 200))
    .concat(ids.filter((id, at) => ids.indexOf(id) !== at));
}"""


SHOWN = """(ids) => ids.flatMap((id) => {
  const button = [...document.querySelectorAll('.rollouts button')].find(
    (one) => one.querySelector('bdi').textContent === id);
  button.click();
  const values = [...document.querySelectorAll('.detail .steps .value')].map((e) => e.textContent);
  button.click();
  return values;
})"""


def shown_advantages(browser: Opened, group: Group) -> list[str]:
    """Read every advantage from the lists of steps that the page shows beside the tree."""
    return browser.page.evaluate(SHOWN, [one.rollout_id for one in group.rollouts])


def run(*args: str) -> str:
    result = CliRunner().invoke(main, list(args))
    assert result.exit_code == 0, result.output
    return result.output
