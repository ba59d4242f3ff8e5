/* tests/native/fuzz_debug_info.c -- any text as OPSCOPE_DEBUG_INFO, which a parent process gives.
 *
 * Every link that comes of it has a key and is whole. The file under test is taken in as text, as
 * what reads the variable is called once in a process.
 */
#include "record/debug_info.c"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static const char name[] = "OPSCOPE_DEBUG_INFO=";
    /* The environment keeps this very text; setenv would leak a copy each time. */
    char *variable = calloc(1, sizeof name + bytes);
    assert(variable != NULL);
    memcpy(variable, name, sizeof name - 1);
    memcpy(variable + sizeof name - 1, data, bytes);
    assert(putenv(variable) == 0);

    read_root();
    for (const opscope_debug_info *link = root; link != NULL; link = link->parent) {
        assert(link->key[0] != '\0' && strchr(link->key, '=') == NULL);
        assert(strlen(link->key) + 1 + strlen(link->value) < TEXT_LIMIT);
        assert(strchr(link->value, '\n') == NULL);
    }
    opscope__debug_info_release(root);
    root = NULL;
    assert(unsetenv("OPSCOPE_DEBUG_INFO") == 0);
    free(variable);
    return 0;
}
