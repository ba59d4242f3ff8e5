/* slot.c -- the loader's tables of a library, each checked before it is read. */
#include "bridges/slot.h"

#include <elf.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/atomics.h"
#include "opscope/status.h"

#if defined(__aarch64__)
enum { JUMP_SLOT = R_AARCH64_JUMP_SLOT, GLOB_DAT = R_AARCH64_GLOB_DAT };
#else
enum { JUMP_SLOT = R_X86_64_JUMP_SLOT, GLOB_DAT = R_X86_64_GLOB_DAT };
#endif

/* What the loader knows of a library: its dynamic section. All of it is readable and aligned. */
struct tables {
    uintptr_t base;
    const ElfW(Sym) * symbols;
    const char *strings;
    size_t strings_bytes;
    const ElfW(Rela) * relocations[2]; /* of its data; of its calls */
    size_t counts[2];
};

/* glibc has added the base to the addresses in the section, musl has not. */
static const void *address(const struct link_map *map, const ElfW(Dyn) * entry)
{
    const uintptr_t value = (uintptr_t)entry->d_un.d_ptr;
    return (const void *)(value < map->l_addr ? value + map->l_addr : value);
}

static bool is_aligned(const void *address, size_t bytes)
{
    return (uintptr_t)address % bytes == 0;
}

static void read_section(const struct link_map *map, const struct opscope__pages *pages,
                         struct tables *out, size_t bytes[2], bool *is_known)
{
    for (const ElfW(Dyn) *entry = map->l_ld;; entry++) {
        if (!is_aligned(entry, sizeof entry->d_tag) ||
            !opscope__pages_grant(pages, entry, sizeof *entry, PROT_READ)) {
            *is_known = false; /* it has no end */
            return;
        }
        if (entry->d_tag == DT_NULL) {
            return;
        }
        switch (entry->d_tag) {
        case DT_SYMTAB:
            out->symbols = address(map, entry);
            break;
        case DT_SYMENT:
            *is_known &= entry->d_un.d_val == sizeof *out->symbols;
            break;
        case DT_STRTAB:
            out->strings = address(map, entry);
            break;
        case DT_STRSZ:
            out->strings_bytes = entry->d_un.d_val;
            break;
        case DT_RELA:
            out->relocations[0] = address(map, entry);
            break;
        case DT_RELASZ:
            bytes[0] = entry->d_un.d_val;
            break;
        case DT_RELAENT:
            *is_known &= entry->d_un.d_val == sizeof *out->relocations[0];
            break;
        case DT_JMPREL:
            out->relocations[1] = address(map, entry);
            break;
        case DT_PLTRELSZ:
            bytes[1] = entry->d_un.d_val;
            break;
        case DT_PLTREL:
            *is_known &= entry->d_un.d_val == DT_RELA;
            break;
        default:
            break;
        }
    }
}

/* Whether it sets a pointer to the address of a symbol, which the tables then have. */
static bool is_slot(const ElfW(Rela) * relocation)
{
    const uint64_t type = ELF64_R_TYPE(relocation->r_info);
    return (type == JUMP_SLOT || type == GLOB_DAT) && ELF64_R_SYM(relocation->r_info) != 0 &&
           relocation->r_addend == 0;
}

static int read_tables(const struct link_map *map, const struct opscope__pages *pages,
                       struct tables *out)
{
    size_t bytes[2] = {0};
    bool is_known = true;
    *out = (struct tables){.base = map->l_addr};
    read_section(map, pages, out, bytes, &is_known);
    if (!is_known || out->symbols == NULL || out->strings == NULL || out->strings_bytes == 0 ||
        !is_aligned(out->symbols, sizeof(uintptr_t)) ||
        !opscope__pages_grant(pages, out->strings, out->strings_bytes, PROT_READ) ||
        out->strings[out->strings_bytes - 1] != '\0') {
        return OPSCOPE_ERR_UNSUPPORTED;
    }
    size_t symbol_count = 0;
    for (int table = 0; table < 2; table++) {
        const ElfW(Rela) *relocations = out->relocations[table];
        out->counts[table] = relocations != NULL ? bytes[table] / sizeof *relocations : 0;
        if (out->counts[table] != 0 &&
            (!is_aligned(relocations, sizeof(uintptr_t)) ||
             !opscope__pages_grant(pages, relocations, bytes[table], PROT_READ))) {
            return OPSCOPE_ERR_UNSUPPORTED;
        }
        for (size_t i = 0; i < out->counts[table]; i++) {
            const size_t symbol = ELF64_R_SYM(relocations[i].r_info);
            if (is_slot(&relocations[i]) && symbol >= symbol_count) {
                symbol_count = symbol + 1;
            }
        }
    }
    return symbol_count == 0 || opscope__pages_grant(pages, out->symbols,
                                                     symbol_count * sizeof *out->symbols, PROT_READ)
               ? OPSCOPE_OK
               : OPSCOPE_ERR_UNSUPPORTED;
}

int opscope__slots_visit(const struct link_map *map, const struct opscope__pages *pages,
                         bool (*visit)(void *context, opscope__slot_function *slot,
                                       const char *name),
                         void *context)
{
    struct tables tables;
    const int status = read_tables(map, pages, &tables);
    for (int table = 0; status == OPSCOPE_OK && table < 2; table++) {
        for (size_t i = 0; i < tables.counts[table]; i++) {
            const ElfW(Rela) *relocation = &tables.relocations[table][i];
            if (!is_slot(relocation)) {
                continue;
            }
            opscope__slot_function *slot =
                (opscope__slot_function *)(tables.base + relocation->r_offset);
            const uint32_t name = tables.symbols[ELF64_R_SYM(relocation->r_info)].st_name;
            if (name < tables.strings_bytes && is_aligned(slot, sizeof *slot) &&
                opscope__pages_grant(pages, slot, sizeof *slot, PROT_READ) &&
                !visit(context, slot, tables.strings + name)) {
                return OPSCOPE_OK;
            }
        }
    }
    return status;
}

bool opscope__slot_replace(opscope__slot_function *slot, bool is_read_only,
                           opscope__slot_function expected, opscope__slot_function value)
{
    const size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    char *start = (char *)slot;
    void *page = start - (uintptr_t)start % page_bytes;
    if (is_read_only && mprotect(page, page_bytes, PROT_READ | PROT_WRITE) != 0) {
        return false;
    }
    /* Partner: the plain load of each call through the slot, which either function serves. */
    const bool is_replaced = opscope__replace_release(slot, &expected, value);
    if (is_read_only) {
        (void)mprotect(page, page_bytes, PROT_READ);
    }
    return is_replaced;
}
