/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image_helper - a store in a scratch folder, with shell scripts in place of coracle-unpack and skopeo.
 *
 * A script logs its arguments (<dir>/unpack.log, skopeo.log) and then does what the test wrote to
 * <dir>/unpack.answer or skopeo.answer.  For those: `hex a` = 64 times that letter; `image A B [NAME]` prints
 * an image with that id and that layer (made when missing), called NAME or what --name said; `gate` waits
 * until the test closes what at_gate() returned.
 */
#ifndef TESTS_UNIT_AGENT_IMAGE_IMAGE_HELPER_H
#define TESTS_UNIT_AGENT_IMAGE_IMAGE_HELPER_H
#include "tests/unit/base/helper.h"

#include "agent/image/image_internal.h"
#include "base/codec/json.h"
#include "base/log.h"

#include <dirent.h>

#define HEX(c)                                                                                               \
    c c c c c c c c c c c c c c c c c c c c c c c c c c c c c c c c c c c c c c c c c c c c c c c c c c c c  \
        c c c c c c c c c c c c
#define ID(c) "sha256:" HEX(c)

static const char unpack_script[] =
    "#!/bin/sh\n"
    "D=%s\n"
    "hex() { printf %%064d 0 | tr 0 \"$1\"; }\n"
    "gate() { read -r line < $D/gate; }\n"
    "names() { printf '\"names\":[{\"name\":\"%%s\",\"ref\":\"%%s\"}]' \"$1\" \"$(printf %%s \"$1\" | "
    "sha256sum | cut -c1-64)\"; }\n"
    "image() {\n"
    "    mkdir -p \"$layers/$(hex \"$2\")\"\n"
    "    printf "
    "'{\"images\":[{\"id\":\"sha256:%%s\",\"digest\":\"sha256:%%s\",\"layers\":[\"sha256:%%s\"],"
    "\"layerBytes\":[5],\"sizeBytes\":5,%%s}]}' \\\n"
    "        \"$(hex \"$1\")\" \"${digest:-$(hex \"$1\")}\" \"$(hex \"$2\")\" \"$(names \"${3:-$name}\")\"\n"
    "}\n"
    "echo \"$*\" >> $D/unpack.log\n"
    "if [ \"$1\" = --hash-name ]; then echo \"{$(names \"$2\")}\"; exit; fi\n"
    "while [ $# -gt 1 ]; do\n"
    "    case $1 in\n"
    "    --source) source=$2 ;;\n"
    "    --layers) layers=$2 ;;\n"
    "    --work) work=$2 ;;\n"
    "    --name) name=$2 ;;\n"
    "    esac\n"
    "    shift 2\n"
    "done\n"
    ". $D/unpack.answer\n";

static const char skopeo_script[] =
    "#!/bin/sh\n"
    "D=%s\n"
    "hex() { printf %%064d 0 | tr 0 \"$1\"; }\n"
    "gate() { read -r line < $D/gate; }\n"
    "echo \"$*\" >> $D/skopeo.log\n"
    "env | sort > $D/skopeo.env\n"
    "case $* in *' inspect '*) verb=inspect ;; *) verb=copy ;; esac\n"
    "fatal() { echo \"time=\\\"now\\\" level=fatal msg=\\\"$1\\\"\" >&2; exit 1; }\n"
    ". $D/skopeo.answer\n";

struct world {
    uv_loop_t loop;
    char *dir;
    char store_dir[300];
    struct img_store *store;
    char added[1000]; /* names that on_added was called for, each with a blank after it */
};

