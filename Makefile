# The tasks of the project. `make` lists them, in the order and groups of this file.
# CONTRIBUTING.md says when to run each.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# Go keeps its caches below HOME. If HOME is missing or read-only, as in a container or for a
# service user, they are kept in the checkout.
ifneq ($(shell test -d "$${HOME:-}" && test -w "$$HOME" && echo yes),yes)
export HOME := $(CURDIR)/.cache/home
$(shell mkdir -p "$(HOME)")
endif

GO ?= go
ARGS ?=
FUZZTIME ?= 10s
COUNT ?= 10
ROUNDS ?= 100
FAILOVERS ?= 10
MINUTES ?= 10
EXAMPLES ?= 50

##@ Most used

.PHONY: run
run: build ## build and start the gateway (ARGS='--listen :8080' adds flags)
	@exec ./build/tollgate serve $(ARGS)

.PHONY: test
test: ## run every test on SQLite and PostgreSQL; as root it installs missing programs (TOLLGATE_TEST_INSTALL=no prevents that)
	@GO=$(GO) scripts/test $(ARGS)

.PHONY: build
build: ## build the binary, build/tollgate
	@GO=$(GO) scripts/has-go
	@[ -e build/tollgate ] || echo 'Building. The first build takes a minute or two, longer if the processors are busy.' >&2
	@GOFLAGS=$$(GO=$(GO) scripts/stamp) CGO_ENABLED=0 $(GO) build -trimpath -o build/tollgate ./cmd/tollgate

.PHONY: release
release: ## build the release into build/release: binaries, bills of materials, checksums (ARGS=check builds twice and compares)
	@scripts/release $(ARGS)

.PHONY: help
help: ## list the targets
	@awk -F ':[^#]*## ' '/^##@ / {printf "%s%s:\n", gap, substr($$0, 5); gap = "\n"} \
		/^[a-z-]+:[^#]*## / {printf "  make %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

##@ Before a commit

.PHONY: check
check: format vet lint modules test ## run everything that must pass before a commit: format, vet, lint, modules, test

.PHONY: format
format: ## fail if gofmt would change a file
	@files=$$(gofmt -l $(wildcard bench browser clients cmd internal tools)); \
	if [ -n "$$files" ]; then echo "not formatted (gofmt -w):" $$files; exit 1; fi

.PHONY: vet
vet: ## run go vet
	@CGO_ENABLED=0 $(GO) vet ./...
	@cd clients && CGO_ENABLED=0 $(GO) vet ./...
	@cd browser && CGO_ENABLED=0 $(GO) vet ./...

.PHONY: lint
lint: ## run the linters that tools/go.mod pins
	@scripts/lint

.PHONY: modules
modules: ## verify the modules' checksums, and that every go.mod is tidy
	@$(GO) mod verify
	@$(GO) mod tidy -diff
	@cd clients && $(GO) mod verify && $(GO) mod tidy -diff
	@cd browser && $(GO) mod tidy -diff # go mod verify rejects the replacement of tollgate by ../
	@cd tools && $(GO) mod verify && $(GO) mod tidy -diff
	@cd tools/versitygw && $(GO) mod verify && $(GO) mod tidy -diff
	@cd tools/idp && $(GO) mod verify && $(GO) mod tidy -diff
	@cd tools/sbom && $(GO) mod verify && $(GO) mod tidy -diff
	@cd tools/grafana && $(GO) mod verify && $(GO) mod tidy -diff

.PHONY: ci
ci: ## run what CI runs: check, build, and the start in a bare Debian
	@.ci/run

##@ Further tests

.PHONY: first-hour
first-hour: ## run `make run` and `make test` in a bare Debian, as root and as a normal user (needs root and mmdebstrap; takes an hour or two)
	@scripts/first-hour debian

.PHONY: fuzz
fuzz: ## run each fuzz test for FUZZTIME (10s)
	@scripts/fuzz $(FUZZTIME)

.PHONY: torture
torture: ## repeat the tests of money, requests, faults and kills COUNT (10) times, then run ROUNDS (100) minutes on a faulty network
	@TOLLGATE_TORTURE=yes TOLLGATE_TEST_S3SERVER=$$(scripts/s3server) scripts/postgres run \
		scripts/gotest -count=$(COUNT) -timeout=2h -skip='^(TestPartitionsUnderLoad|TestGuides)$$' \
		./internal/store ./internal/ledger ./internal/ledger/rows ./internal/ledger/commit ./internal/chat ./internal/gatewaytest/...
	@TOLLGATE_TORTURE=yes TOLLGATE_TORTURE_ROUNDS=$(ROUNDS) scripts/postgres run scripts/gotest -count=1 -timeout=6h -v \
		-run='^TestPartitionsUnderLoad$$' ./internal/gatewaytest/partition

.PHONY: failover
failover: ## kill PostgreSQL's primary FAILOVERS (10) times while commits wait for its synchronous standby
	@TOLLGATE_FAILOVER_ROUNDS=$(FAILOVERS) scripts/postgres run scripts/gotest -count=1 -timeout=2h -v -run='^TestFailover$$' ./internal/gatewaytest/partition

.PHONY: patroni
patroni: build ## run the commands of docs/failover.md, with FAILOVERS (10) rounds (needs Patroni, etcd, HAProxy, PgBouncer)
	@scripts/patroni $(FAILOVERS)

.PHONY: malformed
malformed: ## send 20,000 malformed requests on each database (TOLLGATE_MALFORMED_SEED=1 sends others)
	@TOLLGATE_MALFORMED_COUNT=20000 scripts/postgres run scripts/gotest -count=1 -timeout=1h -v -run='^TestMalformedRequests$$' ./internal/gatewaytest/malformed

