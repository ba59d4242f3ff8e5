/* tests/native/model/fuzz_archive.c -- any bytes as an archive.
 *
 * Opening them fails with a text, or every entry lies within the bytes, can be found by its name,
 * and is read or refused with a text; no byte outside is touched (the sanitizers say so).
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "opscope/archive.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_entry(opscope_archive *archive, size_t index, size_t size)
{
    opscope_archive_entry entry;
    assert(opscope_archive_entry_at(archive, index, &entry) == OPSCOPE_OK);
    assert(entry.offset <= size && entry.file_bytes <= size - entry.offset);
    size_t found;
    assert(opscope_archive_find(archive, entry.name, &found) == OPSCOPE_OK && found == index);
    const void *content;
    size_t bytes;
    const int status = opscope_archive_read(archive, entry.name, &content, &bytes);
    assert(status == OPSCOPE_OK ? bytes == entry.bytes : opscope_tensor_error()[0] != '\0');
    opscope_tensor *tensor;
    if (opscope_archive_tensor(archive, entry.name, OPSCOPE_FLOAT64, &tensor) == OPSCOPE_OK) {
        volatile unsigned char sum = 0;
        const unsigned char *at = opscope_tensor_data(tensor);
        for (int64_t i = 0; i < opscope_tensor_count(tensor) * 8; i++) {
            sum = (unsigned char)(sum + at[i]);
        }
        opscope_tensor_release(tensor);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* Of exactly that size, so that the sanitizer sees a read past the end. */
    uint8_t *copy = malloc(size > 0 ? size : 1);
    memcpy(copy, data, size);
    opscope_archive *archive;
    if (opscope_archive_open_memory("fuzz", copy, size, &archive) == OPSCOPE_OK) {
        for (size_t i = 0; i < opscope_archive_count(archive); i++) {
            check_entry(archive, i, size);
        }
        opscope_archive_close(archive);
    } else {
        assert(strncmp(opscope_tensor_error(), "fuzz: ", 6) == 0);
    }
    free(copy);
    return 0;
}
