# SPDX-License-Identifier: Apache-2.0
# Coracle - plain make.  `make help` lists the targets; V=1 shows commands; config.mk holds private settings.
.DEFAULT_GOAL := all
-include config.mk

# A cross build names its tools by a prefix: CROSS_COMPILE=aarch64-linux-gnu-, or CC=aarch64-linux-gnu-gcc, which says the same.
CROSS_COMPILE ?= $(patsubst %gcc,%,$(filter %-gcc,$(CC)))
ifeq ($(origin CC),default)
CC      := $(CROSS_COMPILE)gcc
endif
ifeq ($(origin AR),default)
AR      := $(CROSS_COMPILE)ar
endif
PKG_CONFIG ?= $(CROSS_COMPILE)pkg-config
STRIP   ?= $(CROSS_COMPILE)strip
SAN     ?=
WERROR  ?= -Werror
PREFIX  ?= /usr
DESTDIR ?=
V       ?=
O       ?= build
# One folder has one name, so that the flags that mention it stay the same and nothing is built again.
override O := $(patsubst $(CURDIR)/%,%,$(O))
VERSION := $(shell cat VERSION)

compiler := $(notdir $(firstword $(CC)))
comma    := ,
variant  := $(compiler)$(if $(SAN),-$(subst $(comma),-,$(SAN)))
B        := $(O)/$(variant)

# Shared libraries: pkg-config's name, the oldest version that was tried, Debian's package (docs/requirements.md has the same table).
libraries := libuv:1.44.2:libuv1-dev jansson:2.14:libjansson-dev libmnl:1.0.4:libmnl-dev yaml-0.1:0.2.5:libyaml-dev \
             libnghttp2:1.52.0:libnghttp2-dev libmd:1.0.4:libmd-dev libarchive:3.6.2:libarchive-dev libcrypto:3.0.0:libssl-dev libssl:3.0.0:libssl-dev \
             libcurl:7.88.1:libcurl4-openssl-dev zlib:1.2.13:zlib1g-dev libsystemd:252:libsystemd-dev libprotobuf-c:1.4.1:libprotobuf-c-dev
pkg           = $(shell $(PKG_CONFIG) $(1))
LIBS_CFLAGS  := $(call pkg,--cflags $(foreach l,$(libraries),$(firstword $(subst :, ,$(l)))) 2> /dev/null)
LIBS_CORE     = $(call pkg,--libs libuv jansson libmnl yaml-0.1 libnghttp2) -lwslay -l:libmd.a -l:libprotobuf-c.a
LIBS_UNPACK   = $(call pkg,--libs libarchive libcrypto jansson libuv)
LIBS_PROBE    = $(call pkg,--libs libssl libcrypto libuv)
LIBS_KUBE     = $(call pkg,--libs libcurl libssl libcrypto libuv jansson zlib yaml-0.1) -lwslay -l:libmd.a
LIBS_SEAL     = $(call pkg,--libs libcrypto libuv)
LIBS_SHUTDOWN = $(call pkg,--libs libsystemd libuv)
# The HTTP parser comes as C sources in Debian's node-llhttp.
LLHTTP         ?= /usr/share/llhttp
LLHTTP_INCLUDE ?= /usr/share/include/llhttp
PROTOC_C       ?= protoc-c

warnings  := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wformat=2 \
             -Wwrite-strings -Wpointer-arith -Wundef -Wno-missing-field-initializers -fno-common $(WERROR)
hardening := -fstack-protector-strong -fstack-clash-protection -fPIE
ifeq ($(SAN),)
hardening += -D_FORTIFY_SOURCE=3
ifneq (,$(findstring gcc,$(compiler)))
hardening += -ftrivial-auto-var-init=zero
endif
else ifneq (,$(findstring gcc,$(compiler)))
# gcc cannot see the bounds of instrumented values; the plain build has these warnings.
warnings += -Wno-format-truncation -Wno-restrict
endif
# GNU modes define `linux` and `unix` as 1, which breaks any field of that name (OCI spec).
dialect   := -std=gnu17 -Ulinux -Uunix
CPPFLAGS_ALL := -I. -I$(B) -isystem $(LLHTTP_INCLUDE) -D_GNU_SOURCE -DCORACLE_VERSION='"$(VERSION)"' $(LIBS_CFLAGS) $(CPPFLAGS)
# gcc takes 1.7 times as long for a sanitized -O2.
CFLAGS_ALL   := $(dialect) $(if $(SAN),-O1,-O2) -g -ffile-prefix-map=$(CURDIR)=. $(warnings) $(hardening) \
                $(if $(SAN),-fsanitize=$(SAN) -fno-sanitize-recover=all -fno-omit-frame-pointer) $(CFLAGS)
LDFLAGS_ALL  := -pie -Wl,-z,relro,-z,now -Wl,--as-needed $(if $(SAN),-fsanitize=$(SAN)) $(LDFLAGS)
EXEC_LINK    := -static

Q := $(if $(V),,@)
say = $(if $(V),,@printf '  %-7s %s\n' '$(1)' '$(2)')

