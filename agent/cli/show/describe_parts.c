/* SPDX-License-Identifier: Apache-2.0 */
/* Common parts of all descriptions. */
#include "agent/cli/show/internal.h"

#include "base/codec/json.h"

#include <string.h>

enum { ANNOTATION_MAX = 140 }; /* kubectl truncates longer lines */

static const char *const skipped_annotations[] = { "kubectl.kubernetes.io/last-applied-configuration" };

void cli_describe_pairs(struct buf *out, const char *title, const json_t *object)
{
    mem_auto const char **keys = json_sorted_keys(object);
    bool any = false;

    buf_addf(out, "%s:\t", title);
    for (size_t i = 0; keys != NULL && keys[i] != NULL; i++) {
        buf_addf(out, "%s%s=", any ? "\t" : "", keys[i]);
        cli_add_clean(out, json_str(object, keys[i]) != NULL ? json_str(object, keys[i]) : "");
        buf_addc(out, '\n');
        any = true;
    }
    if (!any)
        buf_adds(out, "<none>\n");
}

static bool describe_parts_is_skipped(const char *key)
{
    for (size_t i = 0; i < ARRAY_LEN(skipped_annotations); i++)
        if (strcmp(skipped_annotations[i], key) == 0)
            return true;
    return false;
}

static void add_annotation(struct buf *out, const char *key, const char *value)
{
    size_t n = strlen(value);
    str_auto copy = NULL;

    if (n > 0 && value[n - 1] == '\n')
        n--;
    copy = strndup(value, n);
    if (copy == NULL)
        return;
    if (n + strlen(key) + 2 <= ANNOTATION_MAX && strchr(copy, '\n') == NULL) {
        buf_addf(out, "%s: ", key);
        cli_add_clean(out, copy);
        buf_addc(out, '\n');
        return;
    }
    buf_addf(out, "%s:\n", key);
    for (char *line = copy, *next; line != NULL; line = next) {
        bool cut;

        next = strchr(line, '\n');
        if (next != NULL)
            *next++ = '\0';
        cut = strlen(line) > ANNOTATION_MAX - 2;
        if (cut)
            line[ANNOTATION_MAX - 2] = '\0';
        buf_adds(out, "\t  ");
        cli_add_clean(out, line);
        buf_adds(out, cut ? "...\n" : "\n");
    }
}

void cli_describe_annotations(struct buf *out, const json_t *annotations)
{
    mem_auto const char **keys = json_sorted_keys(annotations);
    bool any = false;

    buf_adds(out, "Annotations:\t");
    for (size_t i = 0; keys != NULL && keys[i] != NULL; i++) {
        const char *value = json_str(annotations, keys[i]);

        if (describe_parts_is_skipped(keys[i]))
            continue;
        if (any)
            buf_addc(out, '\t');
        add_annotation(out, keys[i], value != NULL ? value : "");
        any = true;
    }
    if (!any)
        buf_adds(out, "<none>\n");
}

void cli_describe_text(struct buf *out, const char *title, const char *text)
{
    if (text[0] == '\0')
        return;
    buf_addf(out, "%s:\t", title);
    cli_add_clean(out, text);
    buf_addc(out, '\n');
}

char *cli_event_text(const json_t *event)
{
    const char *detail = json_str(cli_at(event, "metadata.annotations"), "coracle.dev/detail");
    char *text = detail != NULL ? str_printf("%s: %s", cli_text(event, "message"), detail)
                                : strdup(cli_text(event, "message"));

    for (size_t n = text != NULL ? strlen(text) : 0; n > 0 && strchr(" \t\r\n", text[n - 1]) != NULL;)
        text[--n] = '\0';
    return text;
}

/* The container's name of "spec.containers{web}"; "": the event is about the whole pod. */
static void add_container(const json_t *event, struct buf *out)
{
    const char *path = cli_text(event, "involvedObject.fieldPath"), *name = strchr(path, '{');

    if (name != NULL)
        buf_addf(out, "%.*s", (int)strcspn(name + 1, "}"), name + 1);
}

void cli_describe_events(const struct cli *cli, const json_t *events, struct buf *out)
{
    bool of_containers = false;
    const json_t *e;
    size_t i;

    if (json_array_size(events) == 0) {
        buf_adds(out, "Events:\t<none>\n");
        return;
    }
    json_array_foreach (events, i, e)
        of_containers = of_containers || cli_text(e, "involvedObject.fieldPath")[0] != '\0';
    buf_addf(out, "Events:\n  Type\tReason\tAge\tFrom\t%sMessage\n  ----\t------\t----\t----\t%s-------\n",
             of_containers ? "Container\t" : "", of_containers ? "---------\t" : "");
    json_array_foreach (events, i, e) {
        const char *source = cli_text(e, "source.component");
        char first[CLI_AGE_SIZE], last[CLI_AGE_SIZE];
        str_auto message = cli_event_text(e);

        cli_age(cli, cli_text(e, cli_text(e, "eventTime")[0] != '\0' ? "eventTime" : "firstTimestamp"),
                first);
        cli_age(cli, cli_text(e, "lastTimestamp"), last);
        buf_addf(out, "  %s\t%s\t", cli_text(e, "type"), cli_text(e, "reason"));
        if (cli_number(e, "count") > 1)
            buf_addf(out, "%s (x%lld over %s)", last, (long long)cli_number(e, "count"), first);
        else
            buf_adds(out, first);
        buf_addf(out, "\t%s\t", source[0] != '\0' ? source : cli_text(e, "reportingComponent"));
        if (of_containers) {
            add_container(e, out);
            buf_addc(out, '\t');
        }
        cli_add_clean(out, message != NULL ? message : "");
        buf_addc(out, '\n');
    }
}
