"""The packages that problems are made of, pinned, and how each is laid out as a workspace.

They come by pip, from whatever index or folder it is set up with, and are checked by their hash
before anything looks inside. pip wants metadata of an sdist and asks its build backend, which would
run code of the package on this machine: so backends of our own stand in, which copy what the sdist
already says of itself.
"""

import hashlib
import importlib.util
import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

import msgspec

from rtmc.errors import FormatError, OptionError, OutputError

__all__ = ["PACKAGES", "Package", "choose", "fetch", "installed", "unpack"]


class Package(msgspec.Struct, frozen=True, kw_only=True):
    """A pure-Python package whose sdist has its own tests.

    Attributes:
        name: as the index knows it.
        version: pinned.
        sha256: of the sdist.
        source: folder or module in the sdist; it comes to stand in the root of the workspace.
        tests: folders and files of the suite.
        licence: SPDX expression.
        held_out: never to be trained on.
        without: files of the suite that pytest of today does not take.
    """

    name: str
    version: str
    sha256: str
    source: str
    tests: tuple[str, ...] = ("tests",)
    licence: str
    held_out: bool = False
    without: tuple[str, ...] = ()

    @property
    def full_name(self) -> str:
        """Name and version."""
        return f"{self.name}-{self.version}"


def _table(*packages: Package) -> dict[str, Package]:
    return {package.name: package for package in packages}