# Low layers first: a folder uses nothing that stands after it (tests/tools/check-layers has the exact table).
modules := base base/codec base/files base/process base/grpc cgroups cni/host cni/plugin cni volumes/quota volumes deviceplugin/proto deviceplugin deviceplugin/message deviceplugin/checkpoint deviceplugin/plugin volumes/csi/proto volumes/csi volumes/storage volumes/flex \
           agent/api agent/api/yaml agent/api/schema agent/api/manifest agent/api/patch/kinds agent/api/patch agent/api/patch/apply agent/api/patch/write agent/api/serve agent/eviction agent/placement agent/declared agent/config agent/source agent/image/provider agent/image \
           agent/runtime/spec agent/cdi agent/runtime/mount agent/runtime agent/probe agent/kube/link agent/kube/config agent/kube/credentials agent/status \
           agent/pod/core agent/pod/placement agent/pod/device agent/pod/project agent/pod/limits agent/pod/leftovers agent/pod/sandbox agent/pod/env agent/pod/image agent/pod/volume agent/pod/usage \
           agent/pod/container agent/pod/record agent/pod/eviction agent/pod/admit agent/pod/status agent/pod/worker agent/pod/show agent/pod/node agent/claim agent/workload agent/kept agent/cluster \
           agent/cli/template agent/cli/print agent/cli/command agent/cli/files agent/cli/client agent/cli/change agent/cli/show agent/cli/stream agent/cli/image agent/cli agent
# Of coracle-kube and coracle-seal alone: the daemon maps neither libcurl nor OpenSSL.
kube_modules := agent/kube/decide agent/kube/client agent/kube/sync agent/kube/server agent/kube/apiserver agent/kube agent/seal
include $(patsubst %,%/module.mk,$(modules) $(kube_modules) agent/unpack)

libname  = $(B)/lib$(subst /,-,$(1)).a
reverse  = $(if $(1),$(call reverse,$(wordlist 2,$(words $(1)),$(1))) $(firstword $(1)))
base_libs := $(foreach m,base/process base/files base/codec base,$(call libname,$(m)))
api_libs  := $(foreach m,agent/api/serve agent/api/patch/write agent/api/patch/apply agent/api/patch agent/api/patch/kinds agent/api/manifest agent/api/schema agent/api/yaml agent/api,$(call libname,$(m)))
all_libs  := $(foreach m,$(call reverse,$(modules)),$(call libname,$(m)))
kube_libs := $(foreach m,$(call reverse,$(kube_modules)),$(call libname,$(m)))

define module_rules
$(call libname,$(1)): $(patsubst %.c,$(B)/$(1)/%.o,$($(subst /,_,$(1))_SRCS)) $(1)/module.mk
	$$(call say,AR,$$@)
	$(Q)rm -f $$@ && $(AR) rcs $$@ $$(filter %.o,$$^)
endef
$(foreach m,$(modules) $(kube_modules),$(eval $(call module_rules,$(m))))

programs := $(B)/coracle $(B)/coracle-unpack $(B)/coracle-pause $(B)/coracle-exec $(B)/coracle-probe $(B)/coracle-shutdown $(B)/coracle-kube $(B)/coracle-seal

.PHONY: all
all: $(programs) ## build the programs (default)

$(B)/coracle: $(B)/agent/main.o $(all_libs) $(B)/llhttp/llhttp.a
	$(call say,LD,$@)
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $< $(all_libs) $(B)/llhttp/llhttp.a $(LIBS_CORE)

$(B)/coracle-unpack: $(patsubst %.c,$(B)/agent/unpack/%.o,$(unpack_SRCS)) $(B)/agent/image/image_name.o $(base_libs)
	$(call say,LD,$@)
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $^ $(LIBS_UNPACK)

$(B)/coracle-probe: $(patsubst %.c,$(B)/agent/probe/%.o,$(probe_SRCS)) $(base_libs) $(B)/llhttp/llhttp.a
	$(call say,LD,$@)
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $^ $(LIBS_PROBE)

$(B)/coracle-kube: $(B)/agent/kube/kube_main.o $(kube_libs) $(call libname,agent/kube/link) $(api_libs) $(base_libs) $(B)/llhttp/llhttp.a
	$(call say,LD,$@)
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $^ $(LIBS_KUBE)

$(B)/coracle-seal: $(B)/agent/seal/seal_main.o $(call libname,agent/seal) $(call libname,agent/kept) $(base_libs)
	$(call say,LD,$@)
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $^ $(LIBS_SEAL)

$(B)/coracle-shutdown: $(patsubst %.c,$(B)/agent/%.o,$(shutdown_SRCS)) $(base_libs)
	$(call say,LD,$@)
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $^ $(LIBS_SHUTDOWN)

# Static, since they run in a container's file system; not position independent: relocating would make a page more their own.
small_flags := -std=gnu17 -Os $(warnings) -fstack-protector-strong -fstack-clash-protection -D_FORTIFY_SOURCE=3 -D_GNU_SOURCE -I. \
               -Wl,-z,relro,-z,now
