/* recorder/notes.c -- facts about the process (key and value), written into every segment that the
 * process makes. Call everything with the segment lock held. */
#include <stdlib.h>
#include <string.h>

#include "recorder/state.h"

enum { NOTE_LIMIT = 64, TEXT_LIMIT = 512 };

struct note {
    uint32_t bytes; /* of key and value, including both NULs */
    char text[];
};

static struct note *notes[NOTE_LIMIT];
static uint32_t note_count;

static bool write_note(opscope__segment *segment, const struct note *note)
{
    const opscope_entry entry = {.kind = OPSCOPE_ENTRY_NOTE, .bytes = note->bytes};
    return opscope__segment_add_entry(segment, &entry, note->text);
}

int opscope__notes_set(opscope__segment *segment, const char *key, const char *value)
{
    size_t key_bytes = strlen(key) + 1;
    size_t value_bytes = strnlen(value, TEXT_LIMIT - 1) + 1;
    if (key_bytes == 1 || key_bytes > TEXT_LIMIT) {
        return OPSCOPE_ERR_INVALID;
    }
    uint32_t at = 0;
    while (at < note_count && strcmp(notes[at]->text, key) != 0) {
        at++;
    }
    if (at == NOTE_LIMIT) {
        return OPSCOPE_ERR_FULL;
    }
    struct note *note = malloc(sizeof *note + key_bytes + value_bytes);
    if (note == NULL) {
        return OPSCOPE_ERR_NO_MEMORY;
    }
    note->bytes = (uint32_t)(key_bytes + value_bytes);
    memcpy(note->text, key, key_bytes);
    memcpy(note->text + key_bytes, value, value_bytes - 1);
    note->text[note->bytes - 1] = '\0';
    if (at < note_count) {
        free(notes[at]);
    } else {
        note_count++;
    }
    notes[at] = note;
    /* In a forked child without a segment, the next segment gets it. */
    return segment->base == NULL || write_note(segment, note) ? OPSCOPE_OK : OPSCOPE_ERR_NO_SPACE;
}

void opscope__notes_write_all(opscope__segment *segment)
{
    for (uint32_t i = 0; i < note_count; i++) {
        (void)write_note(segment, notes[i]);
    }
}
