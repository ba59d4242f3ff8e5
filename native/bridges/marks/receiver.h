/* marks/receiver.h -- what the injected library (library/injected.c) and the bridge agree on.
 *
 * The library has no other tie to Opscope: a program without Opscope may load it too, because it
 * inherits the environment variable that names it. */
#ifndef OPSCOPE_BRIDGES_MARKS_RECEIVER_H
#define OPSCOPE_BRIDGES_MARKS_RECEIVER_H

#include "bridges/marks/itt_abi.h"
#include "bridges/marks/nvtx_abi.h"

/* Each takes one client: a library with a copy of NVTX or ITT in it. NULL: the library refuses. */
struct opscope__marks_receiver {
    int (*nvtx)(opscope__nvtx_get_table *get_table); /* 0: refused */
    void (*itt)(struct opscope__itt_global *global);
};

/* The library's own function, which the bridge looks up by this name. */
#define OPSCOPE__MARKS_RECEIVE "opscope_marks_receive"
typedef void opscope__marks_receive(const struct opscope__marks_receiver *receiver);

#endif