.PHONY: contract
contract: ## send EXAMPLES (50) requests per operation, generated from the OpenAPI contracts (needs Python, downloads Schemathesis)
	@scripts/contract $(EXAMPLES)

.PHONY: soak
soak: ## run hostile and normal clients and providers for MINUTES (10) on 512 MiB of memory and 400 file descriptors
	@TOLLGATE_SOAK_MINUTES=$(MINUTES) $(GO) test -count=1 -timeout=24h -v -run='^TestHostileSoak$$' ./internal/gatewaytest/soak

.PHONY: hostile
hostile: ## run an account that provokes every provider error beside a normal one, for MINUTES (10) on each database
	@TOLLGATE_HOSTILE_MINUTES=$(MINUTES) scripts/postgres run $(GO) test -count=1 -parallel=1 -timeout=24h -v -run='^TestHostileAccount$$' \
		./internal/gatewaytest/hostile

.PHONY: agents
agents: build ## run coding agents through the gateway (needs Node and Python 3.10 to 3.12, downloads 680 MB)
	@scripts/packages agents aider
	@cd clients && TOLLGATE_TEST_AGENTS=yes $(GO) test -count=1 -timeout=30m -run TestAgents -v .
	@TOLLGATE_TEST_BINARY=$(CURDIR)/build/tollgate $(GO) test -count=1 -timeout=15m -v ./internal/gatewaytest/guides -run='^TestGuides$$/^coding-agents$$'

.PHONY: python
python: ## test the official Python clients and LangChain (needs Python 3.11 or newer, downloads 60 MB)
	@cd clients && TOLLGATE_TEST_PYTHON=yes $(GO) test -count=1 -timeout=15m -run='^TestPython$$' -v .

.PHONY: guides
guides: build ## run the guides that install packages (needs Python and Node, downloads 50 MB)
	@scripts/packages
	@TOLLGATE_TEST_ABSENT="$$(scripts/packages absent | sed 's|^|build/packages/|' | paste -sd ' ')" \
		TOLLGATE_TEST_BINARY=$(CURDIR)/build/tollgate $(GO) test -count=1 -timeout=15m -v ./internal/gatewaytest/guides \
		-run='^TestGuides$$/^(clients|embeddings-and-speech|errors-and-retries|langchain|node|python|vercel-ai-sdk)$$'

.PHONY: open-webui
open-webui: build ## run the guide of Open WebUI (needs Python 3.11 or 3.12, downloads 450 MB)
	@TOLLGATE_TEST_BINARY=$(CURDIR)/build/tollgate scripts/open-webui

.PHONY: deployments
deployments: build ## check deploy/ with systemd, Helm, Prometheus and Grafana's types, and run it (needs systemd-analyze, helm, promtool, prometheus, caddy)
	@for program in systemd-analyze helm promtool prometheus caddy; do command -v $$program >/dev/null || missing="$${missing:-} $$program"; done; \
	if [ -n "$${missing:-}" ]; then echo "deployments: not installed:$$missing. No check was run. Install these programs and try again."; exit 1; fi
	@install -D build/tollgate build/deployments/tollgate
	@sed 's|/usr/local/bin/tollgate|$(CURDIR)/build/deployments/tollgate|; s|=tollgate$$|=root|' \
		deploy/systemd/tollgate.service > build/deployments/tollgate.service
	@systemd-analyze verify $(CURDIR)/build/deployments/tollgate.service
	@helm lint --strict --set settings.public_url=https://api.example.com deploy/helm/tollgate
	@helm template tollgate --set settings.public_url=https://api.example.com --set ingress.enabled=true --set ingress.host=api.example.com \
		--set metrics.serviceMonitor=true --set-file catalog=docs/examples/three-providers.yaml deploy/helm/tollgate >/dev/null
	@helm template tollgate --set settings.public_url=https://api.example.com --set replicas=1 --set persistence.enabled=true \
		deploy/helm/tollgate >/dev/null
	@promtool check rules deploy/monitoring/alerts.yaml
	@promtool test rules deploy/monitoring/alerts_test.yaml
	@cd tools/grafana && $(GO) test -count=1 ./...
	@{ printf 'groups:\n- name: dashboard\n  rules:\n'; grep -oh '"expr": "[^"]*"' deploy/monitoring/dashboard*.json | \
		sed 's/\$$__rate_interval/5m/g; s/\$$__range/7d/g; s/"expr": \(".*"\)/  - {record: "dashboard:panel", expr: \1}/'; } > build/deployments/dashboard.yaml
	@promtool check rules --lint=none build/deployments/dashboard.yaml
	@s3server=$$(scripts/s3server) && TOLLGATE_TEST_DEPLOYMENTS=yes TOLLGATE_TEST_S3SERVER=$$s3server TOLLGATE_TEST_BINARY=$(CURDIR)/build/tollgate \
		$(GO) test -count=1 -timeout=10m -v ./internal/gatewaytest/deployment

.PHONY: bench
bench: ## measure ledger and chat, and print the tables of BENCHMARKS.md
	@scripts/postgres run $(GO) run ./bench $(ARGS)

##@ Housekeeping

.PHONY: postgres-start
postgres-start: ## start a PostgreSQL server for `go test`, and print the variable to export
	@scripts/postgres start

.PHONY: postgres-stop
postgres-stop: ## stop that server and delete its files
	@scripts/postgres stop

.PHONY: clean
clean: ## delete build/ (data/ stays)
	@rm -rf build
