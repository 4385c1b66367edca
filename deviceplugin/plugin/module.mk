# SPDX-License-Identifier: Apache-2.0
deviceplugin_plugin_SRCS := calls.c counts.c entry.c plugin.c plugins.c problems.c register.c registration.c watcher.c
