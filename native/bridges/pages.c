/* pages.c -- queries /proc/self/maps. Does not depend on Python.
 *
 * Linux 6.11 and later answer queries about single addresses. On older kernels it reads the whole
 * file, which takes the kernel a microsecond per line while the program waits.
 */
#include "bridges/pages.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "opscope/status.h"

struct page_run {
    uintptr_t start;
    uintptr_t end;
    int access;
};

struct opscope__page_runs {
    size_t count;
    size_t capacity;
    struct page_run runs[]; /* by ascending start */
};

/* As in <linux/fs.h>, of which most systems have an older version. */
struct query {
    uint64_t size;
    uint64_t flags;
    uint64_t address;
    uint64_t start; /* from here on, output fields */
    uint64_t end;
    uint64_t access; /* PROT_READ, PROT_WRITE and PROT_EXEC bits; more above */
    uint64_t page_size, offset, inode;
    uint32_t device_major, device_minor, name_size, build_id_size;
    uint64_t name, build_id;
};
_Static_assert(sizeof(struct query) == 104, "part of the request's number");
#define QUERY _IOWR('f', 17, struct query)
_Static_assert((PROT_READ | PROT_WRITE | PROT_EXEC) == 7, "the kernel's bits");

enum { KNOWN_LIMIT = 64 }; /* runs kept from queries about single addresses */

static bool ask(int file, uintptr_t address, struct page_run *out)
{
    struct query query = {.size = sizeof query, .address = address};
    /* Not ioctl(), whose type of the request is not the same in all C libraries. */
    if (syscall(SYS_ioctl, file, QUERY, &query) != 0) {
        return false;
    }
    *out = (struct page_run){.start = (uintptr_t)query.start,
                             .end = (uintptr_t)query.end,
                             .access = (int)(query.access & 7)};
    return true;
}

/* ---- the file read whole -------------------------------------------------------------------- */

/* The whole file as one string, which the caller frees. */
static int read_text(int file, char **out)
{
    size_t capacity = 65536;
    size_t used = 0;
    char *text = malloc(capacity);
    int status = OPSCOPE_OK;
    while (text != NULL) {
        ssize_t got = read(file, text + used, capacity - used - 1);
        if (got <= 0) {
            status = got < 0 ? OPSCOPE_ERR_IO : status;
            break;
        }
        used += (size_t)got;
        if (capacity - used < 8192) {
            capacity *= 2;
            char *more = realloc(text, capacity);
            if (more == NULL) {
                free(text);
            }
            text = more;
        }
    }
    if (text == NULL) {
        return OPSCOPE_ERR_NO_MEMORY;
    }
    if (status != OPSCOPE_OK) {
        free(text);
        return status;
    }
    text[used] = '\0';
    *out = text;
    return OPSCOPE_OK;
}

/* A line starts with "55d0c0000000-55d0c0021000 rw-p ". */
static bool parse_line(const char *line, struct page_run *out)
{
    char *end;
    out->start = (uintptr_t)strtoull(line, &end, 16);
    if (*end != '-') {
        return false;
    }
    out->end = (uintptr_t)strtoull(end + 1, &end, 16);
    if (*end != ' ' || strlen(end) < 5) {
        return false;
    }
    out->access = (end[1] == 'r' ? PROT_READ : 0) | (end[2] == 'w' ? PROT_WRITE : 0) |
                  (end[3] == 'x' ? PROT_EXEC : 0);
    return true;
}

static struct opscope__page_runs *make_runs(size_t capacity)
{
    struct opscope__page_runs *made = calloc(1, sizeof *made + capacity * sizeof *made->runs);
    if (made != NULL) {
        made->capacity = capacity;
    }
    return made;
}

static int read_all(int file, struct opscope__page_runs **out)
{
    char *text;
    int status = read_text(file, &text);
    if (status != OPSCOPE_OK) {
        return status;
    }
    size_t lines = 1;
    for (const char *c = text; *c != '\0'; c++) {
        lines += *c == '\n';
    }
    struct opscope__page_runs *made = make_runs(lines);
    if (made == NULL) {
        free(text);
        return OPSCOPE_ERR_NO_MEMORY;
    }
    for (const char *line = text; line != NULL && *line != '\0';) {
        made->count += parse_line(line, &made->runs[made->count]);
        line = strchr(line, '\n');
        line = line == NULL ? NULL : line + 1;
    }
    free(text);
    *out = made;
    return OPSCOPE_OK;
}

/* ---- access rights -------------------------------------------------------------------------- */

int opscope__pages_read(struct opscope__pages *out)
{
    int file = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        return OPSCOPE_ERR_IO;
    }
    struct page_run trial;
    if (ask(file, (uintptr_t)&trial, &trial)) {
        *out = (struct opscope__pages){.known = make_runs(KNOWN_LIMIT), .file = file};
        if (out->known != NULL) {
            return OPSCOPE_OK;
        }
        close(file);
        return OPSCOPE_ERR_NO_MEMORY;
    }
    out->file = -1;
    int status = read_all(file, &out->known);
    close(file);
    return status;
}

void opscope__pages_release(struct opscope__pages *pages)
{
    if (pages->file >= 0) {
        close(pages->file);
    }
    free(pages->known);
    *pages = (struct opscope__pages){.file = -1};
}

static int compare_address(const void *key, const void *element)
{
    uintptr_t address = (uintptr_t)key;
    const struct page_run *run = element;
    return address < run->start ? -1 : address >= run->end;
}

static const struct page_run *find(const struct opscope__page_runs *known, const void *address)
{
    return bsearch(address, known->runs, known->count, sizeof *known->runs, compare_address);
}

/* Inserts the run in order. A run may have grown since an earlier query; the longer one then comes
 * second. */
static void keep(struct opscope__page_runs *known, const struct page_run *run)
{
    if (known->count == known->capacity) {
        return;
    }
    size_t at = known->count++;
    for (; at > 0 && known->runs[at - 1].start > run->start; at--) {
        known->runs[at] = known->runs[at - 1];
    }
    known->runs[at] = *run;
}

bool opscope__pages_grant(const struct opscope__pages *pages, const void *address, size_t bytes,
                          int access)
{
    struct page_run asked;
    const struct page_run *run = NULL;
    if (address != NULL) {
        run = find(pages->known, address);
        if (run == NULL && pages->file >= 0 && ask(pages->file, (uintptr_t)address, &asked)) {
            keep(pages->known, &asked);
            run = &asked;
        }
    }
    return run != NULL && (run->access & access) == access &&
           run->end - (uintptr_t)address >= bytes;
}
