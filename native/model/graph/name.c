/* model/graph/name.c -- which texts are names in a graph. */
#include "model/graph/name.h"

#include <stdint.h>

#include "model/document/build.h"

/* All bytes are letters, digits, '_' or, if they may be, dots. */
static bool is_word(const char *text, size_t bytes, bool dots)
{
    for (size_t i = 0; i < bytes; i++) {
        if (!opscope__graph_is_letter(text[i]) && !opscope__graph_is_digit(text[i]) &&
            !(dots && text[i] == '.')) {
            return false;
        }
    }
    return bytes > 0;
}

bool opscope__graph_is_identifier(const char *text, size_t bytes)
{
    return is_word(text, bytes, false) && opscope__graph_is_letter(text[0]);
}

bool opscope__graph_is_dotted(const char *text, size_t bytes)
{
    size_t start = 0, names = 0;
    for (size_t i = 0; i <= bytes; i++) {
        if (i == bytes || text[i] == '.') {
            if (!opscope__graph_is_identifier(text + start, i - start)) {
                return false;
            }
            start = i + 1;
            names++;
        }
    }
    return names > 1;
}

bool opscope__graph_is_value_name(const char *text, size_t bytes)
{
    return is_word(text, bytes, true) && opscope__graph_is_letter(text[0]);
}

bool opscope__graph_is_kind(const char *text, size_t bytes)
{
    size_t colon = 0;
    while (colon < bytes && text[colon] != ':') {
        colon++;
    }
    return bytes - colon > 2 && text[colon + 1] == ':' &&
           opscope__graph_is_identifier(text, colon) &&
           is_word(text + colon + 2, bytes - colon - 2, true);
}

static bool has_no_byte_up_to(const char *text, size_t bytes, char last)
{
    size_t bad;
    for (size_t i = 0; i < bytes; i++) {
        if ((uint8_t)text[i] <= (uint8_t)last || text[i] == 0x7F) {
            return false;
        }
    }
    return bytes > 0 && opscope__utf8_check((const uint8_t *)text, bytes, &bad);
}

bool opscope__graph_is_scope(const char *text, size_t bytes)
{
    return has_no_byte_up_to(text, bytes, ' ');
}

bool opscope__graph_is_location(const char *text, size_t bytes)
{
    return has_no_byte_up_to(text, bytes, ' ' - 1) && text[0] != ' ' && text[bytes - 1] != ' ';
}
