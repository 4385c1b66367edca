/* SPDX-License-Identifier: Apache-2.0 */
/* vol_data.json.  What was read and is written again must be read equally. */
#include "base/scope.h"
#include "volumes/csi/vol_data.h"
#include "volumes/csi/volume.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct csi_vol_data d = { 0 }, again = { 0 };
    struct err e = { 0 };
    str_auto text = NULL;

    if (csi_vol_data_read(&d, (const char *)data, size, &e) == ERR_OK) {
        assert(csi_driver_name_ok(d.driver) && d.handle[0] != '\0');
        text = csi_vol_data_text(&d);
        /* Escapes may make it longer than a file may be. */
        if (text != NULL && strlen(text) <= CSI_VOL_DATA_MAX) {
            if (csi_vol_data_read(&again, text, strlen(text), &e) != ERR_OK)
                abort();
            assert(strcmp(d.driver, again.driver) == 0 && strcmp(d.handle, again.handle) == 0 &&
                   d.ephemeral == again.ephemeral && d.shared == again.shared);
        }
    } else {
        assert(e.text[0] != '\0');
    }
    csi_vol_data_done(&d);
    csi_vol_data_done(&again);
    return 0;
}
