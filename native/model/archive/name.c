/* model/archive/name.c -- which names of entries are allowed. */
#include "model/archive/zip.h"

static bool is_safe_component(const char *name, size_t bytes)
{
    const bool is_dots =
        (bytes == 1 && name[0] == '.') || (bytes == 2 && name[0] == '.' && name[1] == '.');
    return bytes > 0 && !is_dots;
}

bool opscope__zip_is_safe_name(const char *name, size_t bytes)
{
    size_t start = 0;
    for (size_t i = 0; i < bytes; i++) {
        const unsigned char letter = (unsigned char)name[i];
        if (letter < ' ' || letter == 0x7f || letter == '\\') {
            return false;
        }
        if (letter == '/') {
            if (!is_safe_component(name + start, i - start)) {
                return false;
            }
            start = i + 1;
        }
    }
    return is_safe_component(name + start, bytes - start);
}
