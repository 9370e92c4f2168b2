"""The page of an evaluation, and of two: what it shows, on phones and in the dark, and offline."""

import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from browser import Opened
from pages import CONTRAST, NAMELESS
from rtmc.cli import main
from rtmc.evaluation import Evaluation, decode_evaluation, encode_evaluation
from rtmc.report.evaluation_page import write_evaluation_page
from tallies import tallied

FILES = [
    Path(__file__).parents[2] / "examples" / "evaluations" / f"{name}.json"
    for name in ("before", "after")
]


@pytest.fixture(scope="module")
def both() -> list[Evaluation]:
    return [decode_evaluation(path.read_bytes(), str(path)) for path in FILES]


@pytest.fixture(scope="module")
def one_page(folder: Path, both: list[Evaluation]) -> Path:
    write_evaluation_page(folder / "one.html", both[1])
    return folder / "one.html"


@pytest.fixture(scope="module")
def two_page(folder: Path, both: list[Evaluation]) -> Path:
    write_evaluation_page(folder / "two.html", both[1], both[0], "two of them")
    return folder / "two.html"


def plain(text: str) -> str:
    return text.replace("−", "-")


def test_one_evaluation(browser: Opened, one_page: Path, both: list[Evaluation]) -> None:
    browser.open(one_page)
    found = both[1]
    assert browser.text("#title") == "after"
    rows = browser.texts("main table:not(.groups) tbody tr")
    figures = [*found.pass_at_k.values(), found.majority]
    names = ["pass@1", "pass@2", "pass@4", "pass@8", "majority of 3"]
    for row, name, figure in zip(rows, names, figures, strict=True):
        assert row.startswith(name)
        shown = re.findall(r"\d+\.\d", row.removeprefix(name))
        assert figure.low is not None
        expected = (figure.value, figure.low, figure.high)
        assert shown == [f"{100 * number:.1f}" for number in expected if number is not None]
    # the line of an interval: 5 + 110 times its ends
    lines = browser.page.locator("main svg[role=img] .curve-line")
    assert lines.count() == 5
    ends = [float(lines.first.get_attribute(name)) for name in ("x1", "x2")]
    assert ends == pytest.approx([5 + 110 * figures[0].low, 5 + 110 * figures[0].high])
    assert browser.texts(".note") == [
        "pass@1 is 63.1 if every run that is not counted failed, 64.1 if it passed."
    ]
    # the least solved first, and every problem once
    ids = browser.texts(".groups tbody th")
    assert sorted(ids) == [problem.id for problem in found.problems]
    passed = browser.texts(".groups tbody td[data-name=Passed]")
    assert (passed[0], passed[-1]) == ("0 of 8", "8 of 8")
    assert "unknown exclude" in browser.text("#settings-used")


def test_problems_are_sorted_searched_and_filtered(browser: Opened, two_page: Path) -> None:
    browser.open(two_page)
    assert browser.text("#title") == "two of them"
    page = browser.page

    def first() -> str:
        return browser.texts(".groups tbody th")[0]

    page.get_by_role("button", name="Change").click()
    assert first() == "toy__shop-23"
    page.get_by_role("button", name="Change").click()
    assert first() == "toy__shop-07"
    assert page.get_attribute(".groups th:nth-child(4)", "aria-sort") == "ascending"
    page.fill("#search", "SHOP-0")
    assert browser.text(".tools [role=status]") == "9 of 40 problems"
    page.fill("#search", "")
    page.select_option("#kind", "lost by majority")
    assert browser.texts(".groups tbody th") == ["toy__shop-07", "toy__shop-32"]
    page.select_option("#kind", "changed beyond luck (!)")
    assert set(browser.texts(".groups tbody th")) == {"toy__shop-07", "toy__shop-23"}


