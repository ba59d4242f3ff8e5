/* marks/texts.c -- registered strings in a table that only grows. PyTorch registers the name of
 * each range anew, so a string that is known must be found without a lock. */
#include "bridges/marks/texts.h"

#include <stdlib.h>
#include <string.h>

#include "base/atomics.h"
#include "bridges/marks/range.h"

/* A power of two; half of the places stay free. */
enum { PLACES = 2 * OPSCOPE__MARKS_NAME_LIMIT };

/* Open addressing by the hash. A place is filled once, with release. */
static struct opscope__itt_string *texts[PLACES];
static uint32_t count; /* relaxed: only a limit */

static struct opscope__itt_string other = {.text = "other"};

static struct opscope__itt_string *make(const char *text, size_t bytes)
{
    struct opscope__itt_string *made = malloc(sizeof *made + bytes + 1);
    if (made != NULL) {
        char *own = memcpy(made + 1, text, bytes);
        own[bytes] = '\0';
        *made = (struct opscope__itt_string){.text = own};
    }
    return made;
}

static bool is_same(const struct opscope__itt_string *known, const char *text, size_t bytes)
{
    return strncmp(known->text, text, bytes) == 0 && known->text[bytes] == '\0';
}

struct opscope__itt_string *opscope__marks_text(const char *text)
{
    uint32_t hash = 0x811c9dc5u; /* FNV-1a */
    size_t bytes = 0;
    while (bytes < OPSCOPE__MARKS_NAME_BYTES && text[bytes] != '\0') {
        hash = (hash ^ (unsigned char)text[bytes++]) * 0x01000193u;
    }
    struct opscope__itt_string *made = NULL;
    for (uint32_t place = (hash ^ hash >> 16) % PLACES;;) {
        struct opscope__itt_string *known =
            opscope__load_acquire(&texts[place]); /* partner: below */
        if (known == NULL) {
            if (made == NULL) {
                made = opscope__load_relaxed(&count) < OPSCOPE__MARKS_NAME_LIMIT ? make(text, bytes)
                                                                                 : NULL;
            }
            if (made == NULL) {
                return &other;
            }
            if (opscope__replace_release(&texts[place], &known, made)) {
                (void)opscope__add_relaxed(&count, 1);
                return made;
            }
            continue; /* another thread has filled the place: look at it */
        }
        if (is_same(known, text, bytes)) {
            free(made);
            return known;
        }
        place = (place + 1) % PLACES;
    }
}
