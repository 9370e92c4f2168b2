"""Importing rtmc loads nothing heavy, and this file could tell if it did."""

import subprocess
import sys

import rtmc

HEAVY = ("torch", "transformers", "ray", "pyarrow", "matplotlib", "pandas", "tqdm", "click")


def loaded_by(statement):
    """The heavy packages that a fresh interpreter has loaded after a statement."""
    program = f"import sys\n{statement}\nprint(*[n for n in {HEAVY!r} if n in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return done.stdout.split()


def test_import_loads_nothing_heavy():
    assert loaded_by("import rtmc") == []


def test_use_loads_nothing_heavy():
    """Names may be loaded late: use them."""
    use = "import rtmc; rtmc.credit(rtmc.Group('p', ()), rtmc.Config(estimator=rtmc.GRPO()))"
    assert loaded_by(use) == []


def test_the_check_can_fail():
    assert loaded_by("import rtmc, click, tqdm") == ["tqdm", "click"]


def test_import_has_no_effects():
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", "import rtmc"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert (done.stdout, done.stderr) == ("", "")


def test_every_public_name_exists():
    assert sorted(rtmc.__all__) == sorted(set(rtmc.__all__))
    for name in rtmc.__all__:
        assert getattr(rtmc, name) is not None
    assert set(rtmc.__all__) <= set(dir(rtmc))


def test_credit_stays_the_function():
    """Importing the module of the same name must not put itself there."""
    program = "import rtmc.credit; import rtmc; print(callable(rtmc.credit))"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "True\n"
