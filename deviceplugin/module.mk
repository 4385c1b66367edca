# SPDX-License-Identifier: Apache-2.0
deviceplugin_SRCS := answer.c calls.c checkpoint.c checkpoint_parse.c checkpoint_sum.c checkpoint_text.c choose.c counts.c device_id.c entry.c holdings.c inventory.c machine.c messages.c plugin.c plugins.c podresources.c problems.c register.c registration.c resource_name.c reuse.c topology.c watcher.c wire.c
