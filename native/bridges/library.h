/* library.h -- which library a function is in. */
#ifndef OPSCOPE_BRIDGES_LIBRARY_H
#define OPSCOPE_BRIDGES_LIBRARY_H

#include <stdbool.h>

/* The path of the library with that code, as the loader knows it; NULL: none. */
const char *opscope__library_of(const void *code);
bool opscope__is_in_library(const void *code, const char *path);

#endif
