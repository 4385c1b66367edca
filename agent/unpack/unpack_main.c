/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image/image.h"
#include "agent/image/unpack_progress.h"
#include "agent/unpack/copy.h"
#include "agent/unpack/unpack_options.h"

#include "base/codec/json.h"
#include "base/process/copy_helper.h"
#include "base/utf8.h"

#include <fcntl.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

struct folders {
    int source, work, layers, parts, blobs;
};

/* ---- the record ------------------------------------------------------------------------------ */

static enum err_code unpack_main_add_name(json_t *names, const char *name, struct err *e)
{
    char digest[UNPACK_DIGEST_SIZE];
    json_t *item;

    if (unpack_hash_text(name, strlen(name), digest, e) != ERR_OK)
        return e->code;
    item = json_pack("{s:s, s:s}", "name", name, "ref", unpack_digest_hex(digest));
    return json_array_append_new(names, item) == 0 ? ERR_OK : err_nomem(e);
}

static enum err_code hash_name(const char *name, json_t *record, struct err *e)
{
    char full[IMG_NAME_MAX];
    json_t *names = json_array();

    if (names == NULL || json_object_set_new(record, "names", names) != 0)
        return err_nomem(e);
    return img_normalise(name, full, e) == ERR_OK ? unpack_main_add_name(names, full, e) : e->code;
}

static enum err_code unpack_main_add_image(json_t *images, struct unpack_image *image, struct err *e)
{
    json_t *names = json_array();

    if (names == NULL || json_object_set_new(image->record, "names", names) != 0 ||
        !json_put_str(image->record, "id", image->id) ||
        !json_put_str(image->record, "digest", image->digest))
        return err_nomem(e);
    for (size_t i = 0; i < image->n_names; i++)
        if (unpack_main_add_name(names, image->names[i], e) != ERR_OK)
            return e->code;
    return json_array_append(images, image->record) == 0 ? ERR_OK : err_nomem(e);
}

/* ---- the run --------------------------------------------------------------------------------- */

static enum err_code unpack_main_open_folder(const char *path, const char *option, int *ret, struct err *e)
{
    *ret = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*ret < 0)
        return err_sys(e, errno, "%s %s", option, path);
    return ERR_OK;
}

static enum err_code unpack_main_open_folders(const struct unpack_options *o, struct folders *f,
                                              struct err *e)
{
    f->source = open(o->source, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (f->source < 0)
        return err_sys(e, errno, "open %s", o->source);
    if (unpack_main_open_folder(o->work, "--work", &f->work, e) != ERR_OK ||
        unpack_main_open_folder(o->layers, "--layers", &f->layers, e) != ERR_OK)
        return e->code;
    if (o->parts != NULL && unpack_main_open_folder(o->parts, "--parts", &f->parts, e) != ERR_OK)
        return e->code;
    return o->blobs == NULL ? ERR_OK : unpack_main_open_folder(o->blobs, "--blobs", &f->blobs, e);
}

/* Determines the names before the first layer is unpacked. */
static enum err_code settle_names(const struct unpack_options *o, struct unpack_images *images, struct err *e)
{
    if (o->name != NULL) {
        struct unpack_image *image = &images->v[0];

        if (images->n != 1)
            return err_set(e, ERR_INVALID,
                           "the source holds %zu images, which cannot all have the name \"%s\"", images->n,
                           o->name);
        for (size_t i = 0; i < image->n_names; i++)
            free(image->names[i]);
        image->n_names = 0;
        return unpack_image_add_name(image, o->name, e);
    }
    for (size_t i = 0; i < images->n; i++)
        if (images->v[i].n_names == 0)
            return err_set(e, ERR_INVALID, "the source contains an image without a name; specify one");
    return ERR_OK;
}

static enum err_code open_progress(const struct unpack_options *o, struct unpack_progress **ret,
                                   struct err *e)
{
    void *page;

