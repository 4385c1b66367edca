# SPDX-License-Identifier: Apache-2.0
# `make install` puts files in place below DESTDIR and runs nothing on the machine; `make uninstall` removes exactly these files.
bindir     := $(PREFIX)/bin
libexecdir := $(PREFIX)/libexec/coracle
unitdir    := $(PREFIX)/lib/systemd/system
tmpfilesd  := $(PREFIX)/lib/tmpfiles.d
sysusersd  := $(PREFIX)/lib/sysusers.d
sysctld    := $(PREFIX)/lib/sysctl.d
docdir     := $(PREFIX)/share/doc/coracle
mandir     := $(PREFIX)/share/man
bashdir    := $(PREFIX)/share/bash-completion/completions
zshdir     := $(PREFIX)/share/zsh/vendor-completions
fishdir    := $(PREFIX)/share/fish/vendor_completions.d
sysconfdir := /etc

# Documents keep their folders: README.md links to them.
install_docs := README.md CHANGELOG.md LICENSE ARCHITECTURE.md CONTRIBUTING.md SECURITY.md systemd/README.md $(wildcard docs/*.md docs/decisions/*.md)

man_pages  := man1/coracle.1 man8/coracle.8 man5/coracle-config.5 man5/coracle-annotations.5

.PHONY: install uninstall
install: all ## install below DESTDIR (PREFIX=/usr); runs nothing
	$(Q)install -d -m 0755 $(patsubst %,'$(DESTDIR)%',$(bindir) $(libexecdir) $(unitdir) $(tmpfilesd) $(sysusersd) $(sysctld) $(docdir)/examples/manifests \
	    $(docdir)/examples/cni $(docdir)/docs/decisions $(docdir)/systemd $(sysconfdir)/coracle \
	    $(mandir)/man1 $(mandir)/man5 $(mandir)/man8 $(bashdir) $(zshdir) $(fishdir))
	$(Q)install -d -m 0700 '$(DESTDIR)$(sysconfdir)/coracle/manifests'
	$(Q)install -m 0755 $(B)/coracle '$(DESTDIR)$(bindir)/coracle'
	$(Q)install -m 0755 $(B)/coracle-unpack $(B)/coracle-pause $(B)/coracle-exec $(B)/coracle-probe $(B)/coracle-shutdown $(B)/coracle-kube $(B)/coracle-seal '$(DESTDIR)$(libexecdir)/'
	$(Q)for unit in coracle.service coracle-pods.service; do \
	    sed 's|@PREFIX@|$(PREFIX)|g' systemd/$$unit.in > '$(DESTDIR)$(unitdir)'/$$unit && chmod 0644 '$(DESTDIR)$(unitdir)'/$$unit || exit 1; \
	done
	$(Q)[ -e '$(DESTDIR)$(sysconfdir)/coracle/config.yaml' ] || install -m 0644 systemd/config.yaml '$(DESTDIR)$(sysconfdir)/coracle/config.yaml'
	$(Q)install -m 0644 systemd/config.yaml '$(DESTDIR)$(docdir)/config.yaml'
	$(Q)install -m 0644 systemd/tmpfiles.conf '$(DESTDIR)$(tmpfilesd)/coracle.conf'
	$(Q)install -m 0644 systemd/sysusers.conf '$(DESTDIR)$(sysusersd)/coracle.conf'
	$(Q)install -m 0644 systemd/sysctl.conf '$(DESTDIR)$(sysctld)/40-coracle.conf'
	$(Q)install -m 0644 $(wildcard examples/manifests/*.yaml) '$(DESTDIR)$(docdir)/examples/manifests/'
	$(Q)install -m 0644 $(wildcard examples/cni/*.conflist) '$(DESTDIR)$(docdir)/examples/cni/'
	$(Q)install -m 0755 examples/mkimage '$(DESTDIR)$(docdir)/examples/mkimage'
	$(Q)for page in $(man_pages); do \
	    sed 's|@VERSION@|$(VERSION)|' docs/man/$${page#*/}.in > '$(DESTDIR)$(mandir)'/$$page && chmod 0644 '$(DESTDIR)$(mandir)'/$$page || exit 1; \
	done
	$(Q)install -m 0644 systemd/completion.bash '$(DESTDIR)$(bashdir)/coracle'
	$(Q)install -m 0644 systemd/completion.zsh '$(DESTDIR)$(zshdir)/_coracle'
	$(Q)install -m 0644 systemd/completion.fish '$(DESTDIR)$(fishdir)/coracle.fish'
	$(Q)for doc in $(install_docs); do install -m 0644 $$doc '$(DESTDIR)$(docdir)'/$$doc || exit 1; done

# Manifests, state, logs and a changed config.yaml belong to the user and stay.
uninstall: ## remove what install put below DESTDIR
	$(Q)rm -f '$(DESTDIR)$(bindir)/coracle' $(patsubst %,'$(DESTDIR)$(libexecdir)/%',coracle-unpack coracle-pause coracle-exec coracle-probe coracle-shutdown coracle-kube coracle-seal) \
	    $(patsubst %,'$(DESTDIR)$(unitdir)/%',coracle.service coracle-pods.service) '$(DESTDIR)$(tmpfilesd)/coracle.conf' '$(DESTDIR)$(sysusersd)/coracle.conf' '$(DESTDIR)$(sysctld)/40-coracle.conf' \
	    $(patsubst %,'$(DESTDIR)$(mandir)/%',$(man_pages)) '$(DESTDIR)$(bashdir)/coracle' '$(DESTDIR)$(zshdir)/_coracle' '$(DESTDIR)$(fishdir)/coracle.fish'
	$(Q)rm -rf '$(DESTDIR)$(docdir)'
	$(Q)cmp -s systemd/config.yaml '$(DESTDIR)$(sysconfdir)/coracle/config.yaml' && rm -f '$(DESTDIR)$(sysconfdir)/coracle/config.yaml' || :
	$(Q)rmdir --ignore-fail-on-non-empty '$(DESTDIR)$(libexecdir)' '$(DESTDIR)$(sysconfdir)/coracle/manifests' \
	    '$(DESTDIR)$(sysconfdir)/coracle' 2> /dev/null || :

# Debian's name for the architecture that the compiler builds for.
DEB_HOST_ARCH ?= $(shell dpkg-architecture -f -t$$($(CC) -dumpmachine) -qDEB_HOST_ARCH)
.PHONY: deb
deb: all ## build a Debian package of what install installs: $(O)/coracle_<version>_<architecture>.deb
	@tests/tools/deps deb
	$(Q)rm -rf '$(O)/deb' && $(MAKE) --no-print-directory install DESTDIR='$(abspath $(O))/deb' PREFIX=/usr
	$(Q)STRIP='$(STRIP)' DEB_HOST_ARCH='$(DEB_HOST_ARCH)' systemd/package/build '$(VERSION)' '$(abspath $(O))/deb' '$(abspath $(O))'
