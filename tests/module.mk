# SPDX-License-Identifier: Apache-2.0
# Unit tests: one cmocka binary per tests/unit/<folder>/test_<file>.c; fuzz targets: tests/fuzz/fuzz_<parser>.c.
unit_srcs := $(sort $(shell find tests/unit -name 'test_*.c' 2>/dev/null))
unit_bins := $(patsubst %.c,$(B)/%,$(unit_srcs))
fuzz_srcs := $(sort $(wildcard tests/fuzz/fuzz_*.c))
fuzz_bins := $(patsubst %.c,$(B)/%,$(fuzz_srcs))
fuzz_names := $(patsubst tests/fuzz/fuzz_%.c,%,$(fuzz_srcs))

# Scripted parts take the place of the libraries': their objects come first and win.
unit_with = $(patsubst %.c,$(B)/%,$(shell grep -lE '"tests/unit/($(1))\.h"' $(unit_srcs)))
$(call unit_with,script_clock|agent_kube_sync/script_kube|agent_pod/script_parts): $(B)/tests/unit/script_clock.o
$(call unit_with,agent_pod/script_parts): $(B)/tests/unit/agent_pod/script_parts.o
$(call unit_with,agent_pod/script_(parts|quota)): private LDFLAGS_ALL += -Wl,-z,muldefs

# coracle-unpack's files, for the tests that read archives as it does; and what a test links.
fuzz_unpack := $(patsubst %.c,$(B)/agent/unpack/%.o,$(filter-out unpack_main.c,$(unpack_SRCS)))
$(B)/tests/fuzz/unpack.a: $(fuzz_unpack)
	$(call say,AR,$@)
	$(Q)mkdir -p $(@D) && rm -f $@ && $(AR) rcs $@ $^
fuzz_deps := $(kube_libs) $(all_libs) $(B)/tests/fuzz/unpack.a $(B)/llhttp/llhttp.a
fuzz_libs  = $(B)/tests/fuzz/unpack.a $(kube_libs) $(all_libs) $(B)/llhttp/llhttp.a \
             $(LIBS_CORE) $(LIBS_UNPACK) $(LIBS_KUBE)

$(unit_bins): $(B)/%: $(B)/%.o $(fuzz_deps)
	$(call say,LD,$@)
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $(filter %.o,$^) $(fuzz_libs) $(call pkg,--libs cmocka)

# In `make check` the seeds are replayed through a plain main; `make fuzz` links libFuzzer (clang).
$(fuzz_bins): $(B)/%: $(B)/%.o $(B)/tests/fuzz/replay.o $(fuzz_deps)
	$(call say,LD,$@)
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $< $(B)/tests/fuzz/replay.o $(fuzz_libs)

$(B)/tests/bench/floor: $(B)/tests/bench/floor.o
	$(call say,LD,$@)
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $< $(call pkg,--libs jansson)

$(B)/tests/bench/writer: $(B)/tests/bench/writer.o $(all_libs)
	$(call say,LD,$@)
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $< $(all_libs) $(LIBS_CORE)

$(B)/tests/node/quota_tool: $(B)/tests/node/quota_tool.o $(all_libs)
	$(call say,LD,$@)
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $< $(all_libs) $(LIBS_CORE)

# Runs in an image that holds nothing else.
$(B)/tests/node/hog: tests/node/hog.c
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D) && $(CC) -std=gnu17 -O2 -Wall -Wextra -static -pthread -o $@ $<

# What runs inside node VMs besides what is installed; the payload is made with it.
.PHONY: node-programs
node-programs: $(B)/tests/node/quota_tool $(B)/tests/node/hog

# The program of the image of the recorded evictions: static, as nothing else is in that image.
$(B)/tests/host/hog: tests/host/hog.c | $(B)/.flags
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(small_flags) -static -o $@ $<

# What a client would send by a kubeconfig, for the recorded cases.
$(B)/tests/host/kubeconfig: $(B)/tests/host/kubeconfig.o $(all_libs)
	$(call say,LD,$@)
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $< $(all_libs) $(LIBS_CORE)

# Patches of API objects, for a model and recorded cases.
patch_libs := $(foreach m,agent/api/patch/write agent/api/patch/apply agent/api/patch agent/api/patch/kinds agent/api/manifest agent/api/schema agent/api/yaml agent/api,$(call libname,$(m)))
$(B)/tests/host/patch_lines: $(B)/tests/host/patch_lines.o $(patch_libs) $(base_libs)
	$(call say,LD,$@)
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $< $(patch_libs) $(base_libs) $(LIBS_CORE)

