/* SPDX-License-Identifier: Apache-2.0 */
/* The options of a PATCH: which are valid. */
#include "agent/api/patch/write/write.h"

#include "agent/api/patch/tree.h"
#include "base/buf.h"
#include "base/codec/json.h"
#include "base/scope.h"

#include <string.h>

#define MANAGER_MAX 128 /* bytes of a field manager's name */

static json_t *options_status(json_t *cause)
{
    json_t *s = api_status_invalid("meta.k8s.io", "PatchOptions", "", json_pack("[o]", cause));

    return s;
}

/* The first byte that is not printable; NULL: none. */
static const char *unprintable(const char *text)
{
    for (; *text != '\0'; text++)
        if ((unsigned char)*text < ' ' || *text == 0x7f)
            return text;
    return NULL;
}

static json_t *manager_cause(const char *manager, bool apply)
{
    const char *bad;

    if (apply && (manager == NULL || manager[0] == '\0'))
        return api_status_cause("FieldValueRequired", "fieldManager",
                                "Required value: is required for apply patch");
    if (manager == NULL)
        return NULL;
    if (strlen(manager) > MANAGER_MAX)
        return api_status_cause("FieldValueTooLong", "fieldManager",
                                "Too long: may not be more than 128 bytes");
    bad = unprintable(manager);
    return bad == NULL
               ? NULL
               : api_status_cause("FieldValueInvalid", "fieldManager",
                                  "Invalid value: \"\\x%02x\": invalid character U+%04X (at position %td)",
                                  *bad, (unsigned)*bad, bad - manager);
}

static json_t *options_cause(const char *manager, const char *validation, const char *dry_run,
                             const char *force, bool apply)
{
    json_t *cause = manager_cause(manager, apply);

    if (cause != NULL)
        return cause;
    if (!apply && force != NULL)
        return api_status_cause("FieldValueForbidden", "force",
                                "Forbidden: may not be specified for non-apply patch");
    if (dry_run != NULL && !str_eq(dry_run, "All"))
        return api_status_cause("FieldValueNotSupported", "dryRun",
                                "Unsupported value: [\"%s\"]: supported values: \"All\"", dry_run);
    if (validation != NULL && validation[0] != '\0' && !str_eq(validation, "Ignore") &&
        !str_eq(validation, "Strict") && !str_eq(validation, "Warn"))
        return api_status_cause(
            "FieldValueNotSupported", "fieldValidation",
            "Unsupported value: \"%s\": supported values: \"\", \"Ignore\", \"Strict\", \"Warn\"",
            validation);
    return NULL;
}

enum err_code api_patch_options_check(const char *field_manager, const char *field_validation,
                                      const char *dry_run, const char *force, bool apply, json_t **ret_status,
                                      struct err *e)
{
    json_t *cause = options_cause(field_manager, field_validation, dry_run, force, apply);

    return cause == NULL ? ERR_OK : tree_fail(options_status(cause), ret_status, e);
}