    if (o->progress_fd == 0)
        return ERR_OK;
    page = mmap(NULL, sizeof(struct unpack_progress), PROT_READ | PROT_WRITE, MAP_SHARED, (int)o->progress_fd,
                0);
    if (page == MAP_FAILED)
        return err_sys(e, errno, "map --progress");
    *ret = page;
    return ERR_OK;
}

static void announce_layers(struct unpack_progress *progress, const struct unpack_images *images)
{
    for (size_t i = 0; progress != NULL && i < images->n; i++)
        unpack_progress_add(&progress->of_layers, (uint32_t)images->v[i].n_layers);
}

static enum err_code bring(const struct unpack_options *o, const struct folders *f,
                           struct unpack_source *source, struct unpack_images *images, json_t *record,
                           struct err *e)
{
    const struct unpack_confine confine = { .source = f->source,
                                            .blobs = f->blobs,
                                            .work = f->work,
                                            .layers = f->layers,
                                            .parts = f->parts,
                                            .max_bytes = o->max_bytes };
    struct unpack_budget budget = { .bytes = o->max_bytes, .entries = o->max_entries, .reserve = o->reserve };
    struct unpack_store store = { .work = f->work, .layers = f->layers, .parts = f->parts };
    json_t *list = json_array();

    if (list == NULL || json_object_set_new(record, "images", list) != 0)
        return err_nomem(e);
    if (open_progress(o, &budget.progress, e) != ERR_OK || unpack_confine(&confine, e) != ERR_OK)
        return e->code;
    if (unpack_source_open(source, f->source, f->work, f->blobs, &budget, e) != ERR_OK ||
        unpack_images_read(source, &o->platform, images, e) != ERR_OK || settle_names(o, images, e) != ERR_OK)
        return e->code;
    announce_layers(budget.progress, images);
    for (size_t i = 0; i < images->n; i++)
        if (unpack_store_image(&store, source, &images->v[i], &budget, e) != ERR_OK ||
            unpack_main_add_image(list, &images->v[i], e) != ERR_OK)
            return e->code;
    if (json_object_set_new(record, "skippedDevices", json_integer((json_int_t)store.skipped_devices)) != 0)
        return err_nomem(e);
    return ERR_OK;
}

/* Reads the content of hostile layers again, so the process first drops every right to write. */
static enum err_code unpack_main_verify(const struct unpack_options *o, json_t *record, struct err *e)
{
    struct unpack_confine confine = { .work = -1, .layers = -1, .parts = -1, .max_bytes = 0 };

    if (unpack_main_open_folder(o->layers, "--layers", &confine.source, e) != ERR_OK ||
        unpack_main_open_folder(o->parts, "--parts", &confine.blobs, e) != ERR_OK ||
        unpack_confine(&confine, e) != ERR_OK)
        return e->code;
    return unpack_verify(stdin, strcmp(o->verify, "all") == 0, confine.source, confine.blobs, record, e);
}

/* Reads lines of the form "layer <hex>" and "name <name>". */
static enum err_code unpack_main_read_image(char **layers, char **names, struct err *e)
{
    char line[IMG_NAME_MAX + 16];
    size_t n_layers = 0, n_names = 0;

    while (fgets(line, sizeof(line), stdin) != NULL) {
        const char *value = strchr(line, ' ');
        char **to = NULL;

        line[strcspn(line, "\n")] = '\0';
        if (str_starts(line, "layer ") && strlen(value + 1) == 64 && n_layers < UNPACK_MAX_LAYERS)
            to = &layers[n_layers++];
        else if (str_starts(line, "name ") && n_names < UNPACK_MAX_NAMES)
            to = &names[n_names++];
        if (to == NULL)
            return err_set(e, ERR_INVALID, "line \"%.100s\" is neither a layer nor the image", line);
        if ((*to = strdup(value + 1)) == NULL)
            return err_nomem(e);
    }
    return n_layers > 0 ? ERR_OK : err_set(e, ERR_INVALID, "no layer is named on standard input");
}

static enum err_code unpack_main_export_image(const struct unpack_options *o, struct err *e)
{
    struct unpack_confine confine = { .work = -1, .layers = -1, .parts = -1, .max_bytes = UNPACK_LIMIT_MAX };
    char *layers[UNPACK_MAX_LAYERS + 1] = { NULL }, *names[UNPACK_MAX_NAMES + 1] = { NULL };
    const struct unpack_export_image image = { o->export_id, layers, names };
    fd_auto out = open(o->out, O_WRONLY | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC);
    struct stat st;

