/* marks/itt_abi.h -- the binary interface between the static part of ITT in a program and a
 * collector, as its public sources define it (https://github.com/intel/ittapi: ittnotify_config.h,
 * ittnotify.h). */
#ifndef OPSCOPE_BRIDGES_MARKS_ITT_ABI_H
#define OPSCOPE_BRIDGES_MARKS_ITT_ABI_H

#include <pthread.h>

typedef void (*opscope__itt_function)(void); /* of any signature */

struct opscope__itt_api {
    const char *name; /* NULL: the list's end */
    opscope__itt_function *function;
    opscope__itt_function initial;
    opscope__itt_function none; /* of a function that no collector has; may be NULL */
    int group;
};

/* The beginning of the static part's description of itself. Later fields differ by release. */
struct opscope__itt_global {
    unsigned char magic[8];
    unsigned long major, minor, build;
    volatile long is_initialized, has_mutex, counter;
    pthread_mutex_t mutex;
    void *library;
    void *error_handler;
    const char **library_path;
    struct opscope__itt_api *apis;
};

static const unsigned char opscope__itt_magic[8] = {0xED, 0xAB, 0xAB, 0xEC, 0x0D, 0xEE, 0xDA, 0x30};

struct opscope__itt_id {
    unsigned long long words[3];
};

struct opscope__itt_string {
    const char *text; /* NULL: it was made from wide characters alone */
    const void *wide;
    int reserved; /* these are the collector's */
    void *reserved_too;
    struct opscope__itt_string *next;
};

struct opscope__itt_domain {
    volatile int is_on; /* 0: the client skips its marks */
    const char *name;
    const void *wide;
    int reserved; /* these are the collector's */
    void *reserved_too;
    struct opscope__itt_domain *next;
};

#endif
