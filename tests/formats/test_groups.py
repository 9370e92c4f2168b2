"""Grouping, joining the records of one rollout, order, streaming."""

import json

import msgspec
import pytest

from rtmc.errors import FormatError
from rtmc.formats import read, read_groups
from rtmc.rollouts import Rollout, Span, Step, ToolCall, encode_rollout


def step(command, output="", **fields):
    return Step((ToolCall("bash", {"command": command}, output),), **fields)


def own(problem, rollout, *steps, **fields):
    return encode_rollout(Rollout(problem, rollout, tuple(steps), **fields))


def write(path, *rows):
    path.write_bytes(b"\n".join(rows) + b"\n")
    return path


def commands(rollout):
    return [s.calls[0].arguments["command"] for s in rollout.steps]


def ids(groups):
    return [(g.problem_id, [r.rollout_id for r in g.rollouts]) for g in groups]


def without_source(groups):
    return [
        msgspec.structs.replace(
            g,
            rollouts=tuple(msgspec.structs.replace(r, source=type(r.source)()) for r in g.rollouts),
        )
        for g in groups
    ]


def interleaved():
    """Groups of 4, 3 and 4 rollouts, dealt one by one; the middle one all reward 5."""
    rows = []
    for number in range(4):
        for problem, size in (("a", 4), ("b", 3), ("c", 4)):
            if number < size:
                reward = 5.0 if problem == "b" else float(number % 2)
                rows.append(own(problem, str(number), step(f"{problem}{number}"), reward=reward))
    return rows


def test_case_5_interleaved_groups(tmp_path):
    groups = read(write(tmp_path / "rows.jsonl", *interleaved()))
    assert ids(groups) == [("a", list("0123")), ("b", list("012")), ("c", list("0123"))]
    assert [r.reward for r in groups[1].rollouts] == [5.0, 5.0, 5.0]
    assert [r.reward for r in groups[2].rollouts] == [0.0, 1.0, 0.0, 1.0]


def test_how_the_input_is_cut_into_files_does_not_matter(tmp_path):
    rows = interleaved()
    whole = read(write(tmp_path / "rows.jsonl", *rows))
    for size in (1, 3, 5):
        folder = tmp_path / str(size)
        folder.mkdir()
        for number, at in enumerate(range(0, len(rows), size)):
            write(folder / f"{number:02}.jsonl", *rows[at : at + size])
        assert without_source(read(folder)) == without_source(whole)


def test_a_reader_can_be_read_again_and_knows_its_length(tmp_path):
    reader = read_groups(write(tmp_path / "rows.jsonl", *interleaved()))
    assert len(reader) == 3
    assert list(reader) == list(reader)
    assert (reader.report.records, reader.report.rollouts) == (11, 11)


def test_own_rollouts_come_back_equal(tmp_path):
    rollout = Rollout(
        "p",
        "r",
        (
            Step(
                (
                    ToolCall("bash", {"command": "ls", "n": [1, None]}, "o", 1, True, True, "/w"),
                    ToolCall("x", "raw"),
                ),
                "thought",
                0.25,
                (Span(0, 3, 9),),
                "seen",
                "state",
            ),
            Step(),
        ),
        0.5,
        "passed",
        "why",
        "model",
        "v1",
        "/repo",
        False,
        (10, 20),
    )
    path = write(tmp_path / "rows.jsonl", encode_rollout(rollout))
    [group] = read(path)
    [back] = group.rollouts
    assert msgspec.structs.replace(back, source=rollout.source) == rollout
    assert (back.source.path, back.source.line) == (str(path), 1)


# --- records of one rollout ----------------------------------------------------------------------


