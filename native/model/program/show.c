/* model/program/show.c -- values as Python shows them. */
#include "model/program/show.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Above a power of two, numbers are twice as far apart as below: there the digits next above may be
 * read back as the number although the nearest ones are not. */
static bool is_read_back(char *text, double real)
{
    if (strtod(text, NULL) == real) {
        return true;
    }
    char *last = strchr(text, 'e') - 1;
    if (*last < '0' || *last >= '9') {
        return false;
    }
    ++*last;
    if (strtod(text, NULL) == real) {
        return true;
    }
    --*last;
    return false;
}

/* The fewest digits that are read back as the same number, and the power of ten of the first. */
static int digits_of(double real, char digits[static 20])
{
    char text[40];
    int count = 1;
    do {
        snprintf(text, sizeof text, "%.*e", count - 1, real);
    } while (!is_read_back(text, real) && ++count <= 17);
    /* Between the first digit and the rest stands the locale's decimal point. */
    size_t length = 0;
    const char *end = strchr(text, 'e');
    for (const char *at = text; at < end; at++) {
        if (*at >= '0' && *at <= '9') {
            digits[length++] = *at;
        }
    }
    digits[length] = '\0';
    return (int)strtol(end + 1, NULL, 10);
}

static void show_float(double real, char *out)
{
    char digits[20];
    if (!isfinite(real)) {
        strcpy(out, isnan(real) ? "nan" : real > 0 ? "inf" : "-inf");
        return;
    }
    const char *sign = signbit(real) ? "-" : "";
    int power = digits_of(fabs(real), digits), count = (int)strlen(digits);
    if (power < -4 || power >= 16) {
        snprintf(out, OPSCOPE__SHOWN_BYTES, "%s%c%s%se%c%02d", sign, digits[0],
                 count > 1 ? "." : "", digits + 1, power < 0 ? '-' : '+', abs(power));
    } else if (power < 0) {
        snprintf(out, OPSCOPE__SHOWN_BYTES, "%s0.%.*s%s", sign, -1 - power, "000", digits);
    } else if (count <= power + 1) {
        snprintf(out, OPSCOPE__SHOWN_BYTES, "%s%s%.*s.0", sign, digits, power + 1 - count,
                 "0000000000000000");
    } else {
        snprintf(out, OPSCOPE__SHOWN_BYTES, "%s%.*s.%s", sign, power + 1, digits,
                 digits + power + 1);
    }
}

void opscope__show_number(const struct opscope__value *value, char *out)
{
    switch ((enum opscope__value_kind)value->kind) {
    case OPSCOPE__VALUE_BOOL:
        strcpy(out, value->as.integer != 0 ? "True" : "False");
        break;
    case OPSCOPE__VALUE_INT:
        snprintf(out, OPSCOPE__SHOWN_BYTES, "%" PRId64, value->as.integer);
        break;
    case OPSCOPE__VALUE_FLOAT:
        show_float(value->as.real, out);
        break;
    case OPSCOPE__VALUE_DTYPE:
        strcpy(out, opscope_dtype_name((opscope_dtype)value->as.integer));
        break;
    default:
        strcpy(out, "None");
    }
}

static void show_tensor(FILE *file, const opscope_tensor *tensor)
{
    fprintf(file, "Tensor(%s, [", opscope_dtype_name(opscope_tensor_dtype(tensor)));
    for (int i = 0; i < opscope_tensor_dims(tensor); i++) {
        fprintf(file, "%s%" PRId64, i > 0 ? ", " : "", opscope_tensor_sizes(tensor)[i]);
    }
    fputs("])", file);
}

static void show_value(FILE *file, const struct opscope__value *value, bool in_container);

static void show_items(FILE *file, const struct opscope__sequence *sequence, bool is_tuple)
{
    fputc(is_tuple ? '(' : '[', file);
    for (size_t i = 0; i < sequence->count; i++) {
        fputs(i > 0 ? ", " : "", file);
        show_value(file, &sequence->items[i], true);
    }
    fputs(is_tuple && sequence->count == 1 ? ",)" : is_tuple ? ")" : "]", file);
}

static void show_value(FILE *file, const struct opscope__value *value, bool in_container)
{
    char shown[OPSCOPE__SHOWN_BYTES];
    switch ((enum opscope__value_kind)value->kind) {
    case OPSCOPE__VALUE_TENSOR:
        show_tensor(file, value->as.tensor);
        break;
    case OPSCOPE__VALUE_TEXT:
        fprintf(file, in_container ? "'%s'" : "%s", value->as.text->at);
        break;
    case OPSCOPE__VALUE_LIST:
    case OPSCOPE__VALUE_TUPLE:
        show_items(file, value->as.sequence, value->kind == OPSCOPE__VALUE_TUPLE);
        break;
    case OPSCOPE__VALUE_FUTURE:
        fputs("Future", file);
        break;
    default:
        opscope__show_number(value, shown);
        fputs(shown, file);
    }
}

void opscope__show_line(FILE *file, const struct opscope__value *values, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        fputs(i > 0 ? " " : "", file);
        show_value(file, &values[i], false);
    }
    fputc('\n', file);
}