def test_a_comparison_says_what_the_terminal_says(browser: Opened, two_page: Path) -> None:
    browser.open(two_page)
    tiles = [plain(text) for text in browser.texts(".tiles div")]
    assert tiles == [
        "pass@1, difference+11.9[+2.9, +20.5] on 40 problems of both",
        "gained by majority62.6 expected if nothing changed, p 0.009",
        "lost by majority22.6 expected if nothing changed, p 0.656",
        "better, worse19, 3sign test p <0.001",
    ]
    text = " ".join(run("evaluate", str(FILES[1]), "--against", str(FILES[0])).output.split())
    for note in browser.texts(".note"):
        assert f"→ {note}" in text
    row = browser.page.locator(".groups tbody tr", has_text="toy__shop-07").inner_text()
    assert plain(row).split("\t") == [
        "toy__shop-07", "8 of 8", "0 of 8", "-100.0", "lost", "<0.001", "<0.001 !"
    ]  # fmt: skip


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_can_be_read_by_everybody(
    scheme: str, browser: Opened, one_page: Path, two_page: Path
) -> None:
    browser.page.emulate_media(color_scheme=scheme)
    for page in (one_page, two_page):
        browser.open(page)
        ground = browser.page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
        assert (sum(map(int, re.findall(r"\d+", ground))) < 200) == (scheme == "dark")
        assert browser.page.evaluate(CONTRAST) == []
        assert browser.page.evaluate(NAMELESS) == []
        assert browser.page.locator("th:not([scope])").count() == 0
        browser.page.click("#theme")
        assert ground != browser.page.evaluate(
            "getComputedStyle(document.documentElement).backgroundColor"
        )
        assert browser.page.evaluate(CONTRAST) == []


def test_a_phone_shows_it_without_scrolling_sideways(
    browser: Opened, one_page: Path, two_page: Path
) -> None:
    browser.page.set_viewport_size({"width": 390, "height": 844})
    for page in (one_page, two_page):
        browser.open(page)
        assert browser.page.evaluate("document.scrollingElement.scrollWidth") <= 390
        for cell in browser.page.locator(".groups tbody tr").first.locator("th, td").all():
            box = cell.bounding_box()
            assert box["x"] >= 0
            assert box["x"] + box["width"] <= 390


def test_hostile_names_are_text(browser: Opened, tmp_path: Path) -> None:
    nasty = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"
    found = tallied(nasty, **{nasty: (1, 2), "\u202egnp": (1, 2)})
    write_evaluation_page(tmp_path / "x.html", found, tallied("b", **{nasty: (0, 2)}))
    browser.open(tmp_path / "x.html")
    assert browser.texts(".groups tbody th") == [nasty]
    assert browser.page.locator("img").count() == 0
    assert "⟨U+202E⟩gnp" in browser.text("[aria-label=Comparison] > p")


def test_figures_that_do_not_exist_are_dashes(browser: Opened, tmp_path: Path) -> None:
    write_evaluation_page(tmp_path / "x.html", tallied("x", p=(1, 2)))
    browser.open(tmp_path / "x.html")
    assert browser.texts("main table:not(.groups) tbody tr")[0] == "pass@150.0 [?]1–"


# --- the command ---------------------------------------------------------------------------------


def run(*args: str) -> Result:
    return CliRunner().invoke(main, list(args))


def test_the_command_writes_the_page(browser: Opened, tmp_path: Path) -> None:
    output = tmp_path / "r.html"
    result = run("report", *map(str, FILES), "-o", str(output))
    assert result.exit_code == 0, result.output
    assert result.stdout == f"{output}: after against before; open it in a browser\n"
    raw = output.read_bytes()
    assert raw.startswith(b"<!doctype html>")
    assert len(raw) < 60_000
    assert run("report", *map(str, FILES), "-o", str(output)).exit_code == 0
    assert output.read_bytes() == raw
    browser.open(output)
    assert browser.texts("h2") == ["before", "after", "after against before", "Problems"]


def test_the_command_refuses_what_does_not_fit(tmp_path: Path, both: list[Evaluation]) -> None:
    output = str(tmp_path / "r.html")
    before, after = map(str, FILES)
    other = tmp_path / "other.json"
    other.write_bytes(encode_evaluation(tallied("other", p=(1, 2))))
    for args, words in (
        ((before, after, before), "one evaluation, or two compared; got 3 inputs"),
        ((before, "examples/group.jsonl"), "got 2 inputs, 1 of them evaluations"),
        ((before, "--gamma", "1"), "--gamma has no effect on an evaluation"),
        ((before, "--problem", "x"), "--problem has no effect on an evaluation"),
        ((before, str(other)), "share no problem"),
    ):
        result = run("report", *args, "-o", output)
        assert result.exit_code == 2, result.output
        assert words in result.stderr
        assert not Path(output).exists()
    result = run("report", str(other), "-o", str(other))
    assert "is among the inputs" in result.stderr
