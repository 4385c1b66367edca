/* SPDX-License-Identifier: Apache-2.0 */
#include "volumes/csi/volume.h"

#include <sha2.h>
#include <stdio.h>
#include <string.h>

enum csi_access csi_access_of(unsigned modes, csi_caps caps)
{
    bool knows_more = csi_can(caps, CSI_CAN_MULTI_WRITER);

    if ((modes & CSI_RWO) != 0 || modes == 0)
        return knows_more ? CSI_SINGLE_NODE_MULTI_WRITER : CSI_SINGLE_NODE_WRITER;
    if ((modes & CSI_ROX) != 0)
        return CSI_MULTI_NODE_READER_ONLY;
    if ((modes & CSI_RWX) != 0)
        return CSI_MULTI_NODE_MULTI_WRITER;
    return knows_more ? CSI_SINGLE_NODE_SINGLE_WRITER : CSI_SINGLE_NODE_WRITER; /* ReadWriteOncePod */
}

bool csi_wants_group(const struct csi_volume *v, csi_caps caps)
{
    bool has_type = v->fs_type != NULL && v->fs_type[0] != '\0';

    if (v->block || v->read_only || v->fs_group < 0 || csi_can(caps, CSI_CAN_MOUNT_GROUP))
        return false;
    switch (v->group_policy) {
    case CSI_GROUP_NONE:
        return false;
    case CSI_GROUP_FILE:
        return true;
    case CSI_GROUP_RWO_WITH_FS_TYPE:
        return has_type && (v->ephemeral || (v->access_modes & (CSI_RWO | CSI_RWOP)) != 0);
    }
    return false;
}

bool csi_is_uncertain(enum err_code code)
{
    return code == ERR_CANCELLED || code == ERR_DEADLINE || code == ERR_UNAVAILABLE ||
           code == ERR_EXHAUSTED || code == ERR_ABORTED;
}

/* ---- names ---- */

