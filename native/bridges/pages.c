/* pages.c -- reads /proc/self/maps. Knows nothing of Python. */
#include "bridges/pages.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "opscope/status.h"

struct opscope__page_run {
    uintptr_t start;
    uintptr_t end;
    int access;
};

/* The whole file as one string, to be freed. */
static int read_maps(char **out)
{
    size_t capacity = 65536;
    size_t used = 0;
    char *text = malloc(capacity);
    int file = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    int status = file < 0 ? OPSCOPE_ERR_IO : OPSCOPE_OK;
    while (text != NULL && status == OPSCOPE_OK) {
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
    if (file >= 0) {
        close(file);
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

/* A line starts "55d0c0000000-55d0c0021000 rw-p ". */
static bool parse_line(const char *line, struct opscope__page_run *out)
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

int opscope__pages_read(struct opscope__pages *out)
{
    char *text;
    int status = read_maps(&text);
    if (status != OPSCOPE_OK) {
        return status;
    }
    size_t lines = 1;
    for (const char *c = text; *c != '\0'; c++) {
        lines += *c == '\n';
    }
    struct opscope__pages pages = {.runs = calloc(lines, sizeof *pages.runs), .count = 0};
    if (pages.runs == NULL) {
        free(text);
        return OPSCOPE_ERR_NO_MEMORY;
    }
    for (const char *line = text; line != NULL && *line != '\0';) {
        pages.count += parse_line(line, &pages.runs[pages.count]);
        line = strchr(line, '\n');
        line = line == NULL ? NULL : line + 1;
    }
    free(text);
    *out = pages;
    return OPSCOPE_OK;
}

void opscope__pages_release(struct opscope__pages *pages)
{
    free(pages->runs);
    pages->runs = NULL;
    pages->count = 0;
}

static int compare_address(const void *key, const void *element)
{
    uintptr_t address = (uintptr_t)key;
    const struct opscope__page_run *run = element;
    return address < run->start ? -1 : address >= run->end;
}

bool opscope__pages_grant(const struct opscope__pages *pages, const void *address, size_t bytes,
                          int access)
{
    const struct opscope__page_run *run = NULL;
    if (address != NULL) {
        run = bsearch(address, pages->runs, pages->count, sizeof *run, compare_address);
    }
    return run != NULL && (run->access & access) == access &&
           run->end - (uintptr_t)address >= bytes;
}