.PHONY: host-programs
host-programs: $(B)/tests/host/hog $(B)/tests/host/kubeconfig $(B)/tests/host/patch_lines

.PHONY: bench-programs
bench-programs: $(B)/tests/bench/floor $(B)/tests/bench/writer

# Where things are for the recipes below, whatever SAN= and CC= say now.
check_gcc   := $(O)/gcc
check_san   := $(O)/gcc-address-undefined
inject_build := $(O)/inject
node_cache  := $(O)/node
run_tests   := tests/tools/run-tests --build $(check_gcc) --san $(check_san) --inject $(inject_build)/gcc --cache $(node_cache)
jobs        := $(or $(JOBS),$(shell nproc))
make_gcc    := $(MAKE) --no-print-directory -j$(jobs) CC=gcc SAN=
make_san    := $(MAKE) --no-print-directory -j$(jobs) CC=gcc SAN=address,undefined
frames      := -g -fno-omit-frame-pointer -fno-optimize-sibling-calls
make_inject := $(MAKE) --no-print-directory -j$(jobs) CC=gcc SAN= O=$(inject_build) INJECT=1 CFLAGS='$(CFLAGS) $(frames)' EXEC_LINK='$(frames)'
make_clang  := $(MAKE) --no-print-directory -j$(jobs) CC=clang SAN=

.PHONY: unit-programs check check-unit check-host check-host-san check-node check-node-host bench check-layers check-headers check-clang check-reproducible fuzz node node-shell soak inject inject-programs
unit-programs: $(unit_bins) $(fuzz_bins)

# Files in the repository that the program's tables make, and that these tests compare: `make all` runs nothing it built.
sample_tests := $(addprefix $(B)/tests/unit/,agent_cli/test_help agent_config/test_print agent_api/test_support)
.PHONY: samples
samples: $(sample_tests) ## write manual pages, completion, systemd/config.yaml and docs/pod-fields.md again, from the tables of the program
	$(Q)mkdir -p docs/man && for test in $^; do WRITE_SAMPLES=1 $$test || exit 1; done

check: ## builds by gcc, plain and sanitized, clang's warnings, layers, headers, analyzers, unit tests, seeds, each host test once, a sample of the sweep, node VMs; `make soak` has the rest
	@tests/tools/deps build run test node dev
	@$(make_gcc) all host-programs
	@$(make_san) all unit-programs host-programs
	@$(make_inject) inject-programs
	@$(run_tests) layers headers format clang analyze unit-san fuzz host-plain host-runc host-san inject node-few

check-unit: ## unit tests and fuzz seeds, plain and sanitized
	@tests/tools/deps build test
	@$(make_gcc) all unit-programs
	@$(make_san) all unit-programs
	@$(run_tests) unit unit-san fuzz

check-host: ## the real daemon with real crun, conmon and CNI plugins on this machine (root); ONLY=text chooses tests, RUNTIME=runc
	@tests/tools/deps build run test
	@$(make_gcc) all host-programs
	@tests/host/run $(if $(RUNTIME),--runtime $(RUNTIME)) --build $(check_gcc) $(ONLY)

check-host-san: ## the same with the sanitized daemon
	@tests/tools/deps build run test
	@$(make_san) all host-programs
	@tests/host/run --slow 3 --build $(check_san) $(ONLY)