PACKAGES = _table(
    Package(
        name="boltons",
        version="25.0.0",
        sha256="e110fbdc30b7b9868cb604e3f71d4722dd8f4dcb4a5ddd06028ba8f1ab0b5ace",
        source="boltons",
        licence="BSD-3-Clause",
        without=("tests/conftest.py",),
    ),
    Package(
        name="cachetools",
        version="6.2.6",
        sha256="16c33e1f276b9a9c0b49ab5782d901e3ad3de0dd6da9bf9bcd29ac5672f2f9e6",
        source="src/cachetools",
        licence="MIT",
    ),
    Package(
        name="funcy",
        version="2.0",
        sha256="3963315d59d41c6f30c04bc910e10ab50a3ac4a225868bfa96feed133df075cb",
        source="funcy",
        licence="BSD-3-Clause",
    ),
    Package(
        name="humanize",
        version="4.13.0",
        sha256="78f79e68f76f0b04d711c4e55d32bebef5be387148862cb1ef83d2b58e7935a0",
        source="src/humanize",
        licence="MIT",
        held_out=True,
    ),
    Package(
        name="inflection",
        version="0.5.1",
        sha256="1a29730d366e996aaacffb2f1f1cb9593dc38e2ddd30c91250c6dde09ea9b417",
        source="inflection",
        tests=("test_inflection.py",),
        licence="MIT",
    ),
    Package(
        name="isodate",
        version="0.7.2",
        sha256="4cd1aa0f43ca76f4a6c6c0292a85f40b35ec2e43e315b59f06e6d32171a953e6",
        source="src/isodate",
        licence="BSD-3-Clause",
    ),
    Package(
        name="jmespath",
        version="1.0.1",
        sha256="90261b206d6defd58fdd5e85f478bf633a2901798906be2ad389150c5c60edbe",
        source="jmespath",
        licence="MIT",
    ),
    Package(
        name="jsonpointer",
        version="3.0.0",
        sha256="2b2d729f2091522d61c3b31f82e11870f60b68f43fbc705cb76bf4b832af59ef",
        source="jsonpointer.py",
        tests=("tests.py",),
        licence="BSD-3-Clause",
        held_out=True,
    ),
    Package(
        name="markdown",
        version="3.9",
        sha256="d2900fe1782bd33bdbbd56859defef70c2e78fc46668f8eb9df3128138f2cb6a",
        source="markdown",
        licence="BSD-3-Clause",
    ),
    Package(
        name="mistune",
        version="3.1.4",
        sha256="b5a7f801d389f724ec702840c11d8fc48f2b33519102fc7ee739e8177b672164",
        source="src/mistune",
        licence="BSD-3-Clause",
    ),
    Package(
        name="more-itertools",
        version="10.8.0",
        sha256="f638ddf8a1a0d134181275fb5d58b086ead7c6a72429ad725c67503f13ba30bd",
        source="more_itertools",
        licence="MIT",
    ),
    Package(
        name="parse",
        version="1.20.2",
        sha256="b41d604d16503c79d81af5165155c0b20f6c8d6c559efa66b4b695c3e5a0a0ce",
        source="parse.py",
        licence="MIT",
    ),
    Package(
        name="pathspec",
        version="0.12.1",
        sha256="a482d51503a1ab33b1c67a6c3813a26953dbdc71c31dacaef9a838c4e29f5712",
        source="pathspec",
        licence="MPL-2.0",
    ),
    Package(
        name="schema",
        version="0.7.7",
        sha256="7da553abd2958a19dc2547c388cde53398b39196175a9be59ea1caf5ab0a1807",
        source="schema.py",
        tests=("test_schema.py",),
        licence="MIT",
    ),
    Package(
        name="semver",
        version="3.0.4",
        sha256="afc7d8c584a5ed0a11033af086e8af226a9c0b206f313e0301f8dd7b6b589602",
        source="src/semver",
        licence="BSD-3-Clause",
        held_out=True,
    ),
    Package(
        name="simpleeval",
        version="1.0.3",
        sha256="67bbf246040ac3b57c29cf048657b9cf31d4e7b9d6659684daa08ca8f1e45829",
        source="simpleeval.py",
        tests=("test_simpleeval.py",),
        licence="MIT",
    ),
    Package(
        name="sqlparse",
        version="0.5.3",
        sha256="09f67787f56a0b16ecdbde1bfc7f5d9c3371ca683cfeaa8e6ff60b4807ec9272",
        source="sqlparse",
        licence="BSD-3-Clause",
    ),
    Package(
        name="tabulate",
        version="0.10.0",
        sha256="e2cfde8f79420f6deeffdeda9aaec3b6bc5abce947655d17ac662b126e48a60d",
        source="tabulate",
        tests=("test",),
        licence="MIT",
    ),
    Package(
        name="toolz",
        version="1.1.0",
        sha256="27a5c770d068c110d9ed9323f24f1543e83b2f300a687b7891c1a6d56b697b5b",
        source="toolz",
        tests=("toolz/tests", "toolz/sandbox/tests"),
        licence="BSD-3-Clause",
    ),
    Package(
        name="unidiff",
        version="0.7.5",
        sha256="2e5f0162052248946b9f0970a40e9e124236bf86c82b70821143a6fc1dea2574",
        source="unidiff",
        licence="MIT",
        held_out=True,
    ),
    Package(
        name="uritemplate",
        version="4.2.0",
        sha256="480c2ed180878955863323eea31b0ede668795de182617fef9c6ca09e6ec9d0e",
        source="uritemplate",
        licence="BSD-3-Clause OR Apache-2.0",
    ),
    Package(
        name="webcolors",
        version="24.11.1",
        sha256="ecb3d768f32202af770477b8b65f318fa4f566c22948673a977b00d589dd80f6",
        source="src/webcolors",
        licence="BSD-3-Clause",
    ),
    Package(
        name="xmltodict",
        version="1.0.2",
        sha256="54306780b7c2175a3967cad1db92f218207e5bc1aba697d887807c0fb68b7649",
        source="xmltodict.py",
        licence="MIT",
    ),
)
"""All of them, by name; none is a dependency of rtmc, whose copy the agent could read."""

BACKENDS = ("setuptools.build_meta", "flit_core.buildapi", "hatchling.build", "pdm.backend",
            "poetry.core.masonry.api")  # fmt: skip
"""Build backends that sdists name."""

STAND_IN = """\
import os, shutil, sys
from email.parser import BytesParser

__legacy__ = sys.modules[__name__]


def prepare_metadata_for_build_wheel(folder, settings=None):
    with open("PKG-INFO", "rb") as file:
        known = BytesParser().parse(file)
    name = f"{known['Name'].replace('-', '_')}-{known['Version']}.dist-info"
    os.mkdir(os.path.join(folder, name))
    shutil.copy("PKG-INFO", os.path.join(folder, name, "METADATA"))
    return name
"""

PYTEST_INI = b"""\
[pytest]
pythonpath = .
python_files = test_*.py *_test.py tests.py
addopts = -p no:cacheprovider
"""
"""Replaces the package's own, which asks for plugins or names paths of the sdist."""


