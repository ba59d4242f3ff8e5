/* model/document/json_number.c -- the numbers of JSON. */
#define _GNU_SOURCE /* strtod_l: a program's locale may have another decimal point */
#include "model/document/json_text.h"

#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* More digits than any double needs to be written exactly. */
enum { NUMBER_BYTES = 1200 };

static pthread_once_t once = PTHREAD_ONCE_INIT;
static locale_t c_locale;

static void make_locale(void)
{
    c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

static bool is_digit(const struct opscope__json_input *input)
{
    return input->at < input->end && *input->at >= '0' && *input->at <= '9';
}

static bool take_byte(struct opscope__json_input *input, char either, char or)
{
    bool is_there =
        input->at < input->end && (*input->at == (uint8_t)either || *input->at == (uint8_t) or);
    input->at += is_there;
    return is_there;
}

/* One or more digits. */
static bool take_digits(struct opscope__json_input *input)
{
    bool any = is_digit(input);
    while (is_digit(input)) {
        input->at++;
    }
    return any;
}

/* Moves behind the number; false where JSON has no such number. `is_whole`: no fraction and no
 * exponent. */
static bool take_number(struct opscope__json_input *input, bool *is_whole)
{
    *is_whole = true;
    take_byte(input, '-', '-');
    bool begins_with_zero = input->at < input->end && *input->at == '0';
    const uint8_t *first = input->at;
    if (!take_digits(input) || (begins_with_zero && input->at - first > 1)) {
        return false;
    }
    if (take_byte(input, '.', '.')) {
        *is_whole = false;
        if (!take_digits(input)) {
            return false;
        }
    }
    if (take_byte(input, 'e', 'E')) {
        *is_whole = false;
        take_byte(input, '+', '-');
        return take_digits(input);
    }
    return true;
}

/* False where it does not fit. */
static bool read_whole(const uint8_t *at, const uint8_t *end, int64_t *out)
{
    bool is_negative = *at == '-';
    int64_t value = 0;
    for (at += is_negative; at < end; at++) {
        int digit = *at - '0';
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_sub_overflow(value, digit, &value)) {
            return false;
        }
    }
    if (!is_negative && value == INT64_MIN) {
        return false;
    }
    *out = is_negative ? value : -value;
    return true;
}

/* False: reported. */
static bool read_real(const uint8_t *at, size_t bytes, size_t offset, double *out)
{
    char text[NUMBER_BYTES + 1];
    if (bytes > NUMBER_BYTES) {
        opscope__document_fail(offset, "a number of more than %d digits", NUMBER_BYTES);
        return false;
    }
    pthread_once(&once, make_locale);
    if (c_locale == (locale_t)0) {
        opscope__document_no_memory();
        return false;
    }
    memcpy(text, at, bytes);
    text[bytes] = '\0';
    double value = strtod_l(text, NULL, c_locale);
    if (!isfinite(value)) {
        opscope__document_fail(offset, "a number too large for a double");
        return false;
    }
    *out = value;
    return true;
}

struct opscope__item *opscope__json_number(struct opscope__json_input *input)
{
    const uint8_t *start = input->at;
    size_t offset = opscope__json_offset(input);
    bool is_whole;
    if (!take_number(input, &is_whole)) {
        opscope__document_fail(offset, "not a number as JSON writes it");
        return NULL;
    }
    int64_t integer = 0;
    double real = 0;
    bool is_int = is_whole && read_whole(start, input->at, &integer);
    if (!is_int && !read_real(start, (size_t)(input->at - start), offset, &real)) {
        return NULL;
    }
    struct opscope__item *item = opscope__item_new(
        input->document, is_int ? OPSCOPE__ITEM_INT : OPSCOPE__ITEM_FLOAT, offset);
    if (item != NULL && is_int) {
        item->as.integer = integer;
    } else if (item != NULL) {
        item->as.real = real;
    }
    return item;
}
