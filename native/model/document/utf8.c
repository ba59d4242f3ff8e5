/* model/document/utf8.c -- which bytes are UTF-8: shortest forms up to U+10FFFF, no surrogates. */
#include "model/document/build.h"

static bool is_between(uint8_t byte, int from, int to)
{
    return byte >= from && byte <= to;
}

size_t opscope__utf8_length(const uint8_t *at, const uint8_t *end)
{
    size_t left = (size_t)(end - at);
    if (left > 0 && at[0] < 0x80) {
        return 1;
    }
    if (left >= 2 && is_between(at[0], 0xC2, 0xDF)) {
        return is_between(at[1], 0x80, 0xBF) ? 2 : 0;
    }
    if (left >= 3 && is_between(at[0], 0xE0, 0xEF)) {
        int from = at[0] == 0xE0 ? 0xA0 : 0x80, to = at[0] == 0xED ? 0x9F : 0xBF;
        return is_between(at[1], from, to) && is_between(at[2], 0x80, 0xBF) ? 3 : 0;
    }
    if (left >= 4 && is_between(at[0], 0xF0, 0xF4)) {
        int from = at[0] == 0xF0 ? 0x90 : 0x80, to = at[0] == 0xF4 ? 0x8F : 0xBF;
        return is_between(at[1], from, to) && is_between(at[2], 0x80, 0xBF) &&
                       is_between(at[3], 0x80, 0xBF)
                   ? 4
                   : 0;
    }
    return 0;
}

bool opscope__utf8_check(const uint8_t *bytes, size_t size, size_t *bad)
{
    const uint8_t *at = bytes, *end = bytes + size;
    while (at < end) {
        size_t length = opscope__utf8_length(at, end);
        if (length == 0) {
            *bad = (size_t)(at - bytes);
            return false;
        }
        at += length;
    }
    return true;
}
