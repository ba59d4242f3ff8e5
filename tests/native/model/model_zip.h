/* tests/native/model/model_zip.h -- archives in memory, of stored entries. */
#ifndef OPSCOPE_TESTS_MODEL_ZIP_H
#define OPSCOPE_TESTS_MODEL_ZIP_H

#include "model/archive/zip.h"

enum { ZIP_HEADERS_BYTES = 4096 }; /* more than all headers and names take */

struct model_zip {
    uint8_t *at;
    size_t bytes;
    uint8_t directory[1024];
    size_t directory_bytes;
    uint16_t count;
};

static inline void zip_put(uint8_t *at, uint64_t number, int bytes)
{
    for (int i = 0; i < bytes; i++) {
        at[i] = (uint8_t)(number >> 8 * i);
    }
}

/* A stored entry; `at` has room for it. */
static inline void zip_add(struct model_zip *zip, const char *name, const void *content,
                           size_t bytes)
{
    uint8_t central[OPSCOPE__ZIP_CENTRAL_BYTES] = {0}, local[OPSCOPE__ZIP_LOCAL_BYTES] = {0};
    size_t length = strlen(name);
    zip_put(central, OPSCOPE__ZIP_CENTRAL, 4);
    zip_put(central + 4, OPSCOPE__ZIP_VERSION, 2);
    zip_put(central + 6, OPSCOPE__ZIP_VERSION, 2);
    zip_put(central + 16, opscope__crc32(0, content, bytes), 4);
    zip_put(central + 20, bytes, 4);
    zip_put(central + 24, bytes, 4);
    zip_put(central + 28, length, 2);
    zip_put(central + 42, zip->bytes, 4);
    zip_put(local, OPSCOPE__ZIP_LOCAL, 4);
    memcpy(local + 4, central + 6, 26);
    memcpy(zip->at + zip->bytes, local, sizeof local);
    memcpy(zip->at + zip->bytes + sizeof local, name, length);
    memcpy(zip->at + zip->bytes + sizeof local + length, content, bytes);
    zip->bytes += sizeof local + length + bytes;
    memcpy(zip->directory + zip->directory_bytes, central, sizeof central);
    memcpy(zip->directory + zip->directory_bytes + sizeof central, name, length);
    zip->directory_bytes += sizeof central + length;
    zip->count++;
}

/* Behind the entries, `at` has room for the directory and the end of it. */
static inline void zip_finish(struct model_zip *zip)
{
    uint8_t end[OPSCOPE__ZIP_END_BYTES] = {0};
    zip_put(end, OPSCOPE__ZIP_END, 4);
    zip_put(end + 8, zip->count, 2);
    zip_put(end + 10, zip->count, 2);
    zip_put(end + 12, zip->directory_bytes, 4);
    zip_put(end + 16, zip->bytes, 4);
    memcpy(zip->at + zip->bytes, zip->directory, zip->directory_bytes);
    memcpy(zip->at + zip->bytes + zip->directory_bytes, end, sizeof end);
    zip->bytes += zip->directory_bytes + sizeof end;
}

#endif
