/* SPDX-License-Identifier: Apache-2.0 */
/* What choose.c and topology.c share. */
#ifndef DEVICEPLUGIN_INTERNAL_H
#define DEVICEPLUGIN_INTERNAL_H
#include "deviceplugin/inventory.h"

/* Whether the device is on one of these nodes. Numbers that no set has (a provider may say any) are on none.
 */
static inline bool dp_device_on(const struct dp_device *d, uint64_t nodes)
{
    for (size_t i = 0; i < d->n_numa; i++)
        if (d->numa[i] >= 0 && d->numa[i] < 64 && (nodes >> d->numa[i] & 1) != 0)
            return true;
    return false;
}
#endif
