/* SPDX-License-Identifier: Apache-2.0 */
/*
 * messages - the messages of device plugins and of the plugin watcher, packed, unpacked and checked.
 *
 * Plugins are hostile. Before memory is allocated, bytes are checked against the message's definition
 * (wire.h): numbers of elements, UTF-8 (Go refuses the rest with "string field contains invalid UTF-8"),
 * no NUL in texts. Unknown fields are ignored, so that newer plugins work. Of repeated keys of a map the last
 * one is used. Errors are ERR_INVALID or ERR_EXHAUSTED, and name message and field.
 *
 * Packed messages are malloc'ed. Pure; any thread.
 */
#ifndef DEVICEPLUGIN_MESSAGES_H
#define DEVICEPLUGIN_MESSAGES_H
#include "deviceplugin/inventory.h"

#define DP_ANSWER_ENTRIES_MAX 1024 /* envs, annotations, mounts, devices and CDI devices, each */
#define DP_NUMA_OF_DEVICE_MAX 1024 /* the kernel's greatest number of NUMA nodes (CONFIG_NODES_SHIFT 10) */
#define DP_VERSIONS_MAX 64         /* of PluginInfo */
#define DP_PATH_MAX 4096           /* PATH_MAX */

/* ---- ContainerAllocateResponse ---- */
/* Also from stored bytes. *ret is one block of memory: free() it. */
enum err_code dp_answer_unpack(struct dp_answer **ret, const uint8_t *p, size_t n, struct err *e) MUST_CHECK;
/* For providers that are no plugins: what the checkpoint stores of their answers. */
enum err_code dp_answer_pack(const struct dp_answer *a, uint8_t **ret, size_t *ret_n,
                             struct err *e) MUST_CHECK;
#endif
