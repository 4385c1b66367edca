/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/unpack/unpack.h"

#include "base/codec/json.h"
#include "base/files/fs.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

/* ---- platforms ------------------------------------------------------------------------------- */

void unpack_platform_host(struct unpack_platform *ret)
{
    static const struct {
        const char *machine;
        struct unpack_platform platform;
    } known[] = {
        { "x86_64", { "linux", "amd64", "" } },
        { "aarch64", { "linux", "arm64", "v8" } },
        { "armv7l", { "linux", "arm", "v7" } },
        { "armv6l", { "linux", "arm", "v6" } },
        { "armv8l", { "linux", "arm", "v7" } },
        { "riscv64", { "linux", "riscv64", "" } },
        { "ppc64le", { "linux", "ppc64le", "" } },
        { "s390x", { "linux", "s390x", "" } },
        { "i686", { "linux", "386", "" } },
        { "i586", { "linux", "386", "" } },
        { "loongarch64", { "linux", "loong64", "" } },
    };
    struct utsname u;

    *ret = (struct unpack_platform){ .os = "linux", .arch = "unknown" };
    if (uname(&u) != 0)
        return;
    snprintf(ret->arch, sizeof(ret->arch), "%.15s", u.machine); /* often the same name in Go */
    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if (strcmp(u.machine, known[i].machine) == 0)
            *ret = known[i].platform;
}

enum err_code unpack_platform_parse(const char *text, struct unpack_platform *ret, struct err *e)
{
    struct unpack_platform p = { 0 };
    int n = 0;

    if (sscanf(text, "%15[a-z0-9]/%15[a-z0-9]%n/%15[a-z0-9]%n", p.os, p.arch, &n, p.variant, &n) < 2 ||
        text[n] != '\0')
        return err_set(e, ERR_INVALID, "platform \"%.100s\" is not of the form os/architecture[/variant]",
                       text);
    *ret = p;
    return ERR_OK;
}

/* ---- the configuration ----------------------------------------------------------------------- */

static enum err_code check_platform(const json_t *config, const struct unpack_platform *p, struct err *e)
{
    const char *os = json_str(config, "os"), *arch = json_str(config, "architecture");

    /* Hand-written images may lack these fields; then a wrong architecture fails at exec. */
    if ((os != NULL && os[0] != '\0' && strcmp(os, p->os) != 0) ||
        (arch != NULL && arch[0] != '\0' && strcmp(arch, p->arch) != 0))
        return err_set(e, ERR_INVALID, "the image is for %.40s/%.40s, but this node is %s/%s",
                       os != NULL ? os : "?", arch != NULL ? arch : "?", p->os, p->arch);
    return ERR_OK;
}

static enum err_code unpack_config_take_string(json_t *record, const char *key, const json_t *config,
                                               const char *name, struct err *e)
{
    const json_t *v = json_object_get(config, name);

    if (v == NULL || json_is_null(v))
        return ERR_OK;
    if (!json_is_string(v))
        return err_set(e, ERR_INVALID, "%s is not a string", name);
    return json_put_str(record, key, json_string_value(v)) ? ERR_OK : err_nomem(e);
}

static enum err_code unpack_config_take_strings(json_t *record, const char *key, const json_t *config,
                                                const char *name, struct err *e)
{
    json_t *v = json_object_get(config, name), *item;
    size_t i;

    if (v == NULL || json_is_null(v))
        return ERR_OK;
    if (!json_is_array(v))
        return err_set(e, ERR_INVALID, "%s is not a list", name);
    json_array_foreach (v, i, item)
        if (!json_is_string(item))
            return err_set(e, ERR_INVALID, "%s[%zu] is not a string", name, i);
    return json_object_set(record, key, v) == 0 ? ERR_OK : err_nomem(e);
}

/* Relative paths begin at the root, as in containerd; the root itself is ignored. */
static enum err_code take_volume(json_t *list, const char *name, struct err *e)
{
    size_t n = strlen(name);
    char path[PATH_MAX];
    str_auto clean = NULL;