SOAK_AGENT_KILLS  ?= 200
SOAK_CONMON_KILLS ?= 50
NET_SOAK_ROUNDS   ?= 100
NODE_RESETS       ?= 20
GROWTH_STARTS     ?= 10000
soak: ## all that `make check` leaves out (tests/README.md): clang's build, all analyzers over all sources, unit tests plain, all host tests plain, sanitized and with runc, and the long loops: 20 pods churned under kill -9 of daemon and conmons, volumes swapped under it, then resets of a node VM; SOAK_SEED= SOAK_AGENT_KILLS= NODE_RESETS= NODE_SEED=
	@tests/tools/deps build run test node
	@$(MAKE) --no-print-directory analyze WHOLE=1
	@tests/tools/check-reproducible
	@$(make_clang) all
	@$(make_gcc) all unit-programs host-programs
	@$(make_san) all host-programs
	@$(run_tests) unit host host-runc-all host-san-all
	@SOAK_SEED=$(SOAK_SEED) SOAK_AGENT_KILLS=$(SOAK_AGENT_KILLS) SOAK_CONMON_KILLS=$(SOAK_CONMON_KILLS) \
	    tests/host/run --verbose --build $(check_gcc) test_soak
	@IMAGE_KILLS=$(or $(IMAGE_KILLS),200) IMAGE_SEED=$(IMAGE_SEED) tests/host/run --verbose --build $(check_gcc) test_image_kills
	@WRITE_KILLS=$(or $(WRITE_KILLS),300) WRITE_SEED=$(WRITE_SEED) tests/host/run --verbose --build $(check_gcc) test_lone_kills
	@EXPLAIN_EACH=1 tests/host/run --build $(check_gcc) test_lone_explain
	@RACE_ROUNDS=$(or $(RACE_ROUNDS),300) tests/host/run --build $(check_gcc) test_lone_races
	@PATCH_ROUNDS=$(or $(PATCH_ROUNDS),10000) PATCH_SEED=$(PATCH_SEED) tests/host/run --verbose --build $(check_gcc) test_patches
	@DEVICE_KILLS=$(or $(DEVICE_KILLS),500) SOAK_SEED=$(SOAK_SEED) tests/host/run --verbose --build $(check_gcc) test_devices_soak
	@CSI_KILLS=$(or $(CSI_KILLS),500) SOAK_SEED=$(SOAK_SEED) tests/host/run --verbose --build $(check_gcc) test_csi_kills
	@CSI_ANSWERS=$(or $(CSI_ANSWERS),200) SOAK_SEED=$(SOAK_SEED) tests/host/run --verbose --build $(check_gcc) test_csi_answers
	@CORACLE_EVICTIONS=$(or $(CORACLE_EVICTIONS),50) CORACLE_EVICTION_MS=100 tests/host/run --verbose --jobs 1 --build $(check_gcc) test_eviction_fast
	@CORACLE_TEST_LONG=1 tests/host/run --build $(check_gcc) devices_golden.test_26 eviction_golden.
	@NET_SOAK_SEED=$(NET_SOAK_SEED) NET_SOAK_ROUNDS=$(NET_SOAK_ROUNDS) tests/host/run --verbose --build $(check_gcc) test_network_soak
	@GROWTH_STARTS=$(GROWTH_STARTS) tests/host/run --slow 100 --verbose --build $(check_gcc) test_growth
	@CNI_PARALLEL_PERCENT=120 $(check_gcc)/tests/unit/cni/test_parallel
	@SWAP_SECONDS=$(or $(SWAP_SECONDS),30) SWAP_KILLS=$(or $(SWAP_KILLS),10) PROPAGATION_ROUNDS=200 \
	    tests/host/run --verbose --jobs 1 --build $(check_gcc) test_swaps
	@CHURN_SECONDS=$(or $(CHURN_SECONDS),180) CHURN_SEED=$(CHURN_SEED) tests/host/run --verbose --build $(check_gcc) test_churn
	@LOG_SECONDS=$(or $(LOG_SECONDS),20) tests/host/run --verbose --jobs 1 --build $(check_gcc) test_logs.test_flood
	@$(make_inject) inject-programs
	@tests/inject/run --build $(inject_build)/gcc
	@NODE_LONG=1 LIMITS_EVERY=1 NODE_RESETS=$(NODE_RESETS) NODE_SEED=$(NODE_SEED) NODE_EVICTIONS=$(or $(NODE_EVICTIONS),50) \
	    QUOTA_FILES=$(or $(QUOTA_FILES),1000000) NODE_DEADLINE=$$((7200 + 400 * $(NODE_RESETS))) $(run_tests) -v node

check-reproducible: ## build twice in two folders and compare the programs
	@tests/tools/deps build
	@tests/tools/check-reproducible

check-node: ## boot node VMs, install the build, run it there under systemd; ONLY=text chooses suites (v2, v1, reboot ...)
	@tests/tools/deps build run test node
	@$(make_gcc) all
	@$(run_tests) --only '$(if $(ONLY),$(ONLY),node/)' -v node

node: check-node ## the same

check-node-host: ## host tests inside a node VM, on cgroup v2; slow, ONLY=text chooses some
	@tests/tools/deps build run test node
	@$(make_gcc) all
	@tests/node/run --build $(check_gcc) --cache $(node_cache) host $(ONLY)

node-shell: ## a shell in a node VM with the build installed and running; ONLY=suite: a VM as that suite has it (v1, disks ...)
	@tests/tools/deps build run test node
	@$(make_gcc) all
	@tests/node/run --build $(check_gcc) --cache $(node_cache) --shell $(if $(ONLY),$(ONLY),v2)

