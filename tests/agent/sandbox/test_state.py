"""The hash of a workspace: equal where, and only where, its files are."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rtmc.agent.sandbox import Limits, open_sandbox

NAMES = ["a", "b", "d/a", "d/e/b", "d/é", "f g"]
DATA = [b"", b"x", b"y", b"xx", b"f\0a\0"]

names = st.sampled_from(NAMES)
operations = st.lists(
    st.one_of(
        st.tuples(st.just("write"), names, st.sampled_from(DATA)),
        st.tuples(st.just("rename"), names, names),
        st.tuples(st.just("delete"), names),
        st.tuples(st.just("mode"), names, st.booleans()),
    ),
    min_size=1,
    max_size=12,
)


@pytest.fixture(scope="module")
def workspace(bwrap_works):
    with open_sandbox(limits=Limits()) as sandbox:
        yield sandbox


# What the files were at each state seen so far, over all examples.
SEEN: dict[str, frozenset] = {}
STATES: dict[frozenset, str] = {}


@settings(max_examples=60)
@given(operations)
def test_states_are_equal_as_the_files_are(workspace, steps):
    """Whatever way led there: a dict of files says the same as the hash."""
    workspace.run("cd /workspace; rm -rf ./*")
    files: dict[str, tuple[bytes, bool]] = {}
    for what, name, *more in steps:
        if what == "write":
            workspace.write(name, more[0])
            files[name] = (more[0], files.get(name, (b"", False))[1])
        elif name not in files or (what == "rename" and more[0] == name):
            continue
        elif what == "rename":
            workspace.run(f"mkdir -p \"$(dirname '{more[0]}')\"; mv '{name}' '{more[0]}'")
            files[more[0]] = files.pop(name)
        elif what == "delete":
            workspace.run(f"rm '{name}'")
            del files[name]
        else:
            workspace.run(f"chmod {'u+x' if more[0] else 'a-x'} '{name}'")
            files[name] = (files[name][0], more[0])
        model = frozenset(files.items())
        state = workspace.state()
        assert SEEN.setdefault(state, model) == model
        assert STATES.setdefault(model, state) == state


@pytest.fixture
def fresh(bwrap):
    sandbox = bwrap()
    sandbox.put({"a.py": b"x = 1\n", "d/b.py": b""})
    return sandbox


@pytest.mark.parametrize(
    "command",
    [
        "mkdir empty d/empty",
        "touch -d 2001-01-01 a.py",
        "mkdir __pycache__ d/.pytest_cache .git; for f in __pycache__ d/.pytest_cache .git; do "
        "echo x > $f/x; done",
        "chmod 600 a.py",
        "mkfifo pipe",
        "cp a.py c; rm a.py; mv c a.py",
        "cat a.py",
        "cd d; export X=1",
    ],
)
def test_what_does_not_change_it(fresh, command):
    before = fresh.state()
    assert fresh.run(command).exit_code == 0
    assert fresh.state() == before


@pytest.mark.parametrize(
    "command",
    [
        "echo >> a.py",
        "printf 'x = 2\\n' > a.py",
        "chmod +x a.py",
        "mv a.py b.py",
        "mv d e",
        "rm d/b.py",
        "> new",
        "ln -s a.py link",
        "rm a.py; ln -s 'x = 1\n' a.py",
        "echo '*.tmp' > .gitignore",
        "printf 'y' | dd of=a.py conv=notrunc 2>/dev/null; touch -d 2001-01-01 a.py",
        "python3 -c 'import mmap, os\nmmap.mmap(os.open(\"a.py\", os.O_RDWR), 0)[0] = 89'",
    ],
)
def test_what_changes_it(fresh, command):
    before = fresh.state()
    assert fresh.run(command).exit_code == 0
    assert fresh.state() != before


def test_a_link_is_where_it_points(fresh):
    fresh.run("ln -s a.py link")
    before = fresh.state()
    fresh.run("ln -sf d/b.py link")
    assert fresh.state() != before
    fresh.run("ln -sf /etc/passwd link; ln -s / root; ln -s . self")
    assert fresh.state()


def test_names_that_are_no_text(fresh):
    before = fresh.state()
    fresh.run(r"touch $'\377' $'a\nb'")
    assert fresh.state() != before


def test_it_is_the_same_in_every_sandbox_and_on_every_day(fresh):
    """The hash stands in rollouts that were written down: it must not change by itself."""
    assert fresh.state() == "621314266d45c7480ad2be2c40990f62ed9f494f"
    with open_sandbox("local", unsafe=True) as other:
        other.put({"d/b.py": b"", "a.py": b"x = 1\n"})
        assert other.state() == fresh.state()
