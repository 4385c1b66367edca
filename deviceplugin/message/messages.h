/* SPDX-License-Identifier: Apache-2.0 */
/*
 * messages - the messages of device plugins and of the plugin watcher, packed, unpacked and checked.
 *
 * Plugins are hostile: bytes are checked against the message's definition before memory is allocated
 * (wire.h), then ids, names, paths and numbers of elements. Unknown fields are ignored, so that newer plugins
 * work. Of repeated keys of a map the last one is used. Errors are ERR_INVALID (bytes that Go would refuse,
 * too), ERR_EXHAUSTED (a limit) or ERR_INTERNAL (an answer that cannot be applied to a container); they name
 * message and field. Messages without fields (Empty, InfoRequest) have no bytes.
 *
 * Results returned as bytes, or as "one block", are malloc'ed: free() them. Outputs that have a _done
 * function must be { 0 } before the call. Pure; any thread.
 */
#ifndef DEVICEPLUGIN_MESSAGE_MESSAGES_H
#define DEVICEPLUGIN_MESSAGE_MESSAGES_H
#include "base/arena.h"
#include "deviceplugin/inventory.h"

#define DP_ANSWER_ENTRIES_MAX 1024 /* envs, annotations, mounts, devices and CDI devices, each */
#define DP_ANSWER_BYTES_MAX                                                                                  \
    (1 << 20) /* of a container's answer: the checkpoint has the answers of all containers */
#define DP_NUMA_OF_DEVICE_MAX (1 << 10) /* NUMA nodes of a kernel: CONFIG_NODES_SHIFT is at most 10 */
#define DP_VERSIONS_MAX 64              /* of PluginInfo */
#define DP_PATH_MAX 4095                /* PATH_MAX, without the NUL */

/* ---- ContainerAllocateResponse ---- */
/* Also from stored bytes. One block. */
enum err_code dp_answer_unpack(struct dp_answer **ret, const uint8_t *p, size_t n, struct err *e) MUST_CHECK;
/* For providers other than plugins: the form in which the checkpoint stores their answers. */
enum err_code dp_answer_pack(const struct dp_answer *a, uint8_t **ret, size_t *ret_n,
                             struct err *e) MUST_CHECK;

/* ---- messages from plugins ---- */
struct dp_registration { /* RegisterRequest */
    const char *version, *endpoint, *resource;
    struct arena memory;
};
enum err_code dp_registration_unpack(struct dp_registration *ret, const uint8_t *p, size_t n,
                                     struct err *e) MUST_CHECK;
void dp_registration_done(struct dp_registration *r);

enum err_code dp_options_unpack(struct dp_options *ret, const uint8_t *p, size_t n, struct err *e) MUST_CHECK;

struct dp_list { /* ListAndWatchResponse */
    struct dp_device *v;
    size_t n;
    struct arena memory;
};
/* ERR_EXHAUSTED: more than DP_DEVICES_MAX. A health other than "Healthy" is unhealthy. */
enum err_code dp_list_unpack(struct dp_list *ret, const uint8_t *p, size_t n, struct err *e) MUST_CHECK;
void dp_list_done(struct dp_list *l);

/* AllocateResponse, to a request of one container: the first container's answer, as a struct and as the
 * received bytes, each one block. ERR_EXHAUSTED: DP_ANSWER_BYTES_MAX. "no containers return in allocation
 * response": kubelet's text. */
enum err_code dp_allocated_unpack(struct dp_answer **ret, uint8_t **ret_raw, size_t *ret_n, const uint8_t *p,
                                  size_t n, struct err *e) MUST_CHECK;
/* PreferredAllocationResponse: the first container's ids, NULL-terminated, one block; no container: none. */
enum err_code dp_preferred_unpack(char ***ret, const uint8_t *p, size_t n, struct err *e) MUST_CHECK;

struct dp_plugin_info { /* PluginInfo */
    const char *type, *name, *endpoint;
    const char *const *versions;
    size_t n_versions;
};
struct dp_info {
    struct dp_plugin_info info;
    struct arena memory;
};
enum err_code dp_info_unpack(struct dp_info *ret, const uint8_t *p, size_t n, struct err *e) MUST_CHECK;
void dp_info_done(struct dp_info *i);

/* ---- messages to plugins ---- */
/* AllocateRequest for one container. */
enum err_code dp_allocate_pack(const char *const *ids, size_t n, uint8_t **ret, size_t *ret_n,
                               struct err *e) MUST_CHECK;
/* PreferredAllocationRequest for one container. */
enum err_code dp_preferred_pack(const char *const *available, size_t n_available, const char *const *must,
                                size_t n_must, int32_t size, uint8_t **ret, size_t *ret_n,
                                struct err *e) MUST_CHECK;
/* PreStartContainerRequest. */
enum err_code dp_pre_start_pack(const char *const *ids, size_t n, uint8_t **ret, size_t *ret_n,
                                struct err *e) MUST_CHECK;
/* RegistrationStatus; `why` NULL: registered. */
enum err_code dp_status_pack(const char *why, uint8_t **ret, size_t *ret_n, struct err *e) MUST_CHECK;
#endif
