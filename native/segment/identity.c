/* segment/identity.c -- see segment/identity.h. Reads three files of /proc, allocates nothing. */
#define _GNU_SOURCE
#include "segment/identity.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { START_TIME_FIELD = 22, AFTER_NAME_FIELD = 3 };

/* Reads the start of a small file as text; empty if the file cannot be read. */
static void read_text(const char *path, char *text, size_t capacity)
{
    ssize_t bytes = -1;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        bytes = read(fd, text, capacity - 1);
        close(fd);
    }
    text[bytes > 0 ? bytes : 0] = '\0';
}

static int hex_digit(char c)
{
    const char *digits = "0123456789abcdef";
    const char *found = c != '\0' ? strchr(digits, c) : NULL;
    return found != NULL ? (int)(found - digits) : -1;
}

static void read_boot_id(uint8_t *boot_id)
{
    char text[64];
    read_text("/proc/sys/kernel/random/boot_id", text, sizeof text);
    unsigned count = 0;
    for (const char *c = text; *c != '\0' && count < 32; c++) {
        int digit = hex_digit(*c);
        if (digit >= 0) {
            boot_id[count / 2] = (uint8_t)(boot_id[count / 2] << 4 | digit);
            count++;
        }
    }
}

static uint64_t read_process_start(void)
{
    char text[1024];
    read_text("/proc/self/stat", text, sizeof text);
    /* The name, field 2, is in parentheses and may contain any character, including a
     * parenthesis. */
    const char *rest = strrchr(text, ')');
    for (int field = AFTER_NAME_FIELD; rest != NULL && field <= START_TIME_FIELD; field++) {
        rest = strchr(rest + 1, ' ');
    }
    return rest != NULL ? strtoull(rest + 1, NULL, 10) : 0;
}

void opscope__identity_read(opscope__identity *out)
{
    struct stat namespace;
    *out = (opscope__identity){.pid = (uint64_t)getpid(), .uid = (uint64_t)geteuid()};
    read_boot_id(out->boot_id);
    out->process_start = read_process_start();
    out->pid_namespace = stat("/proc/self/ns/pid", &namespace) == 0 ? namespace.st_ino : 0;
}
