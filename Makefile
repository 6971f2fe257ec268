# Every target sets up what it needs. A fresh machine needs Python 3.11 or newer, and nothing else.

# The versions and hashes are those of requirements/: the same on any day. NEWEST=1 takes the newest that pyproject.toml allows.
VENV    := $(if $(NEWEST),.environments/newest,.venv)
RUN     := $(VENV)/bin/python
CHECK   := import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))
PYTHON  ?= $(shell for python in python3 python3.14 python3.13 python3.12 python3.11 python; do \
             $$python -c '$(CHECK)' 2>/dev/null && echo $$python && break; done)

# packages in a user's home folder must not leak into the environments below
export PYTHONNOUSERSITE := 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: mutants help audit lectures lectures-seeds literature literature-full research quick test nightly oldest sentences test-browser prove prove-random docs picture bench package sbom lock fuzz \
        cluster-dask cluster-ray cluster-spark \
        audit-libraries audit-training clean today
.DELETE_ON_ERROR:

help:
	@echo "make audit            runs the core audits and writes reports/"
	@echo "make lectures         audits every mechanism of the lecture notes and writes reports/lectures/claims.html (25 minutes)"
	@echo "make lectures-seeds   the same at eleven seeds, into reports/lectures/seeds/ (two hours)"
	@echo "make literature       audits the mechanisms of the auditing papers and writes reports/literature/ (half an hour)"
	@echo "make literature-full  the same with 250 million executions a mechanism (hours)"
	@echo "make research         audits the catalogue with all twins at ten seeds and claims from 0.1 to 8 into reports/research/ (15 minutes)"
	@echo "make quick            lint, types and the tests of the core, within a minute"
	@echo "make test             lint, types and tests; NEWEST=1, here and elsewhere: at the newest versions, not those of the lock"
	@echo "make nightly          every case of the tests, where make test tries some (an hour)"
	@echo "make mutants          small faults in certifiers, claims, events and counting, tried on the tests; BASE=COMMIT: on older ones, too (hours)"
	@echo "make oldest           the tests on the lowest versions that pyproject.toml allows"
	@echo "make test-browser     opens reports in headless Chromium (Debian's package chromium)"
	@echo "make cluster-dask     starts three local workers of dask, kills them and their scheduler, and more; cluster-ray, cluster-spark (10 minutes each)"
	@echo "make prove            decides every mechanism of the catalogue and every twin from its source (ten minutes)"
	@echo "make prove-random     compares proofs of 6,000 random programs with exact losses, laws and Python's runs, 50,000 readings with Python (an hour)"
	@echo "make docs             builds the documentation into site/"
	@echo "make picture          takes the picture of a report that README shows, in headless Chromium, into docs/assets/"
	@echo "make bench            speed, memory, validity and tightness tables (long)"
	@echo "make package          builds sdist and wheel into dist/ and tries the wheel in a fresh environment"
	@echo "make sentences        lists every sentence that a user can meet, by room"
	@echo "make sbom             writes dist/dpaudit.cdx.json: what the wheel brings with it, at the versions of the lock"
	@echo "make lock             writes requirements/ anew: the newest versions that pyproject.toml allows, with hashes"
	@echo "make audit-libraries  audits each library of audits/libraries in an environment of its own, into reports/libraries/ (half an hour; SLOW=1: all)"
	@echo "make audit-training   audits private training by Opacus, jax_privacy and plain loops, in environments of their own (an hour)"
	@echo "make fuzz             tries every reader of files on files that are nearly right, other ones each time (minutes)"
	@echo "make clean            removes the environments"

# after the environment, each time: which versions are not those of the lock
define newest
@$(if $(NEWEST),$(RUN) scripts/newest.py)
endef

audit: $(VENV)/.ready-audit
	$(newest)
	$(RUN) -m dpaudit run audits --tag core --report reports

