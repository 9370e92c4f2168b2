"""A diff of the workspace: git applies it and gets the same files."""

import io
import subprocess
import tarfile

from hypothesis import given, settings
from hypothesis import strategies as st

from rtmc.agent.tasks.difference import LARGEST, contents, difference

OLD = {"a.py": b"x = 1\ny = 2\n", "gone.py": b"z\n"}


def test_by_hand():
    new = {"a.py": b"x = 1\ny = 3", "sub/new.py": b"n\n", "__pycache__/a.pyc": b"\0"}
    assert difference(OLD, new).decode() == (
        "diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n"
        "@@ -1,2 +1,2 @@\n x = 1\n-y = 2\n+y = 3\n"
        "\\ No newline at end of file\n"
        "diff --git a/gone.py b/gone.py\ndeleted file mode 100644\n--- a/gone.py\n+++ /dev/null\n"
        "@@ -1 +0,0 @@\n-z\n"
        "diff --git a/sub/new.py b/sub/new.py\nnew file mode 100644\n--- /dev/null\n"
        "+++ b/sub/new.py\n@@ -0,0 +1 @@\n+n\n"
    )
    assert difference(OLD, OLD) == b""


def test_what_is_no_text_and_what_is_no_file():
    new = {"a.py": b"\0" * 9, "gone.py": b"z" * (LARGEST + 1)}
    said = difference(OLD, new)
    assert said.count(b"Binary files") == 2
    assert len(said) < 300
    with io.BytesIO() as out:
        with tarfile.open(fileobj=out, mode="w") as tar:
            for name, kind in (("a.py", tarfile.SYMTYPE), ("p", tarfile.FIFOTYPE)):
                entry = tarfile.TarInfo(name)
                entry.type, entry.linkname = kind, "/etc/passwd"
                tar.addfile(entry)
        found = contents(out.getvalue())
    assert found == {"a.py": None, "p": None}
    assert difference({}, found) == b""
    assert b"deleted file" in difference(OLD, found)


texts = st.binary(max_size=40).map(lambda data: data.replace(b"\0", b"0")) | st.lists(
    st.sampled_from([b"a\n", b"b\n", b"\xff\r\n", b"\r", b"\x0c\n", b"c"]), max_size=9
).map(b"".join)
paths = st.sampled_from(["a.py", "b c.txt", "sub/d.py", "sub/e"])
trees = st.dictionaries(paths, texts, max_size=4)


@settings(max_examples=40, deadline=None)
@given(trees, trees)
def test_git_applies_it(tmp_path_factory, old, new):
    here = tmp_path_factory.mktemp("tree")
    for path, data in old.items():
        (here / path).parent.mkdir(exist_ok=True)
        (here / path).write_bytes(data)
    patch = difference(old, new)
    git = ["git", "apply", "--whitespace=nowarn", "-"]
    if any(old.get(path) != new.get(path) for path in (*old, *new)):
        done = subprocess.run(git, input=patch, cwd=here, capture_output=True, check=False)
        assert done.returncode == 0, (done.stderr, patch)
    found = {str(p.relative_to(here)): p.read_bytes() for p in here.rglob("*") if p.is_file()}
    assert found == new
