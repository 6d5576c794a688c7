# One command sets up and runs the main job: make demo. One sets up and passes the tests: make test.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo check test bench docs soak wire seccomp clean

demo: $(STAMP)
	@$(BIN)/python examples/retail_audit.py

check: $(STAMP) build/types/limbeck
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	MYPYPATH=build/types $(BIN)/mypy -p limbeck
	$(BIN)/python -m pytest -q tests/test_architecture.py tests/test_runtime_wire.py tests/test_docs.py

test: $(STAMP)
	$(BIN)/python -m pytest -q -n 2 -m "not slow"

soak: $(STAMP)
	$(BIN)/python -m pytest -q -m slow

bench: $(STAMP)
	$(BIN)/limbeck bench speed

# Regenerates what the documents take from the code.
docs: $(STAMP)
	$(BIN)/python docs/generate.py

# Regenerates runtime/wire_pb2.py from runtime/wire.proto.
wire: $(STAMP) build/types/limbeck
	@mkdir -p build/wire
	$(BIN)/python -m grpc_tools.protoc -I build/types --python_out=build/wire --pyi_out=build/wire \
		build/types/limbeck/runtime/wire.proto
	cp build/wire/limbeck/runtime/wire_pb2.py build/wire/limbeck/runtime/wire_pb2.pyi runtime/

# Makes the filter of system calls from its policy.
seccomp: $(STAMP)
	$(BIN)/python -m limbeck.sandbox.seccomp.build

# The checkout's folder may have any name: types are checked under the package's.
build/types/limbeck:
	@mkdir -p build/types
	@ln -sfn ../.. $@

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "limbeck needs Python 3.11 or later; name one: make PYTHON=python3.12"; exit 1; }
	@echo "setting up $(VENV) (once)"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
