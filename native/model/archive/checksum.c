/* model/archive/checksum.c -- CRC-32, eight bytes a step. */
#include <pthread.h>

#include "model/archive/zip.h"

enum { STEP = 8 };

static uint32_t tables[STEP][256]; /* written once, before use */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void make_tables(void)
{
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t crc = byte;
        for (int bit = 0; bit < 8; bit++) {
            crc = (crc >> 1) ^ (crc & 1 ? 0xedb88320u : 0); /* the polynomial, reversed */
        }
        tables[0][byte] = crc;
    }
    /* tables[k][b]: the byte b followed by k zero bytes. */
    for (int k = 1; k < STEP; k++) {
        for (int byte = 0; byte < 256; byte++) {
            const uint32_t before = tables[k - 1][byte];
            tables[k][byte] = (before >> 8) ^ tables[0][before & 0xff];
        }
    }
}

uint32_t opscope__crc32(uint32_t crc, const void *data, size_t bytes)
{
    const uint8_t *at = data;
    pthread_once(&once, make_tables);
    crc = ~crc;
    for (; bytes >= STEP; bytes -= STEP, at += STEP) {
        const uint32_t low = crc ^ opscope__zip_u32(at);
        const uint32_t high = opscope__zip_u32(at + 4);
        crc = tables[7][low & 0xff] ^ tables[6][low >> 8 & 0xff] ^ tables[5][low >> 16 & 0xff] ^
              tables[4][low >> 24] ^ tables[3][high & 0xff] ^ tables[2][high >> 8 & 0xff] ^
              tables[1][high >> 16 & 0xff] ^ tables[0][high >> 24];
    }
    for (; bytes > 0; bytes--, at++) {
        crc = (crc >> 8) ^ tables[0][(crc ^ *at) & 0xff];
    }
    return ~crc;
}
