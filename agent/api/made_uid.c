/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/api/made_uid.h"

#include "base/buf.h"
#include "base/scope.h"
#include "base/siphash.h"

#include <stdio.h>
#include <string.h>

void api_made_uid(const char *kind, const char *namespace_, const char *name, char ret[API_UID_SIZE])
{
    static const unsigned char keys[2][SIPHASH_KEY_SIZE] = { "workload uid: a", "workload uid: b" };
    str_auto text = str_printf("%s/%s/%s", kind, namespace_ != NULL ? namespace_ : "", name);
    const char *of = text != NULL ? text : name;
    uint64_t a = siphash(keys[0], of, strlen(of)), b = siphash(keys[1], of, strlen(of));

    /* Version 8 of RFC 9562: a custom format. */
    snprintf(ret, API_UID_SIZE, "%08x-%04x-8%03x-%04x-%012llx", (unsigned)(a >> 32),
             (unsigned)(a >> 16 & 0xffff), (unsigned)(a & 0xfff), (unsigned)(b >> 48 & 0x3fff) | 0x8000,
             (unsigned long long)(b & 0xffffffffffff));
}