# The confidence is that of all audits together. The seeds were written here before anybody looked: at none may one be odd.
SEED  ?= 0
SEEDS := 0 1 2 3 4 5 6 7 8 9 10
define lectures
$(RUN) -m dpaudit run audits/lectures --confidence 0.9999 --seed $(1) --report $(2) --format json,md || status=$$?; \
$(RUN) -m audits.lectures.claims --results $(2) --page $(2)/claims.html || status=$$?
endef
lectures: $(VENV)/.ready-audit
	@rm -f reports/lectures/*.json reports/lectures/report.md
	@status=0; $(call lectures,$(SEED),reports/lectures); exit $$status

lectures-seeds: $(VENV)/.ready-audit
	@rm -rf reports/lectures/seeds
	@status=0; for seed in $(SEEDS); do \
	  echo "== seed $$seed"; $(call lectures,$$seed,reports/lectures/seeds/$$seed); \
	done; exit $$status

literature: $(VENV)/.ready-audit
	$(RUN) -m audits.literature.study --report reports/literature

literature-full: $(VENV)/.ready-audit
	$(RUN) -m audits.literature.study --full --report reports/literature/full

research: $(VENV)/.ready-audit
	$(RUN) -m audits.research.study --report reports/research

CORE := claims outputs events certify results running processes execution search auditing
quick: $(VENV)/.ready-test
	$(RUN) -m ruff check .
	$(RUN) -m mypy
	$(RUN) -m pytest -q -n 2 --dist worksteal -m 'not long and not slow and not browser' \
	  $(CORE:%=dpaudit/%) dpaudit/base $(CORE:%=tests/%) tests/test_architecture.py tests/test_imports.py tests/test_project.py

test: $(VENV)/.ready-test
	$(newest)
	$(RUN) -m ruff check .
	$(RUN) -m mypy
	$(RUN) -m pytest -q -n 2 --dist worksteal

# Every case of what `make test` tries some cases of, random programs among them.
nightly: $(VENV)/.ready-test
	DPAUDIT_NIGHTLY=1 $(RUN) -m pytest -q -n 2 --dist worksteal -m 'not browser and not cluster'

mutants: $(VENV)/.ready-test
	$(RUN) scripts/mutants.py --report reports/mutants.md $(if $(BASE),--base $(BASE))

# An old library may warn of a newer one beside it, which says nothing of ours. Golden files are what the newest libraries
# write, to the last digit of an inverse and the order in a schema; so is the reference. With numpy 1 a sum's bound at a delta of 1e-60 may be infinite:
# true, and weaker than the test demands.
oldest: .environments/oldest/.ready
	.environments/oldest/bin/python -m pytest -q -n 2 --dist worksteal -W ignore::DeprecationWarning \
	  --deselect tests/report/test_golden.py --deselect tests/test_reference.py

test-browser: $(VENV)/.ready-test
	$(RUN) -m pytest -q -m browser tests/browser

docs: $(VENV)/.ready-docs
	NO_MKDOCS_2_WARNING=1 $(RUN) -m mkdocs build --strict

picture: $(VENV)/.ready-test
	$(RUN) scripts/picture.py

cluster-dask: $(VENV)/.ready-test
	DPAUDIT_CLUSTER=dask $(RUN) -m pytest -q -m cluster tests/clusters

# ray and Spark have no place in the lock: each brings a world of its own. Spark needs Java 17 or newer.
cluster-ray: .environments/cluster-ray/.ready
cluster-spark: .environments/cluster-spark/.ready
cluster-ray cluster-spark:
	DPAUDIT_CLUSTER=$(@:cluster-%=%) .environments/$@/bin/python -m pytest -q -m cluster tests/clusters

prove: $(VENV)/.ready-test
	$(RUN) -m benchmarks prove

prove-random: $(VENV)/.ready-test
	$(RUN) -m pytest -q -m slow tests/verify/test_cross_examination.py tests/verify/language/test_spellings.py
	$(RUN) -m benchmarks laws

sentences:
	@$(PYTHON) scripts/sentences.py

fuzz: $(VENV)/.ready-test
	$(RUN) -m benchmarks fuzz

bench: $(VENV)/.ready-test
	$(RUN) -m benchmarks

PACKING := .environments/$(if $(NEWEST),package,release)
package: $(PACKING)/.ready
	rm -rf dist .environments/wheel
	$(PACKING)/bin/python -m build $(if $(NEWEST),,--no-isolation) --outdir dist
	$(PYTHON) -m venv .environments/wheel
	.environments/wheel/bin/python -m pip install --quiet dist/*.whl
	.environments/wheel/bin/python scripts/package.py dist

sbom: package .environments/release/.ready
	rm -rf .environments/runtime
	$(PYTHON) -m venv --without-pip .environments/runtime
	$(INTO_RUNTIME) --require-hashes --requirement requirements/runtime.txt
	$(INTO_RUNTIME) --no-deps --no-index --find-links dist dpaudit
	.environments/release/bin/cyclonedx-py environment .environments/runtime/bin/python \
	  --output-reproducible --output-format JSON --output-file dist/dpaudit.cdx.json
INTO_RUNTIME := .environments/release/bin/python -m pip --python .environments/runtime/bin/python install --quiet

COMPILE := .environments/lock/bin/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes \
  --default-index https://pypi.org/simple --custom-compile-command "make lock"
lock: .environments/lock/.ready
	@mkdir -p requirements
	$(COMPILE) pyproject.toml --output-file requirements/runtime.txt
	$(COMPILE) pyproject.toml --group build --output-file requirements/action.txt
	$(COMPILE) pyproject.toml $(TESTED:%=--extra %) --group build --output-file requirements/test.txt
	$(COMPILE) --group build --group release --output-file requirements/release.txt

# SLOW=1 runs the rows that do less than a thousand runs a second, too: hours.
audit-libraries: $(VENV)/.ready-audit
	$(RUN) -m audits.libraries.observe audits/libraries --report reports/libraries $(if $(SLOW),,--fast) --resume

# NAMES="opacus_steps loaders" runs these tables alone. The newest torch on PyPI brings gigabytes of CUDA.
CPU_TORCH ?= https://download.pytorch.org/whl/cpu
TRAINING := $(patsubst audits/training/requirements/%.txt,%,$(wildcard audits/training/requirements/*.txt))
audit-training: $(TRAINING:%=.environments/training-%/.ready)
	@status=0; for environment in $(TRAINING); do \
	  echo "== $$environment"; \
	  .environments/training-$$environment/bin/python -m audits.training --environment $$environment $(NAMES) || status=1; \
	done; exit $$status

today:  # what is newest changes without a file that says so

clean:
	rm -rf .venv .environments site dist

# A stamp says that an environment holds what pyproject.toml asks for; a newer pyproject.toml installs again.
TESTED := test plots audits verify search attest dask docs
comma := ,
space := $(subst ,, )
$(VENV)/.ready-audit: EXTRAS := audits,verify,plots
$(VENV)/.ready-test: EXTRAS := $(subst $(space),$(comma),$(TESTED))
$(VENV)/.ready-docs: EXTRAS := docs,verify,plots
$(VENV)/.ready-audit $(VENV)/.ready-test $(VENV)/.ready-docs: pyproject.toml requirements/test.txt $(if $(NEWEST),today)
	$(call environment,$(VENV))
	@echo "installing dpaudit[$(if $(NEWEST),$(EXTRAS),every extra of the lock)] into $(VENV); this takes a minute or two"
	@$(if $(NEWEST),,$(RUN) -m pip install --quiet --require-hashes --requirement requirements/test.txt)
	@$(RUN) -m pip install --quiet $(if $(NEWEST),--upgrade --upgrade-strategy eager --editable '.[$(EXTRAS)]',--no-deps --no-build-isolation --editable .)
	@touch $@

.environments/oldest/.ready: PYTHON = python3.11
.environments/oldest/.ready: pyproject.toml scripts/oldest.py
	$(call environment,$(@D))
	@$(@D)/bin/python scripts/oldest.py > $(@D)/constraints.txt
	@echo "installing the lowest versions into $(@D); this takes a minute or two"
	@$(@D)/bin/python -m pip install --quiet --constraint $(@D)/constraints.txt --editable '.[test,plots,audits,verify,attest,dask,docs]'
	@touch $@

.environments/cluster-%/.ready: pyproject.toml
	$(call environment,$(@D))
	@echo "installing $* and dpaudit into $(@D); this takes minutes"
	@$(@D)/bin/python -m pip install --quiet --editable '.[test,$*]'
	@touch $@

.environments/package/.ready:
	$(call environment,$(@D))
	@$(@D)/bin/python -m pip install --quiet build
	@touch $@

.environments/release/.ready: requirements/release.txt
	$(call environment,$(@D))
	@$(@D)/bin/python -m pip install --quiet --require-hashes --requirement $<
	@touch $@

.environments/lock/.ready:
	$(call environment,$(@D))
	@$(@D)/bin/python -m pip install --quiet 'uv>=0.8'
	@touch $@

# What is not torch comes from PyPI alone.
.environments/training-opacus/.ready: INDEX = --extra-index-url $(CPU_TORCH)
.environments/training-%/.ready: audits/training/requirements/%.txt pyproject.toml
	$(call environment,$(@D))
	@echo "installing $* and dpaudit into $(@D); this takes minutes"
	@$(@D)/bin/python -m pip install --quiet $(INDEX) --requirement $< --editable '.[$*]'
	@touch $@

# Makes the environment $(1) unless it is there and whole.
define environment
@$(1)/bin/python -m pip --version >/dev/null 2>&1 || { \
  test -n "$(PYTHON)" || { echo "Python 3.11 or newer with venv is needed: install it, or make PYTHON=/path/to/it" >&2; exit 1; }; \
  $(PYTHON) -m venv $(1) 2>/dev/null || $(PYTHON) -m venv --clear $(1); }
endef
