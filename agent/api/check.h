/* SPDX-License-Identifier: Apache-2.0 */
/* check - the state of an object's check: the path of the present field, and the problems found; also the
 * text formats of names. */
#ifndef AGENT_API_CHECK_H
#define AGENT_API_CHECK_H
#include "agent/api/problems.h"

#include <stdbool.h>
#include <stddef.h>

#define API_PATH_MAX 1024     /* a longer field path is truncated: 64 levels of ordinary names fit */
#define API_PATH_STEP_MAX 130 /* as is a longer name in it */
#define API_LIST_MAX 2000     /* elements of one list: some checks compare all pairs */
#define API_RESOURCES_MAX 100 /* per container */

/* ---- check context (check.c) ---- */
/* What only `coracle validate` reports: the daemon accepts it, as an API server does, and the pod then waits
 * or fails. */
struct api_lint {
    /* Whether an image reference can be parsed (by agent/image); otherwise *e has the reason. */
    enum err_code (*image)(const char *reference, struct err *e);
};

struct api_check {
    struct api_problems *problems;
    struct arena *arena;         /* of the object being built */
    const char *file;            /* NULL: show only paths */
    int document;                /* 1.., with file */
    struct api_places *places;   /* of the file; NULL: unknown */
    const struct api_lint *lint; /* NULL: report only what the daemon refuses */
    bool served;                 /* of the apiserver: unknown fields are dropped */
    bool joined;                 /* fields that need an apiserver are acted on */
    bool expanded;               /* made by the agent from a workload: its owner is kept */
    const char *static_node;     /* pods are static pods of this node; NULL: they are not */
    size_t faults;               /* problems reported through this context */
    bool no_memory;              /* an allocation failed: the object is incomplete */
    char path[API_PATH_MAX];     /* "spec.containers[0].ports[1]" */
    size_t path_n;
    char **ignored; /* malloc'ed; from api_ignore() */
    size_t n_ignored;
};

/* Descends one level; pass the result to api_leave() when done. */
size_t api_enter(struct api_check *c, const char *name);
size_t api_enter_index(struct api_check *c, size_t index);
size_t api_enter_key(struct api_check *c, const char *key); /* "limits[memory]" */
void api_leave(struct api_check *c, size_t mark);
char api_path_char(char ch); /* as a path has this byte of a name: a control byte becomes '?' */

/* Reports a problem at the current path, at a field below it, or at an element of a list below it. */
void api_fault(struct api_check *c, const char *fmt, ...) PRINTF_LIKE(2, 3);
void api_fault_at(struct api_check *c, const char *child, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* Notes a field that is accepted but has no effect. */
void api_ignore(struct api_check *c, const char *why);
void api_check_done(struct api_check *c);

/* Allocates from the arena; failure is noted in the context. */
void *api_alloc(struct api_check *c, size_t n);
char *api_strdup(struct api_check *c, const char *s);

/* `text` in double quotes, with control bytes replaced, truncated when long: for messages. */
struct api_quoted {
    char s[100];
};
struct api_quoted api_quote(const char *text);
#define QUOTE(text) (api_quote(text).s)

/* ---- formats of names (names.c) ---- */
enum api_format {
    API_FMT_NONE,
    API_FMT_LABEL,     /* DNS-1123 label */
    API_FMT_SUBDOMAIN, /* DNS-1123 subdomain */
    API_FMT_LABEL_KEY, /* qualified name */
    API_FMT_LABEL_VALUE,
    API_FMT_DATA_KEY, /* key of a ConfigMap or Secret */
    API_FMT_ENV_NAME,
    API_FMT_PORT_NAME,
    API_FMT_HEADER_NAME,
    API_FMT_IP,
    API_FMT_SEARCH_DOMAIN,
    API_FMT_SYSCTL,
    API_FMT_DESCENDING,   /* relative path without ".." */
    API_FMT_FILE_PATH,    /* the same, and not starting with ".." */
    API_FMT_NO_BACKSTEPS, /* any path without ".." */
    API_FMT_UID,
    API_FMT_IMAGE,   /* no surrounding blanks */
    API_FMT_MEDIUM,  /* of an emptyDir */
    API_FMT_PERCENT, /* "25%" */
};

/* NULL if valid, otherwise the rule: "must be ...". */
const char *api_format_rule(enum api_format format, const char *s);

/* What the agent does with a field, or with a resource's name. */
enum api_support {
    API_WITH_PARENT, /* like the containing object; a field with a slot is acted on */
    API_ACTED,
    API_ACCEPTED, /* no meaning for a node, or for this node */
    API_IGNORED,  /* accepted, listed in api_pod.ignored */
    API_REFUSED,
};
#endif