def choose(names: Sequence[str]) -> list[Package]:
    """Find packages by name; all of them if none is named.

    Raises:
        OptionError: a name is not in the table.
    """
    for name in names:
        if name not in PACKAGES:
            raise OptionError(f"no package {name!r}; choose from {', '.join(PACKAGES)}")
    return [PACKAGES[name] for name in dict.fromkeys(names or PACKAGES)]


def installed(package: Package) -> bool:
    """Tell whether this Python has a copy of the package, which an agent could read."""
    return importlib.util.find_spec(PurePosixPath(package.source).stem) is not None


def fetch(package: Package, folder: Path) -> Path:
    """Give the package's sdist, by pip unless it lies in the folder already.

    Args:
        package: what to get.
        folder: keeps it.

    Raises:
        OptionError: pip cannot get it.
        FormatError: what lies there is another file.
        OutputError: the folder cannot be made.
    """
    found = _sdist(package, folder)
    if found is not None:
        return found
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"cannot make the folder {folder}: {error.strerror}") from error
    with tempfile.TemporaryDirectory(dir=folder) as place:
        said = _download(package, Path(place))
        for file in Path(place).glob("*.tar.gz"):
            file.replace(folder / file.name)
    found = _sdist(package, folder)
    if found is None:
        last = [line for line in said.splitlines() if line.lower().startswith("error")] or [said]
        raise OptionError(
            f"{package.full_name}: pip did not get its sdist ({last[-1].strip()}); set pip up "
            f"with an index that has it, put the file into {folder}, or choose other --packages"
        )
    return found


def _sdist(package: Package, folder: Path) -> Path | None:
    stem = f"{package.name.replace('-', '_')}-{package.version}"
    for name in (stem, package.full_name):
        path = folder / f"{name}.tar.gz"
        if path.exists():
            if hashlib.sha256(path.read_bytes()).hexdigest() != package.sha256:
                raise FormatError(f"{path}: not the sdist that rtmc has pinned; remove it")
            return path
    return None


def _download(package: Package, place: Path) -> str:
    """Have pip download the sdist; give what it says."""
    stand_ins = place / "stand-ins"
    for backend in BACKENDS:
        module = stand_ins.joinpath(*backend.split("."))
        module.parent.mkdir(parents=True, exist_ok=True)
        module.with_suffix(".py").write_text(STAND_IN)
        for above in module.parents[: backend.count(".")]:
            (above / "__init__.py").touch()  # else an installed backend would come first
    pinned = place / "requirements.txt"
    pinned.write_text(f"{package.name}=={package.version} --hash=sha256:{package.sha256}\n")
    result = subprocess.run(
        [
            sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes",
            "--no-binary=:all:", "--no-build-isolation", "--use-pep517",
            "--disable-pip-version-check", "--dest", str(place), "-r", str(pinned),
        ],
        env={**os.environ, "PYTHONPATH": str(stand_ins)},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
        text=True, check=False,
    )  # fmt: skip
    return result.stdout


def unpack(package: Package, sdist: Path) -> dict[str, bytes]:
    """Lay a package out as a workspace: its source in the root, its tests, its licence and readme.

    Raises:
        FormatError: the sdist lacks the source or the tests.
    """
    with tarfile.open(sdist) as tar:
        members = {
            member.name.partition("/")[2]: file.read()
            for member in tar
            if member.isfile() and (file := tar.extractfile(member))
        }
    root = package.source.rpartition("/")[0]
    files = {"pytest.ini": PYTEST_INI}
    for path, data in members.items():
        if path.endswith((".pyc", ".orig")) or path in package.without:
            continue
        if _under(path, [package.source]):
            files[path.removeprefix(f"{root}/")] = data
        elif _under(path, package.tests) or _is_notice(path):
            files[path] = data
    for wanted in (package.source.removeprefix(f"{root}/"), *package.tests):
        if not any(_under(path, [wanted]) for path in files):
            raise FormatError(f"{sdist}: the sdist has no {wanted}")
    return dict(sorted(files.items()))


def _is_notice(path: str) -> bool:
    return "/" not in path and path.upper().startswith(
        ("LICENSE", "LICENCE", "COPYING", "NOTICE", "AUTHORS", "README")
    )


def _under(path: str, places: Sequence[str]) -> bool:
    return any(path == place or path.startswith(f"{place}/") for place in places)
