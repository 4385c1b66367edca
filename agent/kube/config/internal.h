/* SPDX-License-Identifier: Apache-2.0 */
/* internal - declarations shared by the files of agent/kube/config. */
#ifndef AGENT_KUBE_CONFIG_INTERNAL_H
#define AGENT_KUBE_CONFIG_INTERNAL_H
#include "agent/kube/config/config.h"
#include "base/buf.h"
#include "base/scope.h"

#include <stdint.h>

enum kube_type {
    KT_TEXT,
    KT_PATH,    /* relative to the file */
    KT_COMMAND, /* likewise, where it has a slash */
    KT_BOOL,
    KT_DATA, /* base64 */
    KT_TEXTS,
    KT_TEXTS_MAP,
    KT_TEXT_MAP,
    KT_OBJECT,     /* with `fields` */
    KT_OBJECTS,    /* a list of such */
    KT_EXTENSIONS, /* a list of {name, extension}; becomes an object by names */
};

struct kube_field {
    const char *name; /* NULL ends a table */
    enum kube_type type;
    bool secret;
    const struct kube_field *fields;
};

/* ---- fields.c ---- */
extern const struct kube_field *const kube_fields[KUBE_KINDS];
extern const struct kube_field kube_exec_fields[];
extern const char *const kube_kind_list[KUBE_KINDS], *const kube_kind_name[KUBE_KINDS];
/* The checked members of `value` (an object, or NULL or null: {}). ERR_INVALID: "server: a number, where a
 * text is needed". `base`: the folder of relative paths. */
enum err_code kube_fields_take(const struct kube_field *fields, const json_t *value, const char *base,
                               json_t **ret, struct err *e) MUST_CHECK;
const char *kube_type_name(const json_t *v); /* "a number" */

/* ---- url.c: as Go's net/url and client-go read them ---- */
struct kube_url {
    char *scheme, *host;   /* host with its port, as written; both NULL if freed */
    char *user, *password; /* decoded; NULL: none */
    char *path;            /* "" or "/..." as written, without query and fragment */
};
void kube_url_done(struct kube_url *u);
/* False: Go's url.Parse() fails, or there is no scheme or no host. *ret_why (may be NULL): why, static. */
bool kube_url_parse(const char *text, struct kube_url *ret, const char **ret_why);
/* The server of a cluster: host:port without a scheme is http. */
enum err_code kube_url_server(const char *text, struct kube_url *ret, struct err *e) MUST_CHECK;
/* proxy-url. ERR_INVALID: its scheme is none of http, https, socks5. */
enum err_code kube_url_proxy(const char *text, struct err *e) MUST_CHECK;
/* "host", "port" of u->host, "[::1]" without brackets; malloc'ed. False: out of memory. */
bool kube_url_split(const struct kube_url *u, char **ret_host, char **ret_port);

/* ---- choose.c ---- */
const char *kube_get(const struct kube_choice *c, enum kube_kind kind, const char *field); /* "" if not set */
bool kube_has(const struct kube_choice *c, enum kube_kind kind, const char *field);
void kube_json_wipe(
    json_t *v); /* NULL is fine; drops the reference, after overwriting its texts where it is the last */
#endif