def test_case_7_rows_of_one_rollout_are_joined(tmp_path):
    path = write(
        tmp_path / "rows.jsonl",
        own("p", "win", step("ls"), reward=1.0),
        own("p", "lose", step("rm"), reward=0.0),
        own("p", "win", step("edit"), reward=1.0),
        own("p", "win", step("test"), reward=1.0),
    )
    reader = read_groups(path)
    [group] = reader
    assert [(r.rollout_id, r.reward, commands(r)) for r in group.rollouts] == [
        ("win", 1.0, ["ls", "edit", "test"]),
        ("lose", 0.0, ["rm"]),
    ]
    assert (reader.report.records, reader.report.joined, reader.report.rollouts) == (4, 2, 2)


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_rows_that_extend_each_other_keep_the_longest(tmp_path, order):
    steps = [step("ls"), step("edit"), step("test")]
    rows = [own("p", "r", *steps[: n + 1]) for n in range(3)]
    [group] = read(write(tmp_path / "rows.jsonl", *(rows[i] for i in order)))
    assert commands(group.rollouts[0]) == ["ls", "edit", "test"]


def test_case_22_turns_replayed_after_compaction_are_no_new_steps(tmp_path):
    before = [step(str(n), spans=(Span(0, n, n + 1),)) for n in range(5)]
    # the head and the tail are kept; the middle has become a summary
    after = [before[0], before[3], before[4], step("5", spans=(Span(0, 7, 8),))]
    path = write(
        tmp_path / "rows.jsonl",
        own("p", "r", *before, sequence_lengths=(9,)),
        own("p", "r", *after, sequence_lengths=(8,)),
    )
    [rollout] = read(path)[0].rollouts
    assert commands(rollout) == ["0", "1", "2", "3", "4", "5"]
    assert rollout.sequence_lengths == (9, 8)
    assert [s.spans[0] for s in rollout.steps] == [
        *(Span(0, n, n + 1) for n in range(5)),
        Span(1, 7, 8),
    ]


def test_a_row_that_ends_before_its_last_result_gets_it_from_the_next(tmp_path):
    early = Step((ToolCall("bash", {"command": "ls"}),), spans=(Span(0, 0, 4),))
    late = [step("ls", "calc.py", spans=(Span(0, 0, 4),)), step("pwd", spans=(Span(0, 9, 12),))]
    path = write(
        tmp_path / "rows.jsonl",
        own("p", "r", early, sequence_lengths=(4,)),
        own("p", "r", *late, sequence_lengths=(12,)),
    )
    [rollout] = read(path)[0].rollouts
    assert [s.calls[0].output for s in rollout.steps] == ["calc.py", ""]
    assert [s.spans for s in rollout.steps] == [(Span(0, 0, 4),), (Span(1, 9, 12),)]


def test_rows_of_one_rollout_must_agree_on_the_reward(tmp_path):
    path = write(
        tmp_path / "rows.jsonl",
        own("p", "r", step("a"), reward=1.0),
        own("p", "r", step("b"), reward=0.0),
        own("p", "r", step("c")),
    )
    reader = read_groups(path)
    [group] = reader
    assert commands(group.rollouts[0]) == ["a", "c"]
    assert [str(s) for s in reader.report.skipped] == [
        f"{path}:2: reward 0 for rollout 'r' of problem 'p', whose first record ({path}:1) says 1"
    ]


def test_a_reward_on_the_last_row_only(tmp_path):
    rows = [own("p", "r", step("a")), own("p", "r", step("b"), reward=1.0, status="passed")]
    [group] = read(write(tmp_path / "rows.jsonl", *rows))
    assert (group.rollouts[0].reward, group.rollouts[0].status) == (1.0, "passed")


@pytest.mark.parametrize("grouped", [False, True])
def test_rows_that_share_no_step_are_joined_with_a_warning(tmp_path, grouped):
    path = write(
        tmp_path / "rows.jsonl",
        own("p", "extended", step("ls")),
        own("p", "extended", step("ls"), step("pwd")),
        own("p", "0", step("a"), step("b")),
        own("p", "0", step("c")),
        own("p", "0", step("d")),
        own("p", "1", step("e")),
        own("p", "1", step("f")),
        own("p", "empty"),
        own("p", "empty", step("g")),
    )
    reader = read_groups(path, grouped=grouped)
    for _ in range(2):
        [group] = reader
        assert [len(r.steps) for r in group.rollouts] == [2, 4, 2, 1]
        assert reader.report.warnings == [
            "2 rollouts joined from rows whose steps share nothing (first: '0' of problem 'p'); "
            "if these rows are attempts of their own, give each its own rollout_id"
        ]


