/* marks/nvtx_abi.h -- the binary interface between NVTX 2 or 3 in a program and a tool, as NVTX's
 * public headers define it (https://github.com/NVIDIA/NVTX: nvtxTypes.h, nvToolsExt.h). */
#ifndef OPSCOPE_BRIDGES_MARKS_NVTX_ABI_H
#define OPSCOPE_BRIDGES_MARKS_NVTX_ABI_H

#include <stddef.h>
#include <stdint.h>

typedef void (*opscope__nvtx_function)(void); /* of any signature */

/* The client's function that gives a table by its number; NULL: it has none. */
typedef const void *opscope__nvtx_get_table(uint32_t table);

enum { OPSCOPE__NVTX_CALLBACKS = 1 };
enum { OPSCOPE__NVTX_CORE = 1, OPSCOPE__NVTX_CORE2 = 5 };

struct opscope__nvtx_callbacks {
    size_t size;
    /* Gives the places of a module's functions, by their ids, and how many there are. 0: there is
     * no such module. */
    int (*module)(int32_t module, opscope__nvtx_function ***out, unsigned *out_count);
};

/* Ids of functions, by module. */
enum {
    OPSCOPE__NVTX_START_EX = 4,
    OPSCOPE__NVTX_START_A = 5,
    OPSCOPE__NVTX_START_W = 6,
    OPSCOPE__NVTX_END = 7,
    OPSCOPE__NVTX_PUSH_EX = 8,
    OPSCOPE__NVTX_PUSH_A = 9,
    OPSCOPE__NVTX_PUSH_W = 10,
    OPSCOPE__NVTX_POP = 11
};
enum {
    OPSCOPE__NVTX_DOMAIN_START_EX = 2,
    OPSCOPE__NVTX_DOMAIN_END = 3,
    OPSCOPE__NVTX_DOMAIN_PUSH_EX = 4,
    OPSCOPE__NVTX_DOMAIN_POP = 5,
    OPSCOPE__NVTX_REGISTER_STRING_A = 10,
    OPSCOPE__NVTX_REGISTER_STRING_W = 11,
    OPSCOPE__NVTX_DOMAIN_CREATE_A = 12,
    OPSCOPE__NVTX_DOMAIN_CREATE_W = 13
};

enum { OPSCOPE__NVTX_ASCII = 1, OPSCOPE__NVTX_UNICODE = 2, OPSCOPE__NVTX_REGISTERED = 3 };

struct opscope__nvtx_attributes {
    uint16_t version;
    uint16_t size; /* of what the client has of this struct */
    uint32_t category;
    int32_t color_type;
    uint32_t color;
    int32_t payload_type;
    int32_t reserved;
    uint64_t payload;
    int32_t message_type;
    const void *message;
};

/* What a push or pop returns if nobody follows the nesting. */
enum { OPSCOPE__NVTX_NOT_FOLLOWED = -2 };

#endif