bench: ## figures of this build on this machine, against the same parts without an agent (root; a quiet machine); ONLY=text, QUICK=1, PEERS=1: beside podman and kubelet
	@tests/tools/deps build run test node
	@$(make_gcc) all bench-programs node-programs
	@PEERS=$(PEERS) tests/bench/run --build $(check_gcc) --json $(O)/bench.json $(if $(QUICK),--quick) $(ONLY)

check-layers: all ## fail on an include or a call that breaks the table of layers, on files that call one another in a circle of more than ten, or on a look whose "unknown" could pass for "absent"
	$(Q)tests/tools/check-layers
	$(Q)tests/tools/check-symbols $(B)
	$(Q)tests/tools/check-circles $(B)
	$(Q)CC="$(CC)" tests/tools/check-presence

# The sweep of failing calls tells a helper's callers apart by their frames: a build with frame pointers, of its own, in
# which coracle-exec can load the library, and clone3 is a call, as for a sanitizer, and no instruction.
ifdef INJECT
$(B)/base/process/spawn.o: CPPFLAGS_ALL += -DSANITIZED
endif
$(B)/tests/inject/inject.so: tests/inject/inject.c tests/inject/inject.h | $(B)/.flags
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D) && $(CC) -std=gnu17 -O2 -g $(warnings) -fPIC -shared -fno-omit-frame-pointer -D_GNU_SOURCE -I. -o $@ $< -ldl

inject-programs: all $(B)/tests/inject/inject.so

inject: ## each call of a phase fails once, and the agent is killed at it (root); PHASE= SITE= ERRNO= ACTION= NTH=, SAMPLE=n by chance, INJECT_SEED=, RESULTS=file to go on with
	@tests/tools/deps build run test
	@$(make_inject) inject-programs
	@tests/inject/run --build $(inject_build)/gcc $(if $(PHASE),--phase $(PHASE)) $(if $(SITE),--site '$(SITE)') $(if $(ERRNO),--errno $(ERRNO)) \
	    $(if $(ACTION),--action $(ACTION)) $(if $(NTH),--nth $(NTH)) $(if $(SAMPLE),--sample $(SAMPLE)) $(if $(INJECT_SEED),--seed $(INJECT_SEED)) \
	    $(if $(LANES),--jobs $(LANES)) $(if $(RESULTS),--results $(RESULTS))

# Clang's warnings do not depend on its optimizer; `make soak` builds the programs with it.
check-clang: $(generated) ## clang has no warning about a source of the programs
	$(Q)find $(modules) $(kube_modules) agent/unpack -maxdepth 1 -name '*.c' | sort | xargs -P $(jobs) -n 16 $(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -fsyntax-only

# Each header compiles alone, so that the order of includes never matters.
check-headers: $(generated) ## compile each header by itself
	$(Q)find $(modules) $(kube_modules) agent/unpack -maxdepth 1 -name '*.h' | sort | xargs -P $(jobs) -I{} sh -c \
	    'printf "#include \"{}\"\n" | $(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -fsyntax-only -x c - || { echo "{}: does not compile alone" >&2; exit 1; }'

# libFuzzer over every target, FUZZ_SECONDS each and round, for FUZZ_TOTAL seconds together (default: one round); what it
# found and the sums are in $(O)/fuzz.
FUZZ_SECONDS ?= 60
fuzz_build   := $(O)/fuzz-build
fuzz: ## a minute of fuzzing for each parser (clang, libFuzzer); FUZZ_SECONDS=, FUZZ_TOTAL=, FUZZ="name ..."
	@tests/tools/deps build test
	@$(MAKE) --no-print-directory -j$(jobs) CC=clang SAN= O=$(fuzz_build) FUZZER=1 fuzz-programs
	@tests/tools/fuzz --programs $(fuzz_build)/clang/tests/fuzz --seeds tests/fuzz --work $(O)/fuzz \
	    --slice $(FUZZ_SECONDS) $(if $(FUZZ_TOTAL),--seconds $(FUZZ_TOTAL)) $(FUZZ)

ifneq ($(FUZZER),)
CFLAGS_ALL += -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all
LDFLAGS_ALL += -fsanitize=fuzzer,address,undefined
libfuzzer_bins := $(patsubst %,$(B)/tests/fuzz/libfuzzer_%,$(fuzz_names))
.PHONY: fuzz-programs
fuzz-programs: $(libfuzzer_bins)
$(libfuzzer_bins): $(B)/tests/fuzz/libfuzzer_%: $(B)/tests/fuzz/fuzz_%.o $(fuzz_deps)
	$(call say,LD,$@)
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $< $(fuzz_libs)
endif
