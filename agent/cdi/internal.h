/* SPDX-License-Identifier: Apache-2.0 */
/* internal - declarations shared by the files of agent/cdi: the content of the spec files, and its readers.
 */
#ifndef AGENT_CDI_INTERNAL_H
#define AGENT_CDI_INTERNAL_H
#include "agent/api/check.h"
#include "agent/cdi/cdi.h"

#include <jansson.h>

/* The versions of the specification, oldest first; those before 0.3.0 were drafts. */
enum cdi_version { CDI_030, CDI_040, CDI_050, CDI_060, CDI_070, CDI_080, CDI_100, CDI_110, CDI_VERSIONS };
extern const char *const cdi_version_names[CDI_VERSIONS];

struct cdi_device {
    const char *name; /* "vendor/class=name" */
    struct rt_edits edits;
};

struct cdi_spec { /* a file */
    const char *path;
    size_t folder; /* index of the folder: a later one takes precedence */
    struct rt_edits edits;
    struct cdi_device *devices;
    size_t n_devices;
};

struct cdi_entry { /* a name and its device */
    const struct cdi_device *device;
    const struct cdi_spec *spec;
    bool conflict; /* another file of the same folder has the name */
};

/* The content of all folders. Immutable once it is in use. */
struct cdi_content {
    unsigned refs; /* of the loop thread */
    struct arena arena;
    struct cdi_spec *specs;
    size_t n_specs, n_devices;
    struct cdi_entry *entries; /* sorted by name, each once */
    size_t n_entries;
    struct api_problems problems;
    uint64_t hash; /* of files and problems */
};
struct cdi_content *cdi_content_ref(struct cdi_content *c);
void cdi_content_unref(struct cdi_content *c); /* NULL is fine */

/* ---- load.c: on the pool ---- */
/* Reads all folders. On error a folder or file could not be read, and *ret stays NULL. */
enum err_code cdi_content_read(const char *const *dirs, struct cdi_content **ret, struct err *e) MUST_CHECK;
/* Whether a file of this name is a spec file. */
bool cdi_is_spec_file(const char *name);

/* ---- content.c ---- */
/* Sorts the names, and reports names that two files of a folder define. */
enum err_code cdi_index(struct cdi_content *c, struct err *e) MUST_CHECK;
const struct cdi_entry *cdi_find(const struct cdi_content *c,
                                 const char *name); /* NULL also for a conflict */
enum err_code cdi_content_resolve(struct cdi_content *c, const char *const *names, size_t n,
                                  struct cdi_resolved *ret, struct err *e) MUST_CHECK;

/* ---- decode.c: pure, fuzzed ---- */
/* A file's text; problems are reported. False: the file has problems, or there is no memory (*e is set then).
 */
bool cdi_decode(const char *path, const char *text, size_t n, struct arena *arena,
                struct api_problems *problems, struct cdi_spec *ret, struct err *e) MUST_CHECK;

struct cdi_reader {
    struct api_check check;
    enum cdi_version version;
};
/* Reports that the field at the current place needs a later version than the file has. */
void cdi_needs(struct cdi_reader *r, enum cdi_version v);

/* Members of an object: known members are read, all others reported. Names are compared without case, as by
 * the library's JSON reader. */
struct cdi_member {
    const char *name;
    void (*read)(struct cdi_reader *r, const json_t *v, void *to);
};
void cdi_read_members(struct cdi_reader *r, const json_t *v, const struct cdi_member *members, size_t n,
                      void *to);
/* Values; after a fault, which is reported, the result is empty. */
const char *cdi_text(struct cdi_reader *r, const json_t *v); /* never NULL */
int64_t cdi_number(struct cdi_reader *r, const json_t *v, int64_t min, int64_t max);
/* The list's elements, each of `size` bytes and zeroed; `read` fills them, with their place in `check`. */
void *cdi_list(struct cdi_reader *r, const json_t *v, size_t max, size_t size, size_t *ret_n,
               void (*read)(struct cdi_reader *r, const json_t *v, void *to));
const char *const *cdi_texts(struct cdi_reader *r, const json_t *v, size_t *ret_n);

/* ---- decode_edits.c ---- */
void cdi_read_edits(struct cdi_reader *r, const json_t *v, struct rt_edits *to);
bool cdi_edits_are_empty(const struct rt_edits *e);

/* ---- names.c ---- */
/* The problem of a name; NULL: none. */
const char *cdi_vendor_problem(const char *s, size_t n); /* of vendor and class */
const char *cdi_device_problem(const char *s, size_t n);
#endif
