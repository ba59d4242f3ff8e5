/* model/archive/zip.h -- the zip format: the records that reader and writer share, and checksums.
 *
 * Facts: PKWARE's APPNOTE.TXT, version 6.3.
 */
#ifndef OPSCOPE_MODEL_ARCHIVE_ZIP_H
#define OPSCOPE_MODEL_ARCHIVE_ZIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum {
    OPSCOPE__ZIP_LOCAL = 0x04034b50,
    OPSCOPE__ZIP_CENTRAL = 0x02014b50,
    OPSCOPE__ZIP_END = 0x06054b50,
    OPSCOPE__ZIP64_END = 0x06064b50,
    OPSCOPE__ZIP64_LOCATOR = 0x07064b50,
    OPSCOPE__ZIP_LOCAL_BYTES = 30,
    OPSCOPE__ZIP_CENTRAL_BYTES = 46,
    OPSCOPE__ZIP_END_BYTES = 22,
    OPSCOPE__ZIP64_END_BYTES = 56,
    OPSCOPE__ZIP64_LOCATOR_BYTES = 20,
    OPSCOPE__ZIP_STORED = 0,
    OPSCOPE__ZIP_DEFLATED = 8,
    OPSCOPE__ZIP_ENCRYPTED = 1,    /* flag */
    OPSCOPE__ZIP_UTF8 = 1 << 11,   /* flag */
    OPSCOPE__ZIP64_EXTRA = 1,      /* identifier of an extra field */
    OPSCOPE__ZIP_PADDING = 0x4246, /* the same, as PyTorch pads entries: "FB" */
    OPSCOPE__ZIP_DAY_ONE = 0x0021, /* 1980-01-01: files do not depend on the day */
    OPSCOPE__ZIP_VERSION = 20,     /* what a reader needs to know */
    OPSCOPE__ZIP64_VERSION = 45
};

#define OPSCOPE__ZIP_SATURATED 0xffffffffu

/* Little-endian numbers at any address. */
static inline uint16_t opscope__zip_u16(const uint8_t *at)
{
    return (uint16_t)(at[0] | at[1] << 8);
}

static inline uint32_t opscope__zip_u32(const uint8_t *at)
{
    return (uint32_t)opscope__zip_u16(at) | (uint32_t)opscope__zip_u16(at + 2) << 16;
}

static inline uint64_t opscope__zip_u64(const uint8_t *at)
{
    return (uint64_t)opscope__zip_u32(at) | (uint64_t)opscope__zip_u32(at + 4) << 32;
}

/* The CRC-32 of zip and PNG over more bytes, from the one so far; 0 to begin with. */
uint32_t opscope__crc32(uint32_t crc, const void *data, size_t bytes);

/* Whether a path within an archive stays below its folder, is readable, and is spelled in the one
 * way: no empty, "." or ".." component, no backslash, no control character. */
bool opscope__zip_is_safe_name(const char *name, size_t bytes);

/* Inflates raw deflated data into exactly `bytes` bytes. NULL, or what is wrong. */
const char *opscope__inflate(const uint8_t *data, size_t data_bytes, uint8_t *out, size_t bytes);

#endif
