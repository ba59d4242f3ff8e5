/* library.c -- asks the loader. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* dladdr */
#endif
#include "bridges/library.h"

#include <dlfcn.h>
#include <string.h>

const char *opscope__library_of(const void *code)
{
    Dl_info info;
    return code != NULL && dladdr(code, &info) != 0 ? info.dli_fname : NULL;
}

bool opscope__is_in_library(const void *code, const char *path)
{
    const char *found = opscope__library_of(code);
    return found != NULL && strcmp(found, path) == 0;
}
