"""What rollouts hold is shown, never obeyed: markup, scripts, control characters, odd names."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from browser import Opened, write_page
from rtmc import Config
from rtmc.cli import main
from rtmc.report.page import open_page
from rtmc.rollouts import Group, Rollout, Source, Step, ToolCall

MARKUP = "<script>window.pwned=1</script></script><img src=x onerror=window.pwned=1>"
QUOTES = "javascript:window.pwned=1 \"'`${window.pwned=1}\\ --> ]]> &lt;b&gt; {{pwned}}"
CONTROL = "\x00\x01\x07\x08\x0b\x1b[31m\x7f\x85\u2028\u2029"
DIRECTION = "\u202ecod.exe\u202c\u2066x\u2069\u061c"
INVISIBLE = "a\u200bb\u200dc\u2060d\ufeffe\u00adf\u180eg\u034fh\U000e0041i\ufff9j\u3164k\u115fl"
HALF = "\ud800x\udc00"
EVERYTHING = MARKUP + QUOTES + CONTROL + DIRECTION + INVISIBLE
VIEWS = ("tree", "rollouts", "quadrants", "keys")

# Characters that may not reach the page as they are: one would not see them, or be misled by them.
UNSEEN = (
    "[\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f\\u00ad\\u034f\\u061c\\u115f\\u1160\\u180e"
    "\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u206f\\u3164\\ufeff\\ufff9-\\ufffb"
    "\\u{e0000}-\\u{e007f}]"
)
FIND_UNSEEN = """(unseen) => {
  const pattern = new RegExp(unseen, 'u');
  const out = [];
  for (const root of [document.querySelector('header'), document.getElementById('app')]) {
    for (const e of [root, ...root.querySelectorAll('*')]) {
      for (const one of e.attributes) if (pattern.test(one.value)) out.push([one.name, one.value]);
      for (const one of e.childNodes) {
        if (one.nodeType === 3 && pattern.test(one.data)) out.push([e.tagName, one.data]);
      }
    }
  }
  return out.map(([where, text]) => [where, escape(text).slice(0, 400)]);
}"""


@pytest.fixture
def browser(chrome: Opened) -> Iterator[Opened]:
    """Lend the browser; afterwards nothing may have run, been logged or been asked for."""
    chrome.forget()
    yield chrome
    assert chrome.page.evaluate("window.pwned") is None
    assert chrome.page.title() == "rtmc report"
    assert chrome.problems == []
    assert chrome.requests == []


def walk(browser: Opened, path: Path, groups: int = 1) -> str:
    """Open everything in every view, and give the text that was seen."""
    browser.open(path)
    seen = [browser.text("#app"), browser.text("header")]
    assert browser.page.locator(".groups tbody tr").count() == groups
    for at in range(groups):
        for view in VIEWS:
            browser.open(path, f"#/group/{at}/{view}")
            assert browser.page.get_attribute(f"#tab-{view}", "aria-selected") == "true"
            seen += browser.page.evaluate(TOUCH)
            assert browser.page.evaluate(FIND_UNSEEN, UNSEEN) == []
            assert browser.page.evaluate("window.pwned") is None
            for canvas in browser.page.locator("#view svg[tabindex]").all():
                canvas.focus()
                for key in ("ArrowRight", "ArrowDown", "Enter"):
                    browser.page.keyboard.press(key)
    assert browser.page.locator("#app img, #app script, #app iframe").count() == 0
    assert browser.page.evaluate(
        "[...document.querySelectorAll('a')].every((a) => a.getAttribute('href').startsWith('#'))"
    )
    return "\n".join(seen)


# Click whatever opens a part of the page; the first of many is as good as all.
TOUCH = """async () => {
  const texts = [];
  const click = (node) => node.dispatchEvent(new MouseEvent('click', { bubbles: true }));
  const first = (selector, most = 6) => [...document.querySelectorAll(selector)].slice(0, most);
  for (const selector of ['.item', 'circle.state', '.rollouts button', '.quadrant-table button',
    '.quadrant-steps button', '.detail .link']) {
    for (const node of first(selector)) {
      click(node);
      for (const box of first('.detail details.raw', 3)) box.open = true;
      await new Promise((done) => setTimeout(done, 0));
      first('.raw button').filter((more) => more.textContent.startsWith('show')).forEach(click);
      texts.push(document.getElementById('app').textContent);
      const broken = document.querySelector('#app img, #app script');
      if (broken) texts.push(`BROKEN ${broken.outerHTML}`);
    }
  }
  texts.push(document.getElementById('app').textContent);
  return texts;
}"""


def rollout(name: str, steps: tuple[Step, ...], reward: float | None, **more: Any) -> Rollout:
    return Rollout("p", name, steps, reward, **more)


def poisoned(text: str) -> Group:
    """A group in which every text is the given one."""
    calls = (
        ToolCall("bash", {"command": f"cat '{text}'"}, text, 1),
        ToolCall("str_replace_editor", {"command": "view", "path": f"/repo/{text}.py"}, text),
        ToolCall(text, {text: text, "list": [text, {text: [text]}]}, text, None, True),
        ToolCall("bash", {"command": f"sed -i s/a/b/ {text}"}, text),
        ToolCall("bash", text, text, timed_out=True),
    )
    steps = tuple(Step((call,), thought=text) for call in calls)
    more = {"model": text, "stop_reason": text, "source": Source(text, 7)}
    return Group(
        text,
        (
            rollout(text, steps, 1.0, **more),
            rollout(text + "'", (*steps[:2], Step((), text), *steps[2:]), 0.0, **more),
            rollout(text + '"', (Step(tuple(calls), text),), 0.0, **more),
        ),
    )


@pytest.mark.parametrize(
    "text",
    [MARKUP, QUOTES, CONTROL + DIRECTION, INVISIBLE, EVERYTHING],
    ids=["markup", "quotes", "control", "invisible", "everything"],
)
def test_texts_are_shown_and_never_obeyed(text: str, browser: Opened, tmp_path: Path) -> None:
    path = write_page(tmp_path / "r.html", [poisoned(text)], title=text)
    seen = walk(browser, path)
    assert "BROKEN" not in seen
    if text in (MARKUP, QUOTES):
        assert text in seen
    if "\u202e" in text:
        assert "⟨U+202E⟩" in seen
    if "\x1b" in text:
        assert "␛[31m" in seen
        assert "␀" in seen
    source = path.read_bytes()
    assert b"pwned" not in source
    for part in (text, text[:40]):
        assert part.encode() not in source or len(part) < 8


def test_half_of_a_surrogate_pair(browser: Opened, tmp_path: Path) -> None:
    call = ToolCall("bash", {"command": f"echo {HALF}"}, HALF)
    group = Group(HALF, (rollout(HALF, (Step((call,), HALF),), 1.0), rollout("b", (), 0.0)))
    walk(browser, write_page(tmp_path / "r.html", [group], title=HALF))


def test_half_of_a_surrogate_pair_inside_the_arguments(browser: Opened, tmp_path: Path) -> None:
    lines = [row("p", f"r{i}", float(i), "cat \ud800.py", "\x00") for i in (0, 1)]
    walk(browser, report(tmp_path, lines))


def row(problem: Any, name: Any, reward: float, command: str, output: str = "") -> str:
    function = {"name": "bash", "arguments": json.dumps({"command": command})}
    call = {"id": "1", "type": "function", "function": function}
    messages = [
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": output},
    ]
    return json.dumps(
        {"problem_id": problem, "rollout_id": name, "reward": reward, "messages": messages}
    )


def report(folder: Path, lines: list[str]) -> Path:
    (folder / "in.jsonl").write_text("".join(line + "\n" for line in lines))
    output = folder / "r.html"
    result = CliRunner().invoke(main, ["report", str(folder / "in.jsonl"), "-o", str(output)])
    assert result.exit_code == 0, result.output
    return output


NAMES = ("__proto__", "constructor", "toString", "hasOwnProperty", "0", "-1", "1e3", "null", "NaN")


def test_names_that_javascript_knows(browser: Opened, tmp_path: Path) -> None:
    def step(name: str) -> Step:
        inner = json.loads(f'{{"{name}": {{"{name}": 1}}, "other": 2}}')
        return Step((ToolCall(name, inner, name), ToolCall("bash", {"command": f"cat {name}"})))

    rollouts = tuple(
        rollout(name, tuple(step(other) for other in NAMES[i:]), float(i % 2))
        for i, name in enumerate(NAMES)
    )
    groups = [Group(name, rollouts) for name in NAMES]
    with_keys = write_page(tmp_path / "r.html", groups)
    browser.open(with_keys)
    assert set(browser.texts(".groups tbody th")) == set(NAMES)
    seen = walk(browser, write_page(tmp_path / "one.html", groups[:1]))
    for name in NAMES[:4]:
        assert f"{name}: " in seen
        assert f"{name}, step 0" in seen
    assert browser.page.evaluate("({}).polluted") is None


def test_numbers_as_ids(browser: Opened, tmp_path: Path) -> None:
    path = report(tmp_path, [row(7, 1, 1.0, "ls"), row(7, 2, 0.0, "cat x")])
    assert "1, step 0" in walk(browser, path)


def test_ids_that_differ_only_in_what_one_does_not_see(browser: Opened, tmp_path: Path) -> None:
    marks = ["", "\u200b", "\u200b\u200b", "\u00ad", "\u2060", "\U000e0041", "\u180e", "\r"]
    step = Step((ToolCall("bash", {"command": "ls"}),))
    rollouts = tuple(rollout(f"a{m}b", (step,), float(i % 2)) for i, m in enumerate(marks))
    path = write_page(tmp_path / "r.html", [Group(f"p{m}q", rollouts) for m in marks])
    browser.open(path)
    assert len(set(browser.texts(".groups tbody th"))) == len(marks)
    browser.open(path, "#/group/0/tree")
    assert len(set(browser.texts(".rollouts bdi"))) == len(marks)
    assert len(set(browser.texts("svg.tree .name"))) == len(marks)


def test_long_ids_and_a_long_observation(browser: Opened, tmp_path: Path) -> None:
    long = "x" * 150 + " " + "y" * 150
    steps = (Step((ToolCall("bash", {"command": "ls " + "z" * 5000}, "o" * 1_000_000),)),)
    group = Group(long, (rollout(long, steps, 1.0), rollout(long + "2", steps, 0.0)))
    path = write_page(tmp_path / "r.html", [group])
    assert path.stat().st_size < 300_000
    seen = walk(browser, path)
    assert "980000 characters left out" in seen.replace(",", "")
    for where in ("", *(f"#/group/0/{view}" for view in VIEWS)):
        browser.open(path, where)
        assert browser.page.evaluate("document.scrollingElement.scrollWidth") <= 1400, where


def test_deeply_nested_arguments(browser: Opened, tmp_path: Path) -> None:
    deep: Any = "end"
    for _ in range(150):
        deep = {"a": [deep]}
    steps = (Step((ToolCall("tool", deep, "ok"),)), Step((ToolCall("bash", deep, "ok"),)))
    group = Group("p", (rollout("a", steps, 1.0), rollout("b", steps[:1], 0.0)))
    assert '"end"' in walk(browser, write_page(tmp_path / "r.html", [group]))


def test_numbers_that_json_has_and_javascript_has_not(browser: Opened, tmp_path: Path) -> None:
    given = {"big": 10**30, "small": -(2**63) - 1, "float": 1e300, "nan": float("nan")}
    steps = (Step((ToolCall("tool", given, "ok"),)),)
    group = Group("p", (rollout("a", steps, 1.0), rollout("b", (), 0.0)))
    walk(browser, write_page(tmp_path / "r.html", [group]))


def test_no_group_at_all(browser: Opened, tmp_path: Path) -> None:
    with open_page(tmp_path / "r.html", Config()):
        pass
    walk(browser, tmp_path / "r.html", groups=0)
    browser.page.locator(".groups thead button").first.click()
    browser.page.fill("#search", "x")


def test_rollouts_without_steps_and_empty_names(browser: Opened, tmp_path: Path) -> None:
    step = Step((ToolCall("", {}),))
    groups = [
        Group("", (rollout("", (step, Step(())), 1.0), rollout(" ", (), 0.0))),
        Group("no step", (rollout("a", (), 1.0), rollout("b", (), None))),
    ]
    path = write_page(tmp_path / "r.html", groups)
    browser.open(path)
    for link in browser.page.locator(".groups tbody a").all():
        assert link.text_content().strip(), "a link that one cannot see"
    walk(browser, path, groups=2)


def test_ten_thousand_steps_in_one_rollout(browser: Opened, tmp_path: Path) -> None:
    def steps(n: int, files: int) -> tuple[Step, ...]:
        return tuple(
            Step((ToolCall("bash", {"command": f"cat f{i % files}.py"}, "ok", 0),))
            for i in range(n)
        )

    group = Group("p", (rollout("a", steps(10_000, 300), 1.0), rollout("b", steps(50, 7), 0.0)))
    browser.open(write_page(tmp_path / "r.html", [group]), "#/group/0/tree")
    browser.page.get_by_role("button", name="Unfold all").click()
    assert browser.page.locator("svg.tree .item").count() > 300
    for view in VIEWS:
        browser.page.locator(f"#tab-{view}").click()
        browser.page.wait_for_selector(f"#tab-{view}[aria-selected=true]")
        assert browser.page.locator("#view > *").count() == 1
        assert browser.problems == []
    browser.page.select_option("#level", "work")
    browser.page.locator("#tab-tree").click()
    browser.page.locator(".rollouts button").first.click()
    assert browser.page.locator(".detail .steps li").count() > 100


# --- the policy of the page --------------------------------------------------------------------

INJECT = """() => {
  const script = document.createElement('script');
  script.textContent = 'window.ran = 1';
  document.body.append(script);
  const picture = document.createElement('img');
  picture.setAttribute('onerror', 'window.ran = 2');
  picture.src = 'data:image/png;base64,broken';
  document.body.append(picture);
  const button = document.createElement('button');
  button.setAttribute('onclick', 'window.ran = 3');
  document.body.append(button);
  button.click();
  return new Promise((done) => setTimeout(() => done(window.ran ?? null), 50));
}"""
FETCH = "() => fetch('http://127.0.0.1:9/x').then(() => 'sent', (error) => error.name)"
ASKED = """() => new Promise((done) => {
  document.addEventListener('securitypolicyviolation', (event) => {
    if (event.blockedURI.includes('127.0.0.1')) done(event.effectiveDirective);
  });
  fetch('http://127.0.0.1:9/y').catch(() => {});
  setTimeout(() => done(null), 500);
})"""


def test_the_policy_stops_a_script_and_a_request(browser: Opened, tmp_path: Path) -> None:
    path = write_page(tmp_path / "r.html", [poisoned("x")])
    browser.open(path)
    assert browser.page.evaluate(INJECT) is None
    assert browser.page.evaluate(FETCH) == "TypeError"
    assert browser.page.evaluate(ASKED) == "connect-src"
    assert browser.requests == []
    assert browser.problems
    for said in browser.problems:
        assert "Content Security Policy" in said
    # the same page without its policy would have run it: the test can fail
    start, end = b'<meta http-equiv="Content-Security-Policy"', b">"
    source = path.read_bytes()
    before, _, rest = source.partition(start)
    open_to_all = tmp_path / "open.html"
    open_to_all.write_bytes(before + rest.partition(end)[2])
    browser.open(open_to_all)
    assert browser.page.evaluate(INJECT) is not None
    assert browser.page.evaluate(ASKED) is None
    assert browser.requests
    browser.forget()


def test_the_policy_comes_before_everything_it_governs(tmp_path: Path) -> None:
    source = write_page(tmp_path / "r.html", [poisoned("x")]).read_text()
    policy = source.index("Content-Security-Policy")
    for what in ("<style", "<script", "<link", "<img"):
        assert what not in source[:policy]
    assert "unsafe" not in source[policy : source.index(">", policy)]
    for what in ("http:", "https:"):
        uses = source.count(what) - source.count("http://www.w3.org/2000/svg")
        assert uses == 0 or what == "https:"
        assert f'="{what}' not in source
