/* blas/attach.h -- the part of the attachment that reads what a library says of itself. */
#ifndef OPSCOPE_BRIDGES_BLAS_ATTACH_H
#define OPSCOPE_BRIDGES_BLAS_ATTACH_H

#include <link.h>
#include <stdbool.h>

#include "bridges/pages.h"
#include "private/blas.h"

/* Attaches each slot of the library. `is_known`: some of them may be attached already.
 * ERR_UNSUPPORTED: its tables are not as expected. */
int opscope__blas_attach_library(const struct link_map *map, bool is_known,
                                 const struct opscope__pages *pages, opscope_blas_slots *out);

#endif
