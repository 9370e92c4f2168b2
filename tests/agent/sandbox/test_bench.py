"""``rtmc bench sandbox``."""

import msgspec
from click.testing import CliRunner

from rtmc.bench import sandbox
from rtmc.cli import main


def test_the_figures(bwrap_works, monkeypatch):
    monkeypatch.setattr(sandbox, "ROUNDS", 2)
    done = CliRunner().invoke(main, ["bench", "sandbox", "--many", "2", "--json"])
    assert done.exit_code == 0
    figures = msgspec.json.decode(done.output)
    assert figures["start_to_bare_python"] > 0
    assert figures["many"]["sandboxes"] == 2
    assert set(figures["commands"]) == {"builtin", "program", "10 KB"}
    lines = list(sandbox.table(figures))
    assert lines[1].startswith("start ")
    assert "× a bare Python" in lines[1]


def test_no_bubblewrap(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    done = CliRunner().invoke(main, ["bench", "sandbox"])
    assert done.exit_code == 2
    assert done.output.startswith("rtmc: bubblewrap is not installed")
