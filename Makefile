# Two commands do everything on a fresh machine with Python 3.11+: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test check browser bubblewrap clean

# Train on real files and real pytest, then test, credit and report. A demo that was stopped goes on.
DEMO := demo-output
HELD_OUT := --task tiny:split=test --skip 1000 --problems 32 -n 2 --max-tokens 40 --max-steps 16

demo: $(VENV)/.train bubblewrap
	@mkdir -p $(DEMO)
	@echo "Training a model of 1.3 million parameters to mend small repositories, with RTMC:"
	$(BIN)/rtmc train tiny --set optimizer.steps=6 --set evaluation.problems=32 -o $(DEMO)/run
	@echo
	@echo "Before and after, on problems that were not trained on:"
	@rm -f $(DEMO)/before.jsonl $(DEMO)/after.jsonl
	$(BIN)/rtmc rollout $(HELD_OUT) --model hf:tiny -o $(DEMO)/before.jsonl
	$(BIN)/rtmc rollout $(HELD_OUT) --model hf:$(DEMO)/run/last -o $(DEMO)/after.jsonl
	$(BIN)/rtmc evaluate $(DEMO)/after.jsonl --against $(DEMO)/before.jsonl
	@echo
	@echo "The last groups that it trained on:"
	$(BIN)/rtmc credit $(DEMO)/run/rollouts/step-00006.jsonl.gz -o $(DEMO)/credit.jsonl
	$(BIN)/rtmc report $(DEMO)/run/rollouts/step-00006.jsonl.gz -o $(DEMO)/report.html
	@echo
	@echo "Open $(DEMO)/report.html in a browser: which step of which rollout deserved the credit."
	@echo "The curve is in $(DEMO)/run/metrics.jsonl (docs/training.md explains it)."
	@echo "Your own rollouts: $(BIN)/rtmc report YOUR-ROLLOUTS -o report.html"
	@echo "Your own training: $(BIN)/rtmc train --help"

# As many tests at a time as there are cores, one thread each; a file's tests share what they set up.
test: check browser bubblewrap
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder

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

$(VENV)/.train: pyproject.toml constraints.txt | $(VENV)/bin/python
	@echo "Installing torch, transformers and TRL …"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[train]'
	@touch $@

# The tests use a real torch: see constraints.txt.
$(VENV)/.dev: pyproject.toml constraints.txt | $(VENV)/bin/python
	@echo "Installing what checks and tests need …"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

clean:
	rm -rf $(VENV) demo-output build dist .pytest_cache .ruff_cache .hypothesis .import_linter_cache