    if (out < 0 || fstat(out, &st) != 0)
        return err_sys(e, errno, "open %s", o->out);
    if (!S_ISREG(st.st_mode))
        return err_set(e, ERR_INVALID, "%s is not a regular file", o->out);
    if (unpack_main_open_folder(o->layers, "--layers", &confine.source, e) == ERR_OK &&
        unpack_main_open_folder(o->parts, "--parts", &confine.blobs, e) == ERR_OK &&
        unpack_main_read_image(layers, names, e) == ERR_OK && unpack_confine(&confine, e) == ERR_OK)
        ERR_IGNORE(unpack_export(out, &image, confine.source, confine.blobs, e));
    for (char **layer = layers; *layer != NULL; layer++)
        free(*layer);
    for (char **name = names; *name != NULL; name++)
        free(*name);
    return e->code;
}

static enum err_code unpack_main_run(const struct unpack_options *o, json_t *record, struct err *e)
{
    struct folders f = { -1, -1, -1, -1, -1 };
    struct unpack_source source = { -1, -1, false };
    struct unpack_images images = { 0 };

    if (o->hash_name != NULL)
        return hash_name(o->hash_name, record, e);
    if (o->export_id != NULL)
        return unpack_main_export_image(o, e);
    if (o->verify != NULL)
        return unpack_main_verify(o, record, e);
    if (unpack_main_open_folders(o, &f, e) == ERR_OK)
        bring(o, &f, &source, &images, record, e);
    unpack_images_done(&images);
    unpack_source_close(&source);
    return e->code; /* the process ends now and closes its descriptors */
}

static bool print_line(const json_t *record)
{
    str_auto text = json_text(record);

    return text != NULL && printf("%s\n", text) >= 0 && fflush(stdout) == 0;
}

int main(int argc, char **argv)
{
    json_auto_t *record = json_object(), *failure = NULL;
    struct unpack_options o;
    struct err e = { 0 };

    setlocale(LC_CTYPE, "C.UTF-8"); /* libarchive converts pax names from UTF-8 to the locale's encoding */
    if (argc > 1 && strcmp(argv[1], COPY_OPTION) == 0)
        return copy_main(argc - 2, argv + 2);
    umask(0);                 /* modes are applied exactly as the archive has them */
    signal(SIGXFSZ, SIG_IGN); /* beyond RLIMIT_FSIZE write() shall fail, so that we report it */

    if (record == NULL)
        err_nomem(&e);
    else if (unpack_options_parse(argc, argv, &o, &e) == ERR_OK)
        unpack_main_run(&o, record, &e);
    if (e.code == ERR_OK && print_line(record))
        return 0;
    if (e.code == ERR_OK)
        err_set(&e, ERR_UNAVAILABLE, "cannot write the result");

    text_printable(e.text); /* names in a tar may hold any byte, and the text is sent to logs and terminals */
    failure = json_object();
    if (failure == NULL || !json_put_str(failure, "error", e.text) ||
        !json_put_str(failure, "code", err_code_name(e.code)) || !print_line(failure))
        fprintf(stderr, "coracle-unpack: no result could be written\n");
    fprintf(stderr, "coracle-unpack: %s\n", e.text);
    return 1;
}
