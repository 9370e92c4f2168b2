"""An engine for images that are folders: a container is a copy of one, in bubblewrap.

Only the engine is scripted. Git, patches, interpreters, tests and logs are real, and lie where
the images of R2E-Gym and SWE-bench have them.
"""

import functools
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from docker.errors import ImageNotFound
from fake_docker import FakeContainer

from rtmc.agent.sandbox import Limits, open_sandbox

BROKEN = '''"""Sums."""


def mean(values):
    return sum(values) / (len(values) + 1)


def total(values):
    return sum(values)
'''
FIXED = BROKEN.replace("(len(values) + 1)", "len(values)")


class ImageContainer(FakeContainer):
    """A container: a copy of the image for its root, and programs of this machine."""

    def __init__(self, image: Path, options: dict[str, Any]) -> None:
        self.root = Path(tempfile.mkdtemp(prefix="container-"))
        shutil.copytree(image, self.root, symlinks=True, dirs_exist_ok=True)
        python = [sys.prefix, sys.base_prefix]
        argv = [
            "bwrap", "--unshare-pid", "--unshare-net", "--die-with-parent",
            "--bind", self.root, "/",
            "--ro-bind", "/usr", "/usr", "--ro-bind", "/etc", "/etc",
            "--symlink", "usr/bin", "/bin", "--symlink", "usr/lib", "/lib",
            "--symlink", "usr/lib64", "/lib64", "--proc", "/proc", "--dev", "/dev",
            "--tmpfs", "/tmp", "--dir", "/root", "--setenv", "HOME", "/root",
            *(word for place in python for word in ("--ro-bind", place, place)),
            "--chdir", options["working_dir"], "--", *options["entrypoint"],
        ]  # fmt: skip
        become = f"import os; os.execvp('bwrap', {list(map(str, argv))!r})"
        inner = {**options, "entrypoint": ["python3", "-c", become], "working_dir": "/"}
        super().__init__(inner)
        self.asked = options

    def remove(self, force: bool) -> None:
        super().remove(force)
        shutil.rmtree(self.root, ignore_errors=True)


class Engine:
    """The client; ``opener`` opens sandboxes with it.

    An image is known by its name without registry and tag.
    """

    def __init__(self, images: dict[str, Path] | None = None) -> None:
        self.images = images or {}
        self.containers = self
        self.created: list[ImageContainer] = []

    def create(self, image: str, **options: Any) -> ImageContainer:
        name = image.split("/")[-1].split(":")[0]
        if name not in self.images:
            raise ImageNotFound("404")
        self.created.append(ImageContainer(self.images[name], options))
        return self.created[-1]

    def opener(self, **limits: Any) -> Any:
        return functools.partial(open_sandbox, "docker", Limits(**limits), client=self)


def git(folder: Path, *words: str) -> str:
    """Run git as if nobody had configured it."""
    who = {f"GIT_{role}_{what}": "x@y" for role in ("AUTHOR", "COMMITTER")
           for what in ("NAME", "EMAIL")}  # fmt: skip
    return subprocess.run(
        ["git", "-C", str(folder), "-c", "init.defaultBranch=main", *words],
        env={"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": os.devnull, **who},
        check=True,
        capture_output=True,
        text=True,
    ).stdout


def put(folder: Path, files: dict[str, str]) -> None:
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)


def make_repository(testbed: Path) -> tuple[str, str]:
    """Make a project whose next commit mends ``mean``; give that commit and its parent.

    As the images have it: the parent checked out, the branch beyond, tracked files changed and
    removed, others lying beside.
    """
    put(testbed, {
        "calc/__init__.py": BROKEN,
        "tests/test_calc.py": (
            "from calc import total\n\n\ndef test_total():\n    assert total([1, 2]) == 3\n"
        ),
        "setup.cfg": "[tool:pytest]\naddopts = --no-such-option\n",
        "pyproject.toml": "[project]\nname = 'calc'\n",
    })  # fmt: skip
    git(testbed, "init", "-q")
    git(testbed, "add", "-A")
    git(testbed, "commit", "-qm", "calc")
    parent = git(testbed, "rev-parse", "HEAD").strip()
    put(testbed, {"calc/__init__.py": FIXED})
    git(testbed, "commit", "-qam", "Mend mean")
    commit = git(testbed, "rev-parse", "HEAD").strip()
    git(testbed, "tag", "v2")
    git(testbed, "gc", "-q")
    git(testbed, "commit-graph", "write", "--reachable")
    git(testbed, "checkout", "-q", parent)
    put(testbed, {"setup.cfg": "[tool:pytest]\naddopts = -p no:cacheprovider\n"})
    (testbed / "pyproject.toml").unlink()
    put(testbed, {"calc.egg-info/PKG-INFO": "Name: calc\n"})
    return commit, parent


def make_python(prefix: Path) -> None:
    """Make an environment whose packages are those of this one."""
    (prefix / "bin").mkdir(parents=True)
    (prefix / "bin/python").symlink_to(os.path.realpath(sys.executable))
    (prefix / "bin/pytest").write_text(
        f'#!/bin/sh\nexec {"/" + str(prefix).split("/image/")[1]}/bin/python -m pytest "$@"\n'
    )
    (prefix / "bin/pytest").chmod(0o755)
    (prefix / "pyvenv.cfg").write_text(f"home = {sys.base_prefix}/bin\n")
    packages = Path("lib", f"python{sys.version_info[0]}.{sys.version_info[1]}", "site-packages")
    (prefix / packages).parent.mkdir(parents=True)
    (prefix / packages).symlink_to(sysconfig.get_path("purelib"))
