/* model/program/kinds/literal.c -- numbers, read from texts as int() and float() read them. */
#define _GNU_SOURCE /* strtod_l: a program's locale may have another decimal point */
#include "model/program/kinds/literal.h"

#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <strings.h>

#include "opscope/status.h"

struct scan {
    const char *at;
    const char *end;
};

static bool is_blank(char byte)
{
    return byte == ' ' || (byte >= '\t' && byte <= '\r') || (byte >= '\x1c' && byte <= '\x1f');
}

static bool is_digit(const struct scan *scan)
{
    return scan->at < scan->end && *scan->at >= '0' && *scan->at <= '9';
}

static struct scan strip(const struct opscope__text *text)
{
    struct scan scan = {text->at, text->at + text->bytes};
    while (scan.at < scan.end && is_blank(*scan.at)) {
        scan.at++;
    }
    while (scan.at < scan.end && is_blank(scan.end[-1])) {
        scan.end--;
    }
    return scan;
}

static int fail(const char *what, const struct opscope__text *text)
{
    return opscope_tensor_fail(OPSCOPE_ERROR_VALUE, "%s: '%.100s'", what, text->at);
}

/* ---- ints ------------------------------------------------------------------------------------- */

/* Moves behind a digit, and behind one '_' that stands before another digit. */
static int take_digit(struct scan *scan)
{
    int digit = *scan->at++ - '0';
    if (scan->end - scan->at > 1 && *scan->at == '_' && scan->at[1] >= '0' && scan->at[1] <= '9') {
        scan->at++;
    }
    return digit;
}

int opscope__literal_int(const struct opscope__text *text, int64_t *out)
{
    struct scan scan = strip(text);
    bool is_negative = scan.at < scan.end && *scan.at == '-';
    scan.at += is_negative || (scan.at < scan.end && *scan.at == '+');
    bool any = is_digit(&scan), fits = true;
    int64_t number = 0;
    while (is_digit(&scan)) {
        int digit = take_digit(&scan);
        fits = fits && !__builtin_mul_overflow(number, 10, &number) &&
               !__builtin_sub_overflow(number, digit, &number);
    }
    if (!any || scan.at < scan.end) {
        return fail("invalid literal for int() with base 10", text);
    }
    if (!fits || (!is_negative && number == INT64_MIN)) {
        return opscope_tensor_fail(OPSCOPE_ERROR_OVERFLOW, "an integer of more than 64 bits");
    }
    *out = is_negative ? number : -number;
    return OPSCOPE_OK;
}

/* ---- floats ----------------------------------------------------------------------------------- */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static locale_t c_locale;

static void make_locale(void)
{
    c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

/* Copies digits without their '_' to `*copy`; false if there are none. */
static bool copy_digits(struct scan *scan, char **copy)
{
    bool any = is_digit(scan);
    while (is_digit(scan)) {
        *(*copy)++ = (char)('0' + take_digit(scan));
    }
    return any;
}

/* A number without its sign, as strtod() takes it. */
static bool copy_number(struct scan *scan, char *copy)
{
    bool any = copy_digits(scan, &copy);
    if (scan->at < scan->end && *scan->at == '.') {
        *copy++ = *scan->at++;
        any |= copy_digits(scan, &copy);
    }
    if (any && scan->at < scan->end && (*scan->at == 'e' || *scan->at == 'E')) {
        *copy++ = *scan->at++;
        if (scan->at < scan->end && (*scan->at == '-' || *scan->at == '+')) {
            *copy++ = *scan->at++;
        }
        any = copy_digits(scan, &copy);
    }
    *copy = '\0';
    return any && scan->at == scan->end;
}

static bool is_word(const struct scan *scan, const char *word, size_t bytes)
{
    return (size_t)(scan->end - scan->at) == bytes && strncasecmp(scan->at, word, bytes) == 0;
}

int opscope__literal_float(const struct opscope__text *text, double *out)
{
    struct scan scan = strip(text);
    bool is_negative = scan.at < scan.end && *scan.at == '-';
    scan.at += is_negative || (scan.at < scan.end && *scan.at == '+');
    double number;
    if (is_word(&scan, "inf", 3) || is_word(&scan, "infinity", 8)) {
        number = INFINITY;
    } else if (is_word(&scan, "nan", 3)) {
        number = NAN;
    } else {
        pthread_once(&once, make_locale);
        char *copy = malloc(text->bytes + 1);
        if (copy == NULL || c_locale == (locale_t)0) {
            free(copy);
            return opscope_tensor_fail(OPSCOPE_ERROR_MEMORY, "out of memory");
        }
        bool is_number = copy_number(&scan, copy);
        number = is_number ? strtod_l(copy, NULL, c_locale) : 0;
        free(copy);
        if (!is_number) {
            return fail("could not convert string to float", text);
        }
    }
    *out = is_negative ? -number : number;
    return OPSCOPE_OK;
}