$(B)/coracle-pause: agent/runtime/pause.c | $(B)/.flags
	$(call say,LD,$@)
	$(Q)$(CC) $(small_flags) -static -o $@ $<

$(B)/coracle-exec: $(patsubst %,agent/runtime/%,$(exec_SRCS)) agent/runtime/exec_report.h | $(B)/.flags
	$(call say,LD,$@)
	$(Q)$(CC) $(small_flags) $(EXEC_LINK) -o $@ $(filter %.c,$^)

$(B)/llhttp/llhttp.a: $(B)/.flags
	$(call say,CC,llhttp)
	$(Q)mkdir -p $(B)/llhttp && cd $(B)/llhttp && $(CC) -O2 -g -fPIE -ffile-prefix-map=$(CURDIR)=. -I$(LLHTTP_INCLUDE) \
	    -c $(LLHTTP)/llhttp.c $(LLHTTP)/api.c $(LLHTTP)/http.c && rm -f llhttp.a && $(AR) rcs llhttp.a llhttp.o api.o http.o

# Messages: C from the .proto files, only below build/. Any source may include them, so they are made before the first object.
generated := $(patsubst %.c,$(B)/deviceplugin/proto/%.h,$(deviceplugin_proto_SRCS)) \
             $(patsubst %.c,$(B)/volumes/csi/proto/%.h,$(volumes_csi_proto_SRCS))
$(B)/%.pb-c.c $(B)/%.pb-c.h: %.proto $(B)/.flags
	$(call say,PROTO,$<)
	$(Q)mkdir -p $(B) && $(PROTOC_C) --c_out=$(B) $<

$(B)/%.pb-c.o: $(B)/%.pb-c.c $(B)/.flags
	$(call say,CC,$<)
	$(Q)$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -MMD -MP -c -o $@ $<

$(B)/%.o: %.c $(B)/.flags | $(generated)
	$(call say,CC,$<)
	$(Q)mkdir -p $(@D) && $(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -MMD -MP -c -o $@ $<

# Rebuilds everything of this variant when compiler or flags change; says which library is missing before a header is.
flags_text := $(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) $(LDFLAGS_ALL)
$(B)/.flags: FORCE
	@PKG_CONFIG='$(PKG_CONFIG)' CC='$(CC) $(CPPFLAGS)' LLHTTP='$(LLHTTP)' PROTOC_C='$(PROTOC_C)' tests/tools/libraries $(libraries)
	@mkdir -p $(B); printf '%s\n' '$(subst ','\'',$(flags_text))' | cmp -s - $@ || printf '%s\n' '$(subst ','\'',$(flags_text))' > $@
FORCE:

-include $(shell find $(B) -name '*.d' 2>/dev/null)

include tests/module.mk
include systemd/module.mk

.PHONY: deps run cluster format format-check analyze clean help compile_commands
deps: ## install what is missing from Debian's packages, saying what and why
	@tests/tools/deps $(if $(DEPS),$(DEPS),build run)

run: ## install what is missing, build, make an image, run examples/ (Ctrl-C takes everything down)
	@tests/tools/deps build run
	@$(MAKE) --no-print-directory -j$(shell nproc) all
	@examples/run $(abspath $(B))

NODES ?= 2
cluster: ## etcd, a kube-apiserver and NODES=2 agents of this build in network namespaces (Ctrl-C takes everything down); ETCD= and KUBE_APISERVER= name the programs
	@tests/tools/deps build run cluster
	@$(MAKE) --no-print-directory -j$(shell nproc) all
	@examples/cluster $(abspath $(B)) --nodes $(NODES)

format: ## clang-format the sources in place
	$(Q)git ls-files '*.c' '*.h' | xargs clang-format -i

format-check: ## fail when clang-format would change something
	$(Q)git ls-files '*.c' '*.h' | xargs clang-format --dry-run -Werror

analyze: $(generated) ## gcc -fanalyzer, cppcheck and clang-tidy without findings; WHOLE=1 with all of Clang's static analyzer, FEW=1 as in make check
	@tests/tools/deps build dev
	$(Q)tests/tools/analyze $(if $(WHOLE),--whole) $(if $(FEW),--few) --jobs $(jobs) --work $(abspath $(O))/analyze -- $(dialect) $(CPPFLAGS_ALL)

compile_commands: ## write compile_commands.json
	$(Q)rm -rf $(O)/cc-db && bear --output compile_commands.json -- $(MAKE) --no-print-directory O=$(O)/cc-db all

clean: ## remove the build folder
	$(Q)rm -rf $(O)

help: ## this text
	@awk -F':.*## ' '/^[a-z_-]+:.*## / { printf "  make %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo "variables: V=1  SAN=address,undefined  CC=clang  WERROR=  O=build  DESTDIR=  PREFIX=/usr  CROSS_COMPILE=aarch64-linux-gnu-  PKG_CONFIG=  (config.mk for private ones)"