    if (n + 1 >= sizeof(path))
        return err_set(e, ERR_INVALID, "Volumes: a path has %zu bytes, the limit is %zu", n,
                       sizeof(path) - 2);
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)name[i] < 0x20 || name[i] == 0x7f)
            return err_set(e, ERR_INVALID, "Volumes: \"%.200s\" has control characters", name);
    snprintf(path, sizeof(path), "%s", name);
    fs_path_clean(path);
    if (path[0] == '\0')
        return ERR_OK;
    if (!fs_path_is_safe(path))
        return err_set(e, ERR_INVALID, "Volumes: \"%.200s\" is not a path in the image", name);
    clean = str_printf("/%s", path);
    return clean != NULL && json_array_append_new(list, json_string(clean)) == 0 ? ERR_OK : err_nomem(e);
}

static enum err_code unpack_config_take_volumes(json_t *record, json_t *config, struct err *e)
{
    json_t *volumes = json_object_get(config, "Volumes"), *list, *ignored;
    const char *name;

    if (volumes == NULL || json_is_null(volumes))
        return ERR_OK;
    if (!json_is_object(volumes))
        return err_set(e, ERR_INVALID, "Volumes is not an object");
    if (json_object_size(volumes) > UNPACK_MAX_VOLUMES)
        return err_set(e, ERR_EXHAUSTED, "Volumes has %zu entries, the limit is %d",
                       json_object_size(volumes), UNPACK_MAX_VOLUMES);
    list = json_array();
    if (json_object_set_new(record, "volumes", list) != 0)
        return err_nomem(e);
    json_object_foreach (volumes, name, ignored)
        if (take_volume(list, name, e) != ERR_OK)
            return e->code;
    return ERR_OK;
}

static enum err_code take_diff_ids(struct unpack_image *image, const json_t *config, struct err *e)
{
    const json_t *ids = json_object_get(json_object_get(config, "rootfs"), "diff_ids");
    size_t n = json_array_size(ids), i;
    json_t *id;

    if (n == 0)
        return err_set(e, ERR_INVALID, "the image has no layers");
    if (n > UNPACK_MAX_LAYERS)
        return err_set(e, ERR_EXHAUSTED, "the image has %zu layers, the limit is %d", n, UNPACK_MAX_LAYERS);
    image->layers = calloc(n, sizeof(*image->layers));
    if (image->layers == NULL)
        return err_nomem(e);
    image->n_layers = n;
    json_array_foreach (ids, i, id) {
        const char *text = json_string_value(id);

        if (!unpack_digest_is_valid(text))
            return err_set(e, ERR_INVALID, "rootfs.diff_ids[%zu] is not a SHA-256 digest", i);
        memcpy(image->layers[i].diff_id, text, UNPACK_DIGEST_SIZE);
        image->layers[i].size = -1;
    }
    return ERR_OK;
}

enum err_code unpack_config_read(const json_t *config, const struct unpack_platform *p,
                                 struct unpack_image *image, struct err *e)
{
    json_t *c = json_object_get(config, "config");

    image->record = json_object();
    if (image->record == NULL)
        return err_nomem(e);
    if (check_platform(config, p, e) != ERR_OK)
        return e->code;
    if (take_diff_ids(image, config, e) != ERR_OK ||
        unpack_config_take_string(image->record, "created", config, "created", e) != ERR_OK ||
        unpack_config_take_strings(image->record, "env", c, "Env", e) != ERR_OK ||
        unpack_config_take_strings(image->record, "entrypoint", c, "Entrypoint", e) != ERR_OK ||
        unpack_config_take_strings(image->record, "cmd", c, "Cmd", e) != ERR_OK ||
        unpack_config_take_string(image->record, "user", c, "User", e) != ERR_OK ||
        unpack_config_take_string(image->record, "workingDir", c, "WorkingDir", e) != ERR_OK ||
        unpack_config_take_string(image->record, "stopSignal", c, "StopSignal", e) != ERR_OK ||
        unpack_config_take_volumes(image->record, c, e) != ERR_OK)
        return err_wrap(e, "image configuration");
    return ERR_OK;
}
