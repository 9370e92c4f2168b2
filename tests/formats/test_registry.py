"""The table of formats, and what importing it costs."""

import json
import subprocess
import sys

import rtmc.formats
from rtmc.formats import FORMATS, Format, Group, read_groups
from rtmc.formats.base import Identity
from rtmc.rollouts import Rollout, Source


def test_keys_are_the_formats_own_names():
    assert [f.name for f in FORMATS.values()] == list(FORMATS)
    for known in FORMATS.values():
        assert known.title
        assert known.needs
        assert known.ids


def test_the_particular_formats_are_tried_before_the_general_one():
    assert list(FORMATS)[-1] == "chat"


def test_all_names_are_there():
    assert all(hasattr(rtmc.formats, name) for name in rtmc.formats.__all__)


def test_importing_the_readers_loads_nothing_heavy():
    code = "import sys, rtmc.formats, json; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(json.loads(done.stdout))
    assert not loaded & {"numpy", "pyarrow", "pandas", "torch", "tree_sitter", "click"}
    assert "msgspec" in loaded


def _toy(raw: bytes, source: Source) -> list[Rollout]:
    return [Rollout(name, "only", source=source) for name in raw[4:].decode().split(",")]


def test_an_archive_of_several_rollouts_fits_the_seam(tmp_path, monkeypatch):
    toy = Format(
        name="toy-archive",
        title="an archive",
        needs="bytes that begin with TOY",
        ids="inside",
        unit="file",
        detect=lambda value, path: isinstance(value, bytes) and value.startswith(b"TOY\x00"),
        read=_toy,
    )
    monkeypatch.setitem(FORMATS, toy.name, toy)
    (tmp_path / "a.bin").write_bytes(b"TOY\x00p,q")
    (tmp_path / "b.bin").write_bytes(b"TOY\x00q")
    groups: list[Group] = list(read_groups(tmp_path))
    assert [(g.problem_id, len(g.rollouts)) for g in groups] == [("p", 1), ("q", 2)]
    assert toy.identities(b"TOY\x00p", Source()) == [Identity("p", "only")]
