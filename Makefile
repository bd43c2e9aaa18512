# Each goal installs what it needs and says so. Start with `make demo`.
.PHONY: demo test lint verify bench fuzz build clean deps broker

SUDO := $(shell [ "$$(id -u)" = 0 ] || echo sudo)
DEMO_DIR ?= .mesh

demo: build broker
	@node scripts/demo.mjs $(DEMO_DIR)

test: deps broker
	@CI=1 npx vitest run

lint: deps
	@npx biome check . && npx tsc --noEmit

# Regenerates the JSON Schemas, the CLI reference and the tree in docs/architecture.md; fails when they differ.
verify: build
	@node scripts/generate.mjs --check

generate: build
	@node scripts/generate.mjs

bench: build broker
	@node bench/main.mjs

# Ten times as many generated plan histories as `make test`.
fuzz: deps
	@FUZZ_SEED=$${FUZZ_SEED:-random} FUZZ_RUNS=100000 npx vitest run test/unit/plan

build: deps
	@node scripts/build.mjs

deps: node_modules/.package-lock.json

node_modules/.package-lock.json: package-lock.json
	@echo "installing the packages of package-lock.json"
	@npm ci --no-audit --no-fund --loglevel=error
	@touch $@

broker:
	@PATH="$$PATH:/usr/sbin:/usr/local/sbin"; command -v nats-server >/dev/null || { \
	  echo "installing nats-server with apt-get"; \
	  $(SUDO) apt-get update -qq && $(SUDO) apt-get install -y -qq nats-server; }

clean:
	@[ ! -e $(DEMO_DIR)/up.json ] || [ ! -e dist/mesh.js ] || node dist/mesh.js down --dir $(DEMO_DIR) --purge
	@rm -rf dist .mesh-clone
