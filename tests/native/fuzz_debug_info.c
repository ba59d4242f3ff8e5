/* tests/native/fuzz_debug_info.c -- any text in OPSCOPE_DEBUG_INFO, which a parent process sets.
 *
 * Every resulting link has a key and complete strings.
 */
#include "record/debug_info.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    char *text = calloc(1, bytes + 1);
    assert(text != NULL);
    memcpy(text, data, bytes);
    const opscope_debug_info *chain = opscope__debug_info_parse(text);
    for (const opscope_debug_info *link = chain; link != NULL; link = link->parent) {
        assert(link->key[0] != '\0' && strchr(link->key, '=') == NULL);
        assert(strlen(link->key) + 1 + strlen(link->value) < OPSCOPE__DEBUG_INFO_BYTES);
        assert(strchr(link->value, '\n') == NULL);
    }
    opscope__debug_info_release(chain);
    free(text);
    return 0;
}