static inline void write_file(const struct world *w, const char *name, mode_t mode, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
static inline void write_file(const struct world *w, const char *name, mode_t mode, const char *fmt, ...)
{
    char path[400];
    va_list ap;
    FILE *f;

    snprintf(path, sizeof(path), "%s/%s", w->dir, name);
    f = fopen(path, "w");
    assert_non_null(f);
    va_start(ap, fmt);
    vfprintf(f, fmt, ap);
    va_end(ap);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(chmod(path, mode), 0);
}

/* Whole content, malloc'ed; "" for a missing file.  (Inlined, gcc 12 takes what strstr() finds in it for a
 * local variable.) */
__attribute__((noinline, unused)) static char *read_file(const struct world *w, const char *name)
{
    char path[400], *text = NULL;
    struct err e = { 0 };

    snprintf(path, sizeof(path), "%s/%s", w->dir, name);
    if (fs_read_at(AT_FDCWD, path, 1 << 20, &text, NULL, &e) != ERR_OK)
        text = calloc(1, 1);
    assert_non_null(text);
    return text;
}

static inline size_t count_lines(const struct world *w, const char *name)
{
    char *text = read_file(w, name);
    size_t n = 0;

    for (const char *p = text; (p = strchr(p, '\n')) != NULL; p++)
        n++;
    free(text);
    return n;
}

static inline size_t count_entries(const struct world *w, const char *part)
{
    char path[400];
    size_t n = 0;
    DIR *d;

    snprintf(path, sizeof(path), "%s/%s", w->store_dir, part);
    d = opendir(path);
    assert_non_null(d);
    for (struct dirent *entry; (entry = readdir(d)) != NULL;)
        n += entry->d_name[0] != '.';
    closedir(d);
    return n;
}

static inline bool have(const struct world *w, const char *path)
{
    char whole[400];

    snprintf(whole, sizeof(whole), "%s/%s", w->dir, path);
    return access(whole, F_OK) == 0;
}

static inline void on_added(const char *name, void *arg)
{
    struct world *w = arg;
    size_t n = strlen(w->added);

    snprintf(w->added + n, sizeof(w->added) - n, "%s ", name);
}

static inline void open_store_with(struct world *w, uint64_t max_bytes, unsigned parallel, bool skopeo)
{
    char unpack[320], skopeo_path[320];
    const struct img_store_options o = { .loop = &w->loop,
                                         .dir = w->store_dir,
                                         .unpack_path = unpack,
                                         .skopeo_path = skopeo ? skopeo_path : NULL,
                                         .tmpfs_dir = w->dir,
                                         .run_dir = w->dir,
                                         .ops_cgroup_fd = -1,
                                         .max_bytes = max_bytes,
                                         .max_parallel = parallel };
    struct err e = { 0 };

    snprintf(unpack, sizeof(unpack), "%s/unpack", w->dir);
    snprintf(skopeo_path, sizeof(skopeo_path), "%s/skopeo", w->dir);
    if (img_store_open(&w->store, &o, &e) != ERR_OK)
        fail_msg("%s", e.text);
    img_on_added(w->store, on_added, w);
}

static inline void open_store(struct world *w)
{
    open_store_with(w, 0, 0, true);
}

static inline void close_store(struct world *w)
{
    img_store_close(w->store);
    w->store = NULL;
    uv_run(&w->loop, UV_RUN_DEFAULT);
    assert_int_equal(op_count(), 0);
}

static inline int world_make(void **state)
{
    struct world *w = calloc(1, sizeof(*w));
    char path[400];

    if (w == NULL || scratch_make((void **)&w->dir) != 0 || uv_loop_init(&w->loop) != 0)
        return -1;
    snprintf(w->store_dir, sizeof(w->store_dir), "%s/images", w->dir);
    snprintf(path, sizeof(path), "%s/gate", w->dir);
    if (mkfifo(path, 0600) != 0)
        return -1;
    write_file(w, "unpack", 0755, unpack_script, w->dir);
    write_file(w, "skopeo", 0755, skopeo_script, w->dir);
    write_file(w, "unpack.answer", 0644, "image a b\n");
    *state = w;
    return 0;
}

static inline int world_remove(void **state)
{
    struct world *w = *state;
    int bad;

    img_store_close(w->store);
    uv_run(&w->loop, UV_RUN_DEFAULT);
    bad = op_count() != 0 || uv_loop_close(&w->loop) != 0;
    if (bad)
        print_message("something is still live\n");
    if (scratch_remove((void **)&w->dir) != 0)
        bad = 1;
    free(w);
    return bad;
}

/* ---- brings ---------------------------------------------------------------------------------- */

struct bring {
    struct img_bring b;
    int calls;
    struct err result;
    struct img_image *image; /* a reference of the test's */
    char names[400];
};

static inline void on_brought(struct op *op, const struct err *result)
{
    struct bring *t = op->owner;
    json_t *name;
    size_t i;

    t->calls++;
    t->result = *result;
    if (result->code != ERR_OK)
        return;
    t->image = img_ref(t->b.image);
    json_array_foreach (t->b.names, i, name) {
        size_t n = strlen(t->names);

        snprintf(t->names + n, sizeof(t->names) - n, "%s ", json_string_value(name));
    }
}

static inline void start(struct world *w, struct bring *t, const char *source, const char *name)
{
    *t = (struct bring){ 0 };
    img_bring_start(&t->b, w->store, source, name, on_brought, t);
    assert_int_equal(t->calls, 0); /* never from inside of start */
}

static inline void wait_for(struct world *w, struct bring *t)
{
    while (t->calls == 0 && uv_run(&w->loop, UV_RUN_ONCE) != 0)
        ;
    assert_int_equal(t->calls, 1);
}

/* Brings and expects success; the reference is given back. */
static inline void bring(struct world *w, const char *source, const char *name)
{
    struct bring t;

    start(w, &t, source, name);
    wait_for(w, &t);
    if (t.result.code != ERR_OK)
        fail_msg("%s", t.result.text);
    img_unref(t.image);
}

static inline void refused(struct world *w, const char *source, const char *name, enum err_code code,
                           const char *text)
{
    struct bring t;

    start(w, &t, source, name);
    wait_for(w, &t);
    assert_string_equal(t.result.text, text);
    assert_int_equal(t.result.code, code);
    assert_null(t.image);
}

/* Turns the loop until the script stands at its gate; returns the open gate, which close() opens. */
static inline int at_gate(struct world *w)
{
    uv_timer_t tick;
    char path[400];
    int fd;

    snprintf(path, sizeof(path), "%s/gate", w->dir);
    uv_timer_init(&w->loop, &tick);
    uv_timer_start(&tick, on_tick, 1, 1);
    while ((fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC)) < 0 && errno == ENXIO)
        uv_run(&w->loop, UV_RUN_ONCE);
    uv_close((uv_handle_t *)&tick, NULL);
    uv_run(&w->loop, UV_RUN_NOWAIT);
    assert_true(fd >= 0);
    return fd;
}

static inline void settle(struct world *w) /* background clean-up */
{
    while (op_count() > 0)
        uv_run(&w->loop, UV_RUN_ONCE);
}
#endif
