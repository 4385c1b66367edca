/* SPDX-License-Identifier: Apache-2.0 */
/* The objects that a command changes: named, selected, or those of files. */
#include "agent/cli/change/internal.h"

#include "agent/cli/files/files.h"

#include <string.h>

/* False: the error was printed. */
static bool fits_namespace(struct cli *cli, const struct what *w, const struct api_object *o)
{
    const struct api_meta *meta = api_object_meta(o);

    if (w->namespace_ == NULL || meta->namespace == NULL || strcmp(w->namespace_, meta->namespace) == 0)
        return true;
    cli_error(cli, "%s \"%s\" of the file is in the namespace \"%s\", not \"%s\" as --namespace says",
              api_kind_name(o->kind), meta->name, meta->namespace, w->namespace_);
    return false;
}

static int add_file(struct cli *cli, const struct what *w, const char *path, struct cli_targets *ret)
{
    struct cli_file f = { 0 };
    int code = cli_files_read(cli, path, &f);

    for (size_t i = 0; i < f.objects.n && code == EXIT_OK; i++) {
        const struct api_object *o = &f.objects.v[i];
        const struct api_meta *meta = api_object_meta(o);

        code = fits_namespace(cli, w, o)
                   ? cli_targets_add(cli, ret, &api_kinds[o->kind], meta->namespace, meta->name)
                   : EXIT_ERROR;
    }
    cli_file_done(&f);
    return code;
}

static int targets_of_files(struct cli *cli, const struct what *w, struct cli_targets *ret)
{
    struct strs paths = { 0 };
    int code = EXIT_OK;

    *ret = (struct cli_targets){ 0 };
    for (size_t i = 0; i < w->files.n && code == EXIT_OK; i++)
        code = cli_files_add(cli, w->files.v[i], CLI_FILES_MANIFESTS, w->deep, &paths);
    for (size_t i = 0; i < paths.n && code == EXIT_OK; i++)
        code = add_file(cli, w, paths.v[i], ret);
    strs_done(&paths);
    if (code != EXIT_OK)
        cli_targets_done(ret);
    return code;
}

int what_targets(struct cli *cli, const struct cli_command *command, const struct what *w, const char *fields,
                 int argc, char **argv, struct cli_targets *ret)
{
    const bool selected = w->all || w->selector != NULL || fields != NULL;

    if (w->all && (w->selector != NULL || fields != NULL))
        return cli_usage_error(cli, command, "--all and a selector cannot be given together");
    if (w->everywhere && !selected)
        return cli_usage_error(cli, command, "a resource cannot be retrieved by name across all namespaces");
    if (w->files.n > 0 && (argc > 0 || selected))
        return cli_usage_error(cli, command, "objects are named by -f or by words, not by both");
    if (w->files.n > 0)
        return targets_of_files(cli, w, ret);
    return cli_targets(cli, command,
                       &(struct cli_choice){ .namespace_ = w->namespace_ != NULL ? w->namespace_ : "default",
                                             .selector = w->selector,
                                             .fields = fields,
                                             .all = w->all,
                                             .everywhere = w->everywhere,
                                             .kinds = true },
                       argc, argv, ret);
}

int what_dry(struct cli *cli, const struct what *w, bool *ret_dry, const char **ret_note)
{
    const char *how = w->dry_run != NULL ? w->dry_run : "none";
    const bool server = strcmp(how, "server") == 0;

    *ret_dry = server || strcmp(how, "client") == 0;
    *ret_note = server ? " (server dry run)" : *ret_dry ? " (dry run)" : "";
    if (*ret_dry || strcmp(how, "none") == 0)
        return EXIT_OK;
    return cli_wrong(cli, "--dry-run is client, server or none, not \"%s\"", how);
}
