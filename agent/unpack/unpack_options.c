/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/unpack/unpack_options.h"

#include "base/parse.h"

#include <getopt.h>
#include <string.h>

static const struct {
    const char *name;
    size_t offset;     /* of a number if max > 0, else of a string */
    uint64_t min, max; /* of a number */
} options[] = {
    { "--source", offsetof(struct unpack_options, source), 0, 0 },
    { "--work", offsetof(struct unpack_options, work), 0, 0 },
    { "--layers", offsetof(struct unpack_options, layers), 0, 0 },
    { "--parts", offsetof(struct unpack_options, parts), 0, 0 },
    { "--blobs", offsetof(struct unpack_options, blobs), 0, 0 },
    { "--name", offsetof(struct unpack_options, name), 0, 0 },
    { "--hash-name", offsetof(struct unpack_options, hash_name), 0, 0 },
    { "--verify", offsetof(struct unpack_options, verify), 0, 0 },
    { "--export", offsetof(struct unpack_options, export_id), 0, 0 },
    { "--out", offsetof(struct unpack_options, out), 0, 0 },
    { "--max-bytes", offsetof(struct unpack_options, max_bytes), 1, UNPACK_LIMIT_MAX },
    { "--max-entries", offsetof(struct unpack_options, max_entries), 1, 1u << 30 },
    { "--reserve-bytes", offsetof(struct unpack_options, reserve), 0, UNPACK_LIMIT_MAX },
    { "--progress", offsetof(struct unpack_options, progress_fd), 3, 1023 },
    { "--platform", offsetof(struct unpack_options, platform), 0, 0 }, /* parsed by unpack_platform_parse() */
};
enum { PLATFORM = ARRAY_LEN(options) - 1 };

static enum err_code unpack_options_take(struct unpack_options *o, int i, const char *value, struct err *e)
{
    void *field = (char *)o + options[i].offset;

    if (i == PLATFORM)
        return unpack_platform_parse(value, field, e);
    if (options[i].max > 0)
        return parse_u64(value, options[i].min, options[i].max, field, options[i].name, e);
    *(const char **)field = value;
    return ERR_OK;
}

static bool is_hex_digest(const char *text)
{
    return strlen(text) == 64 && strspn(text, "0123456789abcdef") == 64;
}

/* Checks that the options of one of the four actions are complete. */
static enum err_code unpack_options_check(const struct unpack_options *o, struct err *e)
{
    const bool stored = o->layers != NULL && o->parts != NULL;

    if (o->verify != NULL && (!stored || (strcmp(o->verify, "all") != 0 && strcmp(o->verify, "some") != 0)))
        return err_set(e, ERR_INVALID, "--verify needs all or some, --layers and --parts");
    if (o->export_id != NULL && (!stored || o->out == NULL || !is_hex_digest(o->export_id)))
        return err_set(e, ERR_INVALID, "--export needs 64 hex digits, --out, --layers and --parts");
    if (o->hash_name == NULL && o->verify == NULL && o->export_id == NULL &&
        (o->source == NULL || o->work == NULL || o->layers == NULL))
        return err_set(e, ERR_INVALID, "--source, --work and --layers are needed");
    return ERR_OK;
}

enum err_code unpack_options_parse(int argc, char **argv, struct unpack_options *ret, struct err *e)
{
    struct option known[ARRAY_LEN(options) + 1] = { 0 };
    int c, i = 0;

    for (size_t k = 0; k < ARRAY_LEN(options); k++)
        known[k] = (struct option){ options[k].name + strlen("--"), required_argument, NULL, 1 };
    *ret = (struct unpack_options){ .max_bytes = UNPACK_MAX_BYTES,
                                    .max_entries = UNPACK_MAX_ENTRIES,
                                    .reserve = UNPACK_RESERVE_BYTES };
    unpack_platform_host(&ret->platform);
    opterr = 0;
    while ((c = getopt_long(argc, argv, "", known, &i)) != -1) {
        if (c != 1)
            return err_set(e, ERR_INVALID, "option %s is unknown or lacks its value", argv[optind - 1]);
        if (unpack_options_take(ret, i, optarg, e) != ERR_OK)
            return e->code;
    }
    if (optind < argc)
        return err_set(e, ERR_INVALID, "unexpected argument \"%.100s\"", argv[optind]);
    return unpack_options_check(ret, e);
}
