"""What may lie among the inputs: broken, empty, packed, piped, nested, foreign files."""

import gzip
import json
import os
import subprocess
import sys

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rtmc.errors import FormatError, OptionError
from rtmc.formats import FORMATS, detect_format, read, read_groups

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def row(problem="p", rollout="r", **fields):
    messages = [{"role": "assistant", "content": "hi"}]
    return json.dumps(
        {"problem_id": problem, "rollout_id": rollout, "messages": messages, **fields}
    )


def problems(reader):
    return [group.problem_id for group in reader]


def skips(reader):
    return [(skipped.source.line, skipped.reason) for skipped in reader.report.skipped]


# --- case 37 -------------------------------------------------------------------------------------


def test_case_37_blank_lines_and_a_byte_order_mark(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text("\n\n" + row("a") + "\r\n\n" + row("b") + "\n\n", encoding="utf-8-sig")
    reader = read_groups(path)
    assert problems(reader) == ["a", "b"]
    assert skips(reader) == []
    assert [g.rollouts[0].source.line for g in reader] == [3, 5]


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_case_37_one_value_over_several_lines(tmp_path, mark):
    path = tmp_path / "row.json"
    path.write_bytes(mark + json.dumps(json.loads(row("a")), indent=1).encode())
    assert problems(read_groups(path)) == ["a"]


def test_case_37_an_array_of_rows_over_several_lines(tmp_path):
    path = tmp_path / "rows.json"
    rows = [json.loads(row("a")), {"broken": "row"}, json.loads(row("b"))]
    path.write_text(json.dumps(rows, indent=1))
    reader = read_groups(path)
    assert problems(reader) == ["a", "b"]
    lines = path.read_text().splitlines()
    assert skips(reader)[0][0] == next(i for i, x in enumerate(lines) if "broken" in x)
    assert reader.report.files == {"chat": 1}


def test_case_37_broken_records_are_refused_and_the_others_survive(tmp_path):
    path = tmp_path / "rows.jsonl"
    good = row("a").encode()
    bad_text = row("b").encode().replace(b"hi", b"\xff\xfe")
    deep = b'{"problem_id": "c", "messages": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    path.write_bytes(b"\n".join([good, bad_text, deep, b"not json", row("z").encode(), good[:-9]]))
    reader = read_groups(path)
    assert problems(reader) == ["a", "z"]
    reasons = dict(skips(reader))
    assert set(reasons) == {2, 3, 4, 6}
    assert "UTF-8" in reasons[2]
    assert reasons[3] == "JSON is nested too deeply"
    assert "malformed" in reasons[4]
    assert "truncated" in reasons[6]
    assert problems(reader) == ["a", "z"]  # again, without counting twice
    assert len(reader.report.skipped) == 4


def test_case_37_a_first_line_that_is_broken(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text(row("a")[:-20] + "\n" + row("b") + "\n")
    reader = read_groups(path)
    assert problems(reader) == ["b"]
    assert [line for line, _ in skips(reader)] == [1]


def test_case_37_a_large_file_is_read_line_by_line(tmp_path):
    tracemalloc = pytest.importorskip("tracemalloc")
    path = tmp_path / "rows.jsonl"
    filler = "x" * 200_000
    with path.open("w") as out:
        for number in range(200):
            out.write(row(f"p{number}", note=filler) + "\n")
    tracemalloc.start()
    try:
        assert sum(1 for _ in read_groups(path)) == 200
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert path.stat().st_size > 40_000_000
    assert peak < 4_000_000


@pytest.mark.parametrize(
    ("name", "content", "what"),
    [
        ("empty.jsonl", b"", "empty"),
        ("blank.jsonl", b"\n \n", "empty"),
        ("mark.json", b"\xef\xbb\xbf", "empty"),
        ("notes.txt", b"hello", "not JSON (.txt)"),
        ("noise", b"\x00\x01\x02", "not JSON (no suffix)"),
        ("config.json", b'{"lr": 1}', "JSON of no known format"),
        ("cut.json", b'{"messages": [', "broken JSON (Input data was truncated)"),
        ("deep.json", b"[" * 100_000, "broken JSON (JSON is nested too deeply)"),
    ],
)
def test_a_single_file_that_is_nothing_says_what_was_expected(tmp_path, name, content, what):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(FormatError) as caught:
        read_groups(path)
    assert str(caught.value) == (
        f"{path}: not a trajectory file ({what}); expected one of: {', '.join(FORMATS)}; "
        "name the format with --format (rtmc figures: --input-format) if you know it"
    )


def test_a_missing_file_is_one_line(tmp_path):
    with pytest.raises(FormatError, match=r"^.*/none\.jsonl: no such file or directory$"):
        read_groups(tmp_path / "none.jsonl")


def test_a_directory_without_trajectories_counts_what_it_holds(tmp_path):
    (tmp_path / "a.md").write_text("x")
    (tmp_path / "b.json").write_text("{}")
    with pytest.raises(FormatError, match="1 JSON of no known format; 1 not JSON"):
        read_groups(tmp_path)


def test_no_input():
    with pytest.raises(FormatError, match=r"^no input; give files, directories or -"):
        read_groups([])


def test_unknown_names_are_refused(tmp_path):
    with pytest.raises(OptionError, match="unknown format 'swe'; known are rtmc, "):
        read_groups(tmp_path, format="swe")
    with pytest.raises(OptionError, match="cannot group by 'model'; possible are problem, "):
        read_groups(tmp_path, group_by="model")  # type: ignore[arg-type]


# --- where files come from -----------------------------------------------------------------------


def test_directories_are_walked_in_order_and_foreign_files_counted(tmp_path):
    for name, problem in (("b.jsonl", "2"), ("a/x.jsonl", "1"), ("c.jsonl", "3")):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(row(problem))
    (tmp_path / "patch.diff").write_text("diff --git")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "x.jsonl").write_text(row("hidden"))
    reader = read_groups(tmp_path)
    assert problems(reader) == ["2", "3", "1"]
    assert reader.report.passed_over == {"not JSON (.diff)": 1}


def test_a_file_given_twice_counts_once(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text(row("a"))
    reader = read_groups([path, tmp_path])
    assert [len(group.rollouts) for group in reader] == [1]
    assert reader.report.passed_over == {"given twice": 1}


READ_STDIN = """
import json
from rtmc.formats import read_groups
reader = read_groups("-")
seen = [[group.problem_id for group in reader] for _ in range(2)]
print(json.dumps([seen, [str(s) for s in reader.report.skipped], reader.paths]))
"""


def read_stdin(given):
    """Read ``given`` in a process of its own: problems of two passes, skipped records, paths."""
    command = [sys.executable, "-c", READ_STDIN]
    return json.loads(
        subprocess.run(command, input=given, stdout=subprocess.PIPE, check=True).stdout
    )


def test_standard_input_is_spooled_and_can_be_read_again():
    seen, skipped, paths = read_stdin((row("a") + "\n" + row("b") + "\nbroken").encode())
    assert seen == [["a", "b"], ["a", "b"]]
    assert skipped[0].startswith("-:3: ")
    assert paths == []


def test_compressed_files(tmp_path):
    path = tmp_path / "rows.jsonl.gz"
    path.write_bytes(gzip.compress(row("a").encode()))
    assert problems(read_groups(path)) == ["a"]
    path.write_bytes(b"not gzip")
    with pytest.raises(FormatError, match=r"rows\.jsonl\.gz: cannot be read"):
        read_groups(path)


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.gz.part", "-"])
def test_compressed_bytes_are_known_whatever_their_name(tmp_path, name):
    packed = gzip.compress((row("a") + "\n" + row("b")).encode())
    if name == "-":
        assert read_stdin(packed)[0][0] == ["a", "b"]
    else:
        (tmp_path / name).write_bytes(packed)
        assert problems(read_groups(tmp_path / name)) == ["a", "b"]


def test_what_cannot_be_read_in_a_directory_is_skipped(tmp_path):
    (tmp_path / "a.jsonl").write_text(row("a"))
    cut = tmp_path / "b.jsonl.gz"
    cut.write_bytes(gzip.compress(row("b").encode() * 99)[:-9])
    link = tmp_path / "c.jsonl"
    link.symlink_to(tmp_path / "none")
    loop = tmp_path / "d.jsonl"
    loop.symlink_to(loop)
    (tmp_path / "e.jsonl").write_text(row("e"))
    for grouped in (False, True):
        reader = read_groups(tmp_path, grouped=grouped)
        assert problems(reader) == problems(reader) == ["a", "e"]
        assert [(s.source.path, s.reason) for s in reader.report.skipped] == [
            (str(cut), "cannot be read (Compressed file ended before the end-of-stream marker was "
             "reached)"),
            (str(link), "cannot be read (No such file or directory)"),
            (str(loop), "cannot be read (Too many levels of symbolic links)"),
        ]  # fmt: skip
    for path in (cut, link):
        with pytest.raises(FormatError, match=f"^{path}: (cannot be read|no such file)"):
            read_groups(path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_what_may_not_be_read_in_a_directory_is_skipped(tmp_path):
    (tmp_path / "a.jsonl").write_text(row("a"))
    closed, folder = tmp_path / "b.jsonl", tmp_path / "folder"
    closed.write_text(row("b"))
    folder.mkdir()
    closed.chmod(0)
    folder.chmod(0)
    try:
        reader = read_groups(tmp_path)
        assert problems(reader) == ["a"]
        assert [(s.source.path, s.reason) for s in reader.report.skipped] == [
            (str(closed), "cannot be read (Permission denied)"),
            (str(folder), "cannot be listed (Permission denied)"),
        ]
    finally:
        folder.chmod(0o700)


def test_a_directory_with_unreadable_files_only_says_so(tmp_path):
    link = tmp_path / "a.jsonl"
    link.symlink_to(tmp_path / "none")
    with pytest.raises(FormatError) as caught:
        read_groups(tmp_path)
    assert (
        f"no trajectory file found (1 unreadable, the first: {link}: cannot be read (No such file"
    ) in str(caught.value)


def test_pipes_sockets_and_devices_are_never_waited_for(tmp_path):
    (tmp_path / "a.jsonl").write_text(row("a"))
    pipe = tmp_path / "b.jsonl"
    os.mkfifo(pipe)
    reader = read_groups(tmp_path)
    assert problems(reader) == ["a"]
    assert reader.report.passed_over == {"not a regular file": 1}
    for path in (pipe, "/dev/zero"):
        with pytest.raises(FormatError) as caught:
            read_groups(path)
        assert str(caught.value) == (
            f"{path}: a pipe, socket or device; expected a file or a directory "
            "(- reads the standard input)"
        )


def test_a_pipe_that_the_shell_opened_is_read():
    reading, writing = os.pipe()
    try:
        os.write(writing, gzip.compress(row("a").encode()))
        os.close(writing)
        reader = read_groups(f"/dev/fd/{reading}")
    finally:
        os.close(reading)
    assert problems(reader) == ["a"]
    assert reader.paths == ()


def test_the_paths_that_are_read(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    packed = tmp_path / "b.jsonl.gz"
    packed.write_bytes(gzip.compress(row("b").encode()))
    (tmp_path / "a.jsonl").write_text(row("a"))
    (tmp_path / "link.jsonl").symlink_to("a.jsonl")
    (tmp_path / "notes.txt").write_text("x")
    reader = read_groups(["link.jsonl", "b.jsonl.gz"])
    assert reader.paths == (str(tmp_path / "a.jsonl"), str(packed))
    assert read_groups(".").paths == (str(tmp_path / "a.jsonl"), str(packed))


def test_outcome_files_do_not_count_as_passed_over(tmp_path):
    (tmp_path / "a.jsonl").write_text(row("a"))
    (tmp_path / "results.json").write_text('{"resolved_ids": ["a"]}')
    (tmp_path / "notes.txt").write_text("x")
    report = read_groups(tmp_path).report
    assert (report.outcome_files, report.passed_over) == (1, {"not JSON (.txt)": 1})
    with pytest.raises(FormatError, match=r"results\.json: not a trajectory file \(outcomes\)"):
        read_groups(tmp_path / "results.json")


def test_more_files_than_may_be_open(tmp_path):
    for number in range(80):
        (tmp_path / f"{number:02}.jsonl").write_text(row(f"p{number % 2}", str(number)))
    groups = read(tmp_path)
    assert [len(group.rollouts) for group in groups] == [40, 40]


def test_a_named_format_is_believed(tmp_path):
    path = tmp_path / "odd.json"
    messages = [{"content": "no role"}, {"role": "assistant", "content": "hi"}]
    path.write_text(json.dumps({"problem_id": "p", "rollout_id": "r", "messages": messages}))
    with pytest.raises(FormatError):
        read_groups(path)
    [group] = read(path, format="chat")
    assert len(group.rollouts[0].steps) == 1


@pytest.mark.parametrize("name", ["swe-agent", "mini-swe-agent"])
def test_a_named_format_that_gives_no_steps_is_refused(tmp_path, name):
    path = tmp_path / "rows.jsonl"
    message = {"role": "user", "content": "hi"}
    path.write_text((json.dumps({"problem_id": "p", "messages": [message]}) + "\n") * 8)
    with pytest.raises(FormatError) as caught:
        read_groups(path, format=name)
    assert str(caught.value) == (
        f"{path}: not of format {name}: nothing in it looks like that format, and read as such "
        "its 8 rollouts would have no steps; leave --format out, or name another (`rtmc formats` "
        "lists them)"
    )


def test_a_named_format_that_is_wrong_refuses_the_records(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text(row("a") + "\n" + row("b"))
    reader = read_groups(path, format="rtmc")
    assert list(reader) == []
    reason = "expected schema 'rtmc.rollout/1', got ''"
    assert skips(reader) == [(1, reason), (2, reason)]


def test_an_empty_list_is_no_rollout(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text(row("a") + "\n[]\n" + row("b") + "\n [ ] \n")
    reader = read_groups(path)
    assert problems(reader) == ["a", "b"]
    reason = "an empty list; expected one rollout, as an object or a list of its turns"
    assert skips(reader) == [(2, reason), (4, reason)]
    for name in ("mini-swe-agent", "openhands-events"):
        path.write_text("[]\n[]\n")
        assert list(read_groups(path, format=name)) == []


# --- anything at all -----------------------------------------------------------------------------


def check_reading(path, name=None):
    """Read the file, which may be refused as a whole; every record counts somewhere."""
    try:
        reader = read_groups(path, format=name)
    except FormatError as refusal:
        message = str(refusal)
    else:
        groups = list(reader)
        given_out = sum(len(group.rollouts) for group in groups)
        assert given_out == reader.report.rollouts
        assert given_out + reader.report.joined == reader.report.records
        return
    assert message.startswith(f"{path}: ")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(content=st.binary(max_size=200), name=st.sampled_from([None, *FORMATS]))
def test_arbitrary_bytes_are_read_or_refused(tmp_path, content, name):
    path = tmp_path / "any.jsonl"
    path.write_bytes(content)
    check_reading(path, name)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(value=JSON_VALUES, name=st.sampled_from([None, *FORMATS]))
def test_arbitrary_json_is_read_or_refused(tmp_path, value, name):
    path = tmp_path / "any.json"
    path.write_text(json.dumps(value))
    detect_format(value, str(path))
    check_reading(path, name)


def _mutations(value, draw):
    """Replace one place somewhere inside ``value`` by an arbitrary JSON value."""
    if isinstance(value, dict) and value and draw(st.booleans()):
        key = draw(st.sampled_from(sorted(value)))
        return {**value, key: _mutations(value[key], draw)}
    if isinstance(value, list) and value and draw(st.booleans()):
        index = draw(st.integers(0, len(value) - 1))
        return [*value[:index], _mutations(value[index], draw), *value[index + 1 :]]
    return draw(JSON_VALUES)


FILES = (
    "chat-openai.jsonl", "chat-anthropic.jsonl", "toy-3.json", "mini-v1/toy__calc-1.traj.json",
    "mini-v2/toy__calc-2.traj.json", "swe-agent-0/run-1/toy__calc-1.traj",
    "swe-agent-1/toy__calc-1.traj", "swe-agent-demo.traj", "openhands-completion/toy__calc-1.json",
    "openhands-events/output.jsonl", "openhands-events/toy-pairs.json", "r2e.jsonl",
    "openhands-sdk/toy-conversation/events.jsonl", "swe-smith.jsonl", "rtmc.jsonl",
)  # fmt: skip


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=300
)
@given(draw=st.data(), name=st.sampled_from(FILES))
def test_real_shapes_with_one_place_gone_wrong_are_read_or_refused(data, tmp_path, draw, name):
    text = (data / name).read_text()
    try:
        values = [json.loads(text)]
    except ValueError:
        values = [json.loads(line) for line in text.splitlines() if line.strip()]
    at = draw.draw(st.integers(0, len(values) - 1))
    values[at] = _mutations(values[at], draw.draw)
    path = tmp_path / "mutant.jsonl"
    path.write_text("\n".join(map(json.dumps, values)))
    check_reading(path)
