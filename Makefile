# Two commands do everything on a fresh machine with Python 3.11+: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test check browser bubblewrap clean

demo: $(VENV)/.base
	@mkdir -p demo-output
	$(BIN)/rtmc credit examples/group.jsonl -o demo-output/credit.jsonl
	@echo
	$(BIN)/rtmc show examples/group.jsonl
	@echo
	$(BIN)/rtmc report examples/group.jsonl -o demo-output/report.html
	@echo
	@echo "The credit of every step is in demo-output/credit.jsonl, one line a rollout."
	@echo "Open demo-output/report.html in a browser to see the tree, the numbers and the texts."
	@echo "Next: $(BIN)/rtmc report YOUR-ROLLOUTS -o report.html; $(BIN)/rtmc credit --help"

test: check browser bubblewrap
	$(BIN)/python -m pytest

# The report is tested in a real Chromium; without one those tests are skipped, with the reason.
browser:
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || { \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    echo "Installing Chromium for the tests of the report …"; \
	    { apt-get update -qq && apt-get install -y -qq chromium; } >/dev/null 2>&1 \
	    || echo "Chromium could not be installed: the tests in a browser will be skipped"; \
	  else echo "No Chromium here: the tests in a browser will be skipped (Debian: apt-get install chromium)"; fi; }

# The sandbox is tested in a real bubblewrap; without one those tests are skipped, with the reason.
bubblewrap:
	@command -v bwrap >/dev/null || { \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    echo "Installing bubblewrap for the tests of the sandbox …"; \
	    { apt-get update -qq && apt-get install -y -qq bubblewrap; } >/dev/null 2>&1 \
	    || echo "bubblewrap could not be installed: the tests of the sandbox will be skipped"; \
	  else echo "No bubblewrap here: the tests of the sandbox will be skipped (Debian: apt-get install bubblewrap)"; fi; }

check: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/ty check
	$(BIN)/lint-imports

$(VENV)/bin/python:
	@command -v $(PYTHON) >/dev/null || { echo "No $(PYTHON) here: install Python 3.11 or newer, or say make PYTHON=/path/to/python"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "$(PYTHON) is older than 3.11: say make PYTHON=/path/to/a/newer/python"; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then apt-get update && apt-get install -y python3-venv; \
	  else echo "Python has no venv module: install it (Debian: apt-get install python3-venv)"; exit 1; fi; }
	@echo "Setting up $(VENV) …"
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.base: pyproject.toml constraints.txt | $(VENV)/bin/python
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	@touch $@

# The tests use a real torch: see constraints.txt.
$(VENV)/.dev: pyproject.toml constraints.txt | $(VENV)/bin/python
	@echo "Installing what checks and tests need …"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

clean:
	rm -rf $(VENV) demo-output build dist .pytest_cache .ruff_cache .hypothesis .import_linter_cache