static bool is_alphanumeric(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool csi_driver_name_ok(const char *name)
{
    size_t n = strnlen(name, CSI_NAME_MAX + 1);

    if (n == 0 || n > CSI_NAME_MAX || !is_alphanumeric(name[0]) || !is_alphanumeric(name[n - 1]))
        return false;
    for (size_t i = 0; i < n; i++) {
        bool inner = is_alphanumeric(name[i]) || name[i] == '-';

        if (!inner && (name[i] != '.' || !is_alphanumeric(name[i - 1]) || !is_alphanumeric(name[i + 1])))
            return false;
    }
    return true;
}

static void hash(const char *prefix, const char *const *texts, size_t n, char ret[CSI_HASHED_SIZE])
{
    uint8_t sum[SHA256_DIGEST_LENGTH];
    SHA2_CTX ctx;
    int at = (int)strlen(prefix);

    SHA256Init(&ctx);
    for (size_t i = 0; i < n; i++)
        SHA256Update(&ctx, (const uint8_t *)texts[i], strlen(texts[i]));
    SHA256Final(sum, &ctx);
    strcpy(ret, prefix);
    for (size_t i = 0; i < sizeof(sum); i++)
        at += snprintf(ret + at, CSI_HASHED_SIZE - (size_t)at, "%02x", sum[i]);
}

void csi_handle_hash(const char *handle, char ret[CSI_HASHED_SIZE])
{
    hash("", &handle, 1, ret);
}

void csi_inline_handle(const char *pod_uid, const char *volume, char ret[CSI_HASHED_SIZE])
{
    const char *const texts[] = { pod_uid, volume };

    hash("csi-", texts, 2, ret);
}

void csi_attachment_name(const char *handle, const char *driver, const char *node, char ret[CSI_HASHED_SIZE])
{
    const char *const texts[] = { handle, driver, node };

    hash("csi-", texts, 3, ret);
}

/* ---- requests ---- */

static const char *given(const char *text)
{
    return text != NULL && text[0] != '\0' ? text : NULL;
}

static void fill_common(const struct csi_volume *v, csi_caps caps, const char *staging_path,
                        struct csi_request *r)
{
    *r = (struct csi_request){
        .volume_id = v->handle,
        .staging_path = staging_path,
        .block = v->block,
        .access = csi_access_of(v->access_modes, caps),
        .publish_context = v->publish_context,
        .volume_context = v->attributes,
    };
    if (v->block)
        return;
    r->fs_type = given(v->fs_type);
    r->mount_flags = v->mount_flags;
    r->n_mount_flags = v->n_mount_flags;
}

static enum err_code set_mount_group(const struct csi_volume *v, csi_caps caps, struct arena *memory,
                                     struct csi_request *r, struct err *e)
{
    if (v->block || v->fs_group < 0 || !csi_can(caps, CSI_CAN_MOUNT_GROUP))
        return ERR_OK;
    r->mount_group = arena_printf(memory, "%lld", (long long)v->fs_group);
    return r->mount_group != NULL ? ERR_OK : err_nomem(e);
}

#define TOKENS "csi.storage.k8s.io/serviceAccount.tokens"

/* `from` and then `more`: kubelet's words win over those of the volume. Pairs without a value are left out.
 */
static enum err_code add_pairs(const struct csi_pairs *from, const struct csi_pair *more, size_t n_more,
                               struct arena *memory, struct csi_pairs *ret, struct err *e)
{
    struct csi_pair *all = arena_alloc(memory, (from->n + n_more + 1) * sizeof(all[0]));
    size_t n = 0;

    if (all == NULL)
        return err_nomem(e);
    for (size_t i = 0; i < from->n; i++) {
        bool hidden = false;

        for (size_t j = 0; j < n_more; j++)
            hidden = hidden || (more[j].value != NULL && strcmp(more[j].key, from->v[i].key) == 0);
        if (!hidden)
            all[n++] = from->v[i];
    }
    for (size_t j = 0; j < n_more; j++)
        if (more[j].value != NULL)
            all[n++] = more[j];
    *ret = (struct csi_pairs){ all, n };
    return ERR_OK;
}

static enum err_code add_pod(const struct csi_volume *v, struct arena *memory, struct csi_pairs *ret,
                             struct err *e)
{
    const bool info = v->pod_info;
    const struct csi_pair pod[] = {
        { "csi.storage.k8s.io/pod.name", info ? v->pod_name : NULL },
        { "csi.storage.k8s.io/pod.namespace", info ? v->pod_namespace : NULL },
        { "csi.storage.k8s.io/pod.uid", info ? v->pod_uid : NULL },
        { "csi.storage.k8s.io/serviceAccount.name", info ? v->service_account : NULL },
        { "csi.storage.k8s.io/ephemeral", !info          ? NULL
                                          : v->ephemeral ? "true"
                                                         : "false" },
        { TOKENS, v->tokens_secret ? NULL : v->tokens },
    };

    return add_pairs(&v->attributes, pod, sizeof(pod) / sizeof(pod[0]), memory, ret, e);
}

static enum err_code add_secret(const struct csi_volume *v, struct arena *memory, struct csi_pairs *ret,
                                struct err *e)
{
    const struct csi_pair token = { TOKENS, v->tokens_secret ? v->tokens : NULL };

    return add_pairs(&v->publish_secrets, &token, 1, memory, ret, e);
}

enum err_code csi_publish_request(const struct csi_volume *v, csi_caps caps, const char *staging_path,
                                  const char *target_path, struct arena *memory, struct csi_request *ret,
                                  struct err *e)
{
    struct csi_request r;

    fill_common(v, caps, staging_path, &r);
    r.target_path = target_path;
    r.read_only = v->read_only;
    if (set_mount_group(v, caps, memory, &r, e) != ERR_OK ||
        add_pod(v, memory, &r.volume_context, e) != ERR_OK || add_secret(v, memory, &r.secrets, e) != ERR_OK)
        return e->code;
    *ret = r;
    return ERR_OK;
}

enum err_code csi_stage_request(const struct csi_volume *v, csi_caps caps, const char *staging_path,
                                struct arena *memory, struct csi_request *ret, struct err *e)
{
    struct csi_request r;

    fill_common(v, caps, staging_path, &r);
    r.secrets = v->stage_secrets;
    if (set_mount_group(v, caps, memory, &r, e) != ERR_OK)
        return e->code;
    *ret = r;
    return ERR_OK;
}

void csi_expand_request(const struct csi_volume *v, csi_caps caps, const char *staging_path,
                        const char *volume_path, uint64_t bytes, struct csi_expand_request *ret)
{
    *ret = (struct csi_expand_request){ .volume_id = v->handle,
                                        .volume_path = volume_path,
                                        .staging_path = staging_path,
                                        .bytes = bytes,
                                        .secrets = v->expand_secrets };
    fill_common(v, caps, staging_path, &ret->capability);
}