@pytest.mark.parametrize("grouped", [False, True])
def test_records_are_those_that_were_read(tmp_path, grouped):
    bad_body = {"problem_id": "p", "rollout_id": "b", "schema": "rtmc.rollout/1", "steps": 5}
    path = write(
        tmp_path / "rows.jsonl",
        own("p", "a", step("a"), reward=1.0),
        b"not JSON",
        json.dumps(bad_body).encode(),
        own("p", "a", step("a"), step("b")),
        own("p", "a", step("c"), reward=0.0),
    )
    reader = read_groups(path, grouped=grouped)
    for _ in range(2):
        list(reader)
        report = reader.report
        assert (report.records, report.rollouts, report.joined) == (2, 1, 1)
        assert sorted(s.source.line for s in report.skipped) == [2, 3, 5]


@pytest.mark.parametrize("grouped", [False, True])
def test_rollouts_without_steps_are_worth_a_warning(tmp_path, grouped):
    path = write(tmp_path / "rows.jsonl", own("p", "a"), own("p", "b", step("x")), own("p", "c"))
    reader = read_groups(path, grouped=grouped)
    assert ids(reader) == [("p", ["a", "b", "c"])]
    assert reader.report.warnings == [
        "2 rollouts without steps (first: 'a' of problem 'p'); is --format right?"
    ]


def test_rows_without_an_id_are_never_joined(tmp_path):
    row = json.dumps({"problem_id": "p", "messages": [{"role": "assistant", "content": "hi"}]})
    path = tmp_path / "rows.jsonl"
    path.write_text(f"{row}\n{row}\n")
    [group] = read(path)
    first, second = (r.rollout_id for r in group.rollouts)
    assert second == first + "#2"


def test_equal_ids_of_two_models_are_two_rollouts(tmp_path):
    rows = [own("p", "0", step("a"), model="m"), own("p", "0", step("b"), model="n")]
    [group] = read(write(tmp_path / "rows.jsonl", *rows))
    assert [r.rollout_id for r in group.rollouts] == ["0", "0#2"]


# --- models --------------------------------------------------------------------------------------


def test_case_43_two_models_are_one_group_with_a_warning_or_two_groups(tmp_path):
    path = write(
        tmp_path / "rows.jsonl",
        own("p", "a", step("x"), model="m"),
        own("p", "b", step("x"), model="n"),
        own("q", "a", step("x"), model="m"),
    )
    reader = read_groups(path)
    assert ids(reader) == [("p", ["a", "b"]), ("q", ["a"])]
    assert reader.report.warnings == [
        "1 problem with rollouts of several models in one group (p: m, n); "
        "group by problem,model to separate them"
    ]
    apart = read_groups(path, group_by="problem,model")
    assert ids(apart) == [("p", ["a"]), ("p", ["b"]), ("q", ["a"])]
    assert apart.report.warnings == []
    streamed = read_groups(path, grouped=True)
    assert ids(streamed) == ids(reader)
    assert streamed.report.warnings == reader.report.warnings


# --- grouped input -------------------------------------------------------------------------------


def test_grouped_input_reads_alike_in_one_pass(tmp_path):
    rows = sorted(interleaved(), key=lambda row: json.loads(row)["problem_id"])
    path = write(tmp_path / "rows.jsonl", *rows, b"broken")
    streamed = read_groups(path, grouped=True)
    assert list(streamed) == read(path)
    assert list(streamed) == read(path)
    assert streamed.report.records == 11
    assert len(streamed.report.skipped) == 1
    with pytest.raises(TypeError, match="does not know its length"):
        len(streamed)


def test_a_problem_that_comes_back_breaks_the_promise(tmp_path):
    path = write(tmp_path / "rows.jsonl", own("a", "1"), own("b", "1"), own("a", "2"))
    with pytest.raises(FormatError) as caught:
        list(read_groups(path, grouped=True))
    assert str(caught.value) == (
        f"{path}:3: problem 'a' appears again after its rows ended at {path}:1; the input is not "
        "grouped: sort it by problem or read it without --grouped"
    )
