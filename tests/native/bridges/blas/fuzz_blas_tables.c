/* tests/native/bridges/blas/fuzz_blas_tables.c -- any bytes as the image of a loaded library, whose
 * tables the bridge reads.
 *
 * The image lies between two pages without access, so a read beyond it ends the process. For any
 * bytes, nothing is written: no slot is replaced, as no library in this process exports a routine.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* MAP_ANONYMOUS */
#endif
#include <assert.h>
#include <elf.h>
#include <string.h>
#include <sys/mman.h>

#include "bridges/blas/attach.h"

enum { PAGE = 4096, IMAGE = 4 * PAGE, ENTRIES = 16, SYMBOLS = 16 };
enum { SYMBOLS_AT = 3 * PAGE, STRINGS_AT = IMAGE - PAGE / 2 };

/* The image, and what it was before the attachment. */
static unsigned char *image;
static unsigned char before[IMAGE];

static void make_image(void)
{
    unsigned char *all =
        mmap(NULL, IMAGE + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert(all != MAP_FAILED);
    image = all + PAGE;
    assert(mprotect(image, IMAGE, PROT_READ | PROT_WRITE) == 0);
}

/* Symbols that are those of routines, and a section that leads to them. The last name may end with
 * the image, without a NUL. Returns the next entry. */
static ElfW(Dyn) * make_tables(size_t relocation_bytes, bool has_end)
{
    static const char names[] = "\0dgemm_\0cblas_dgemm64_\0scipy_dgesv_64_";
    ElfW(Sym) *symbols = (ElfW(Sym) *)(void *)(image + SYMBOLS_AT);
    for (size_t i = 1; i < SYMBOLS; i++) {
        symbols[i].st_name = i % 3 == 0 ? 1 : i % 3 == 1 ? 8 : 23;
    }
    const size_t bytes = has_end ? sizeof names : sizeof "\0dgemm_" - 1;
    const size_t strings_at = has_end ? STRINGS_AT : IMAGE - bytes;
    memcpy(image + strings_at, names, bytes);
    const ElfW(Dyn) entries[] = {{.d_tag = DT_SYMTAB, .d_un.d_val = SYMBOLS_AT},
                                 {.d_tag = DT_STRTAB, .d_un.d_val = strings_at},
                                 {.d_tag = DT_STRSZ, .d_un.d_val = bytes},
                                 {.d_tag = DT_RELA, .d_un.d_val = ENTRIES * sizeof(ElfW(Dyn))},
                                 {.d_tag = DT_RELASZ, .d_un.d_val = relocation_bytes}};
    memcpy(image, entries, sizeof entries);
    return (ElfW(Dyn) *)(void *)image + sizeof entries / sizeof *entries;
}

/* Further entries: from each four bytes of data an entry that the bridge knows, with
 * an offset in the image. Returns how many bytes it took. */
static size_t add_entries(ElfW(Dyn) * section, const uint8_t *data, size_t size)
{
    static const ElfW(Sxword)
        tags[] = {DT_SYMTAB,   DT_STRTAB, DT_STRSZ,  DT_RELA,    DT_RELASZ, DT_JMPREL,
                  DT_PLTRELSZ, DT_PLTREL, DT_SYMENT, DT_RELAENT, DT_NULL,   DT_DEBUG};
    size_t used = 0;
    for (size_t i = 0; i < data[0] % 8 && used + 4 <= size; i++, used += 4) {
        const size_t offset = (size_t)(data[used + 1] | data[used + 2] << 8) % IMAGE;
        section[i].d_tag = tags[data[used] % (sizeof tags / sizeof *tags)];
        section[i].d_un.d_val = data[used + 3] % 2 == 0 ? offset : offset & ~(size_t)7;
        if (section[i].d_tag == DT_PLTREL) {
            section[i].d_un.d_val = DT_RELA;
        } else if (section[i].d_tag == DT_SYMENT) {
            section[i].d_un.d_val = sizeof(ElfW(Sym));
        } else if (section[i].d_tag == DT_RELAENT) {
            section[i].d_un.d_val = sizeof(ElfW(Rela));
        }
    }
    return used;
}

/* Relocations after the section, each from four bytes of data. */
static void add_relocations(const uint8_t *data, size_t size)
{
    ElfW(Rela) *relocations = (ElfW(Rela) *)(void *)(image + ENTRIES * sizeof(ElfW(Dyn)));
    for (size_t i = 0; i < size / 4 && i < 2 * PAGE / sizeof *relocations; i++, data += 4) {
        relocations[i].r_offset = (ElfW(Addr))(data[0] | data[1] << 8);
        relocations[i].r_info = ELF64_R_INFO((uint64_t)data[2] % (2 * SYMBOLS), data[3] % 16);
        relocations[i].r_addend = data[3] / 128;
    }
}

static bool is_readable_elsewhere(const struct opscope__pages *pages, uintptr_t address)
{
    return (address < (uintptr_t)image || address >= (uintptr_t)image + IMAGE) &&
           opscope__pages_grant(pages, (const void *)address, 1, PROT_READ);
}

/* Removes addresses of what is readable elsewhere: it may be the sanitizer's own memory, which
 * instrumented code cannot read. Pointers are aligned, or the bridge leaves them alone. */
static void stay_within(const struct opscope__pages *pages)
{
    for (size_t at = 0; at < IMAGE; at += sizeof(uintptr_t)) {
        uintptr_t word;
        memcpy(&word, image + at, sizeof word);
        if (word != 0 && (is_readable_elsewhere(pages, word) ||
                          is_readable_elsewhere(pages, word + (uintptr_t)image))) {
            memset(image + at, 0, sizeof word);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2) {
        return 0;
    }
    if (image == NULL) {
        make_image();
    }
    memset(image, 0, IMAGE);
    const bool is_at_end = data[0] % 2 != 0; /* then nothing but bytes, up to the last one */
    const size_t most = 2 * PAGE;
    const size_t rest = size - 1 < most ? size - 1 : most;
    if (is_at_end) {
        memcpy(image + IMAGE - rest, data + 1, rest);
    } else {
        ElfW(Dyn) *section = make_tables(rest / 4 * sizeof(ElfW(Rela)), data[0] % 8 < 6);
        const size_t used = add_entries(section, data + 1, rest);
        add_relocations(data + 1 + used, rest - used);
    }
    struct opscope__pages pages;
    assert(opscope__pages_read(&pages) == OPSCOPE_OK);
    stay_within(&pages);
    memcpy(before, image, IMAGE);

    const struct link_map map = {
        .l_addr = (uintptr_t)image,
        .l_ld = (ElfW(Dyn) *)(void *)(is_at_end ? image + IMAGE - rest / 8 * 8 : image),
    };
    opscope_blas_slots slots = {0};
    const int status = opscope__blas_attach_library(&map, data[0] % 4 == 0, &pages, &slots);
    opscope__pages_release(&pages);
    assert(status == OPSCOPE_OK || status == OPSCOPE_ERR_UNSUPPORTED);
    assert(slots.replaced == 0 && slots.read_only == 0 && slots.full == 0);
    assert(memcmp(before, image, IMAGE) == 0);
    return 0;
}
