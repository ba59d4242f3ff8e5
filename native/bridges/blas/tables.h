/* blas/tables.h -- reads the dynamic section of a loaded library: its symbols and relocations. */
#ifndef OPSCOPE_BRIDGES_BLAS_TABLES_H
#define OPSCOPE_BRIDGES_BLAS_TABLES_H

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bridges/pages.h"

/* What the loader knows of a library: its dynamic section. All of it is readable and aligned. */
struct opscope__blas_tables {
    uintptr_t base;
    const ElfW(Sym) * symbols;
    const char *strings;
    size_t strings_bytes;
    const ElfW(Rela) * relocations[2]; /* of its data; of its calls */
    size_t counts[2];
};

/* ERR_UNSUPPORTED if the section is not as expected. Sections without relocations are. No byte is
 * read before the kernel has said that it is readable, whatever the section contains. */
int opscope__blas_read_tables(const struct link_map *map, const struct opscope__pages *pages,
                              struct opscope__blas_tables *out);
/* Whether it sets a pointer to the address of a symbol, which the tables then have. */
bool opscope__blas_is_slot(const ElfW(Rela) * relocation);

#endif
