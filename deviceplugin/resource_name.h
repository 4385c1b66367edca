/* SPDX-License-Identifier: Apache-2.0 */
/* resource_name - the valid names of extended resources (pkg/apis/core/v1/helper, IsExtendedResourceName). */
#ifndef DEVICEPLUGIN_RESOURCE_NAME_H
#define DEVICEPLUGIN_RESOURCE_NAME_H
#include <stdbool.h>

bool dp_resource_name_ok(const char *name);
#endif
