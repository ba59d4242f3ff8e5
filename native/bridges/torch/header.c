/* torch/header.c -- reads the declarations of PyTorch's ranges in ATen/record_function.h, which
 * wheels carry: a second witness beside PyTorch's functions, for the order of fields of one size.
 *
 * The declarations of the known fields are compared as text, without comments and spaces. They are
 * the same in all releases from 2.4 to 2.15. */
#include "bridges/torch/header.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_BYTES = 1 << 18 };

/* at::RecordFunctionTLS, without its name. */
static const char known_state[] = "RecordFunctionTLS{RecordFunctionCallbackssorted_tls_callbacks_;"
                                  "booltls_record_function_enabled_=true;};";

static const uint64_t known_digests[] = {
    0x581a18e9016f523d, /* 2.4.0 to 2.15.0 */
};

/* How the declarations begin, without spaces. Each ends with the braces around it. */
static const char *const parts[] = {
    "FUNCTION=0,",
    "StartCallbackstart_;EndCallbackend_;double",
    "StartEndPairscallbacks_;",
    "StepCallbacksstep_callbacks_;",
};

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Removes comments and all spaces, in place. */
static void squeeze(char *text)
{
    char *to = text;
    for (const char *from = text; *from != '\0';) {
        if (strncmp(from, "//", 2) == 0) {
            from += strcspn(from, "\n");
        } else if (strncmp(from, "/*", 2) == 0) {
            const char *end = strstr(from + 2, "*/");
            from = end != NULL ? end + 2 : from + strlen(from);
        } else {
            *to = *from++;
            to += !is_space(*to);
        }
    }
    *to = '\0';
}

static size_t length_in_braces(const char *start)
{
    size_t i = 0;
    for (int depth = 0; start[i] != '\0' && depth >= 0; i++) {
        depth += (start[i] == '{') - (start[i] == '}');
    }
    return i;
}

/* FNV-1a. */
static uint64_t digest(uint64_t sum, const char *text, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        sum = (sum ^ (uint8_t)text[i]) * 0x100000001b3u;
    }
    return sum;
}

uint64_t opscope__torch_header_digest(char *text)
{
    uint64_t sum = 0xcbf29ce484222325u;
    squeeze(text);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        const char *start = strstr(text, parts[i]);
        if (start == NULL) {
            return 0;
        }
        sum = digest(sum, start, length_in_braces(start));
    }
    return sum;
}

/* To be freed; NULL: the file cannot be read. */
static char *read_text(const char *path)
{
    FILE *file = fopen(path, "re");
    char *text = file != NULL ? malloc(MOST_BYTES) : NULL;
    if (text != NULL) {
        text[fread(text, 1, MOST_BYTES - 1, file)] = '\0';
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return text;
}

bool opscope__torch_header_is_known(const char *path)
{
    char *text = read_text(path);
    bool is_known = text == NULL || *text == '\0';
    const uint64_t found = !is_known ? opscope__torch_header_digest(text) : 0;
    for (size_t i = 0; i < sizeof known_digests / sizeof known_digests[0]; i++) {
        is_known = is_known || found == known_digests[i];
    }
    free(text);
    return is_known;
}

bool opscope__torch_header_declares_state(const char *path)
{
    char *text = read_text(path);
    if (text != NULL) {
        squeeze(text);
    }
    const bool declares = text != NULL && strstr(text, known_state) != NULL;
    free(text);
    return declares;
}
