# Commands of every day; `make` alone lists them. `uv run --no-sync` leaves uv.lock as it is.
RUN := uv run --no-sync
.DEFAULT_GOAL := help
.PHONY: help sync lock hooks format check test test-all test-gymnasium wheels docs docs-check tiny-model

help:  ## List the targets.
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

sync:  ## Install the three packages (editable) and the development tools into .venv.
	uv sync
	@$(RUN) python scripts/clean_lock.py

lock:  ## Resolve again after a change of dependencies; pinned versions stay.
	@$(RUN) python scripts/clean_lock.py
	uv lock
	@$(RUN) python scripts/clean_lock.py

hooks:  ## Install the git hooks of .pre-commit-config.yaml.
	$(RUN) pre-commit install --hook-type pre-commit --hook-type pre-push

format:  ## Format, and mend what ruff can mend.
	$(RUN) ruff check --fix .
	$(RUN) ruff format .

check:  ## Lint, formatting, types, import layers; changes nothing.
	$(RUN) ruff check .
	$(RUN) ruff format --check .
	$(RUN) pyright
	$(RUN) lint-imports --no-logo

test:  ## The test suite without the slow tests.
	$(RUN) pytest

test-all:  ## Every test; the slow ones train models and install from the package registry.
	$(RUN) pytest -m ""

test-gymnasium:  ## Every environment on each supported Gymnasium, from wheels in clean environments.
	$(RUN) pytest -m slow tests/test_workspace.py -k each_supported_gymnasium

wheels:  ## Build the three wheels into dist/.
	uv build --wheel --all-packages --out-dir dist

docs:  ## Write docs/configuration.md, docs/envs/, docs/source-tree.md and tables of figures again.
	$(RUN) python scripts/write_tree_page.py
	$(RUN) python scripts/write_configuration_page.py
	$(RUN) python scripts/write_env_pages.py
	$(RUN) python scripts/write_performance_page.py

tiny-model:  ## Make the model that ships with rllm-agents again (minutes of CPU).
	$(RUN) rllm sft --config-name sft_tiny run_dir=runs/tiny-model
	cp runs/tiny-model/model/* packages/rllm-agents/src/rllm_agents/models/tiny/

docs-check:  ## Links, listed paths and code blocks of the documents.
	$(RUN) pytest tests/test_docs.py
