/* model/document/json_text.c -- the texts of JSON: escapes, surrogate pairs, UTF-8. */
#include "model/document/json_text.h"

#include <string.h>

static struct opscope__item *fail(const struct opscope__json_input *input, const char *reason)
{
    opscope__document_fail(opscope__json_offset(input), "%s", reason);
    return NULL;
}

/* The offset of the closing quote, from the byte behind the opening one; -1: there is none. */
static ptrdiff_t find_end(const struct opscope__json_input *input)
{
    const uint8_t *at = input->at;
    while (at < input->end && *at != '"') {
        at += *at == '\\' && input->end - at > 1 ? 2 : 1;
    }
    return at < input->end ? at - input->at : -1;
}

static int hex_digit(uint8_t byte)
{
    return byte >= '0' && byte <= '9'   ? byte - '0'
           : byte >= 'a' && byte <= 'f' ? byte - 'a' + 10
           : byte >= 'A' && byte <= 'F' ? byte - 'A' + 10
                                        : -1;
}

/* The four digits behind a "\u" at `at`; -1: something else stands there. */
static int32_t unit_at(const uint8_t *at, const uint8_t *end)
{
    if (end - at < 6 || at[0] != '\\' || at[1] != 'u') {
        return -1;
    }
    int32_t unit = 0;
    for (int i = 2; i < 6; i++) {
        int digit = hex_digit(at[i]);
        if (digit < 0) {
            return -1;
        }
        unit = unit * 16 + digit;
    }
    return unit;
}

static char *put_character(char *out, uint32_t code)
{
    static const uint8_t marks[] = {0, 0, 0xC0, 0xE0, 0xF0};
    int bytes = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (int i = bytes - 1; i > 0; i--) {
        out[i] = (char)(0x80 | (code & 0x3F));
        code >>= 6;
    }
    out[0] = (char)(marks[bytes] | code);
    return out + bytes;
}

/* A "\u" escape, or two that are one character. NULL: reported. */
static char *take_unicode(struct opscope__json_input *input, char *out)
{
    int32_t unit = unit_at(input->at, input->end);
    if (unit < 0) {
        fail(input, "\\u without four hexadecimal digits");
        return NULL;
    }
    uint32_t code = (uint32_t)unit;
    if (unit >= 0xD800 && unit <= 0xDFFF) {
        int32_t low = unit_at(input->at + 6, input->end);
        if (unit > 0xDBFF || low < 0xDC00 || low > 0xDFFF) {
            fail(input, "half of a surrogate pair");
            return NULL;
        }
        code = 0x10000 + ((code - 0xD800) << 10) + ((uint32_t)low - 0xDC00);
        input->at += 6;
    }
    input->at += 6;
    return put_character(out, code);
}

static char *take_escape(struct opscope__json_input *input, char *out)
{
    static const char letters[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
    uint8_t letter = input->at[1];
    if (letter == 'u') {
        return take_unicode(input, out);
    }
    const char *found = letter != '\0' ? strchr(letters, letter) : NULL;
    if (found == NULL) {
        fail(input, "an escape that JSON does not have");
        return NULL;
    }
    *out = meanings[found - letters];
    input->at += 2;
    return out + 1;
}

static char *take_character(struct opscope__json_input *input, char *out)
{
    if (*input->at == '\\') {
        return take_escape(input, out);
    }
    if (*input->at < ' ') {
        fail(input, "a control character in a text");
        return NULL;
    }
    size_t length = opscope__utf8_length(input->at, input->end);
    if (length == 0) {
        fail(input, "not UTF-8");
        return NULL;
    }
    memcpy(out, input->at, length);
    input->at += length;
    return out + length;
}

struct opscope__item *opscope__json_text(struct opscope__json_input *input)
{
    size_t offset = opscope__json_offset(input);
    input->at++;
    ptrdiff_t written = find_end(input);
    if (written < 0) {
        opscope__document_fail(offset, "a text without an end");
        return NULL;
    }
    /* No escape means more bytes than it is written with. */
    struct opscope__item *item = opscope__item_new(input->document, OPSCOPE__ITEM_TEXT, offset);
    char *text =
        item != NULL ? opscope__document_memory(input->document, (size_t)written + 1) : NULL;
    const uint8_t *quote = input->at + written;
    char *out = text;
    while (out != NULL && input->at < quote) {
        out = take_character(input, out);
    }
    if (out == NULL) {
        return NULL;
    }
    *out = '\0';
    item->as.text = text;
    item->count = (uint32_t)(out - text);
    input->at = quote + 1;
    return item;
}
