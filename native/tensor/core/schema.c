/* tensor/core/schema.c -- parses an operator's schema: "sum(Tensor self, int[]? dim=None, *, dtype?
 * dtype=None) -> Tensor".
 *
 * Parses a copy of the text in place, so that names are pointers into the copy. Runs once for each
 * operator. Does not depend on Python.
 */
#include "tensor/core/schema.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    enum opscope__type type;
} TYPES[] = {
    {"Tensor[]", OPSCOPE__TYPE_TENSORS},
    {"Tensor", OPSCOPE__TYPE_TENSOR},
    {"int[]", OPSCOPE__TYPE_INTS},
    {"int", OPSCOPE__TYPE_INT},
    {"int|int[]", OPSCOPE__TYPE_INT_OR_INTS},
    {"float", OPSCOPE__TYPE_FLOAT},
    {"bool", OPSCOPE__TYPE_BOOL},
    {"Scalar", OPSCOPE__TYPE_SCALAR},
    {"dtype", OPSCOPE__TYPE_DTYPE},
    {"str", OPSCOPE__TYPE_TEXT},
};

static char *skip_blanks(char *text)
{
    return text + strspn(text, " \n\t");
}

/* Removes trailing blanks. */
static void trim_end(char *text)
{
    size_t length = strlen(text);
    while (length > 0 && strchr(" \n\t", text[length - 1])) {
        text[--length] = '\0';
    }
}

/* The next part of a comma-separated list; commas within brackets or quotes do not separate. */
static char *next_piece(char **rest)
{
    char *piece = skip_blanks(*rest);
    if (*piece == '\0') {
        return NULL;
    }
    int depth = 0;
    char quote = '\0';
    char *end = piece;
    for (; *end != '\0' && !(*end == ',' && depth == 0 && quote == '\0'); end++) {
        if (quote != '\0') {
            quote = *end == quote ? '\0' : quote;
        } else if (*end == '\'' || *end == '"') {
            quote = *end;
        } else {
            depth += (*end == '[' || *end == '(') - (*end == ']' || *end == ')');
        }
    }
    *rest = *end == '\0' ? end : end + 1;
    *end = '\0';
    trim_end(piece);
    return piece;
}

static int parse_type(char *text, struct opscope__parameter *parameter)
{
    size_t length = strlen(text);
    if (length > 0 && text[length - 1] == '?') {
        parameter->optional = true;
        text[--length] = '\0';
    }
    if (strncmp(text, "int[", 4) == 0 && length > 5) { /* int[2] */
        long count = strtol(text + 4, NULL, 10);
        if (count < 1 || count > 8) {
            return OPSCOPE_ERR_INVALID;
        }
        parameter->length = (uint8_t)count;
        parameter->type = OPSCOPE__TYPE_INTS;
        return OPSCOPE_OK;
    }
    for (size_t i = 0; i < sizeof TYPES / sizeof *TYPES; i++) {
        if (strcmp(text, TYPES[i].name) == 0) {
            parameter->type = TYPES[i].type;
            return OPSCOPE_OK;
        }
    }
    return OPSCOPE_ERR_INVALID;
}

static int add_integer(struct opscope__schema *schema, const char *text)
{
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (end == text || *end != '\0' || errno != 0) {
        return OPSCOPE_ERR_INVALID;
    }
    if (schema->integer_count == sizeof schema->integers / sizeof *schema->integers) {
        return OPSCOPE_ERR_FULL;
    }
    schema->integers[schema->integer_count++] = value;
    return OPSCOPE_OK;
}

/* "[0, 1]", or "1" for int[N]. */
static int parse_integers(struct opscope__schema *schema, char *text,
                          const struct opscope__parameter *parameter, opscope_argument *out)
{
    size_t first = schema->integer_count;
    size_t length = strlen(text);
    if (text[0] == '[' && text[length - 1] == ']') {
        text[length - 1] = '\0';
        char *rest = text + 1;
        for (char *piece = next_piece(&rest); piece; piece = next_piece(&rest)) {
            int status = add_integer(schema, piece);
            if (status != OPSCOPE_OK) {
                return status;
            }
        }
    } else {
        for (int i = 0; i < (parameter->length ? parameter->length : 1); i++) {
            int status = add_integer(schema, text);
            if (status != OPSCOPE_OK) {
                return status;
            }
        }
    }
    out->kind = OPSCOPE_ARGUMENT_INTS;
    out->count = (uint32_t)(schema->integer_count - first);
    out->as.integers = schema->integers + first;
    return OPSCOPE_OK;
}

static int parse_number(const char *text, bool may_be_integer, opscope_argument *out)
{
    char *end;
    errno = 0;
    long long integer = strtoll(text, &end, 10);
    if (may_be_integer && end != text && *end == '\0' && errno == 0) {
        *out = (opscope_argument){.kind = OPSCOPE_ARGUMENT_INT, .as.integer = integer};
        return OPSCOPE_OK;
    }
    errno = 0;
    double real = strtod(text, &end);
    if (end == text || *end != '\0' || errno != 0) {
        return OPSCOPE_ERR_INVALID;
    }
    *out = (opscope_argument){.kind = OPSCOPE_ARGUMENT_FLOAT, .as.real = real};
    return OPSCOPE_OK;
}

static int parse_dtype(const char *text, opscope_argument *out)
{
    for (int i = 0; i < OPSCOPE_DTYPE_COUNT; i++) {
        if (strcmp(text, opscope_dtype_name((opscope_dtype)i)) == 0) {
            *out = (opscope_argument){.kind = OPSCOPE_ARGUMENT_INT, .as.integer = i};
            return OPSCOPE_OK;
        }
    }
    return OPSCOPE_ERR_INVALID;
}

static int parse_text(char *text, opscope_argument *out)
{
    size_t length = strlen(text);
    if (length < 2 || !strchr("'\"", text[0]) || text[length - 1] != text[0]) {
        return OPSCOPE_ERR_INVALID;
    }
    text[length - 1] = '\0';
    *out = (opscope_argument){.kind = OPSCOPE_ARGUMENT_TEXT, .as.text = text + 1};
    return OPSCOPE_OK;
}

static int parse_default(struct opscope__schema *schema, char *text,
                         struct opscope__parameter *parameter)
{
    opscope_argument *out = &parameter->otherwise;
    parameter->has_default = true;
    if (strcmp(text, "None") == 0) {
        *out = (opscope_argument){.kind = OPSCOPE_ARGUMENT_NONE};
        return parameter->optional ? OPSCOPE_OK : OPSCOPE_ERR_INVALID;
    }
    if (strcmp(text, "True") == 0 || strcmp(text, "False") == 0) {
        *out = (opscope_argument){.kind = OPSCOPE_ARGUMENT_INT, .as.integer = text[0] == 'T'};
        return parameter->type == OPSCOPE__TYPE_BOOL ? OPSCOPE_OK : OPSCOPE_ERR_INVALID;
    }
    switch (parameter->type) {
    case OPSCOPE__TYPE_INT:
    case OPSCOPE__TYPE_SCALAR:
    case OPSCOPE__TYPE_TENSOR:
        return parse_number(text, true, out);
    case OPSCOPE__TYPE_FLOAT:
        return parse_number(text, false, out);
    case OPSCOPE__TYPE_INTS:
        return parse_integers(schema, text, parameter, out);
    case OPSCOPE__TYPE_DTYPE:
        return parse_dtype(text, out);
    case OPSCOPE__TYPE_TEXT:
        return parse_text(text, out);
    default:
        return OPSCOPE_ERR_INVALID;
    }
}

/* "int[] dim=[0]" */
static int parse_parameter(struct opscope__schema *schema, char *text, bool keyword_only)
{
    if (schema->count == OPSCOPE_ARGUMENT_LIMIT) {
        return OPSCOPE_ERR_FULL;
    }
    struct opscope__parameter *parameter = &schema->parameters[schema->count];
    *parameter = (struct opscope__parameter){.keyword_only = keyword_only};
    char *name = strchr(text, ' ');
    if (!name) {
        return OPSCOPE_ERR_INVALID;
    }
    *name++ = '\0';
    name = skip_blanks(name);
    parameter->name = name;
    int status = parse_type(text, parameter);
    char *otherwise = strchr(name, '=');
    if (status == OPSCOPE_OK && otherwise) {
        *otherwise++ = '\0';
        trim_end(name);
        status = parse_default(schema, skip_blanks(otherwise), parameter);
    }
    if (status == OPSCOPE_OK && *name == '\0') {
        status = OPSCOPE_ERR_INVALID;
    }
    schema->count += status == OPSCOPE_OK;
    schema->positional_count += status == OPSCOPE_OK && !keyword_only;
    return status;
}

static int parse_parameters(struct opscope__schema *schema, char *text)
{
    bool keyword_only = false;
    for (char *piece = next_piece(&text); piece; piece = next_piece(&text)) {
        if (strcmp(piece, "*") == 0) {
            keyword_only = true;
            continue;
        }
        int status = parse_parameter(schema, piece, keyword_only);
        if (status != OPSCOPE_OK) {
            return status;
        }
    }
    return OPSCOPE_OK;
}

/* "Tensor", "Tensor[]" or "(Tensor values, Tensor indices)". */
static int parse_outputs(struct opscope__schema *schema, char *text)
{
    trim_end(text);
    size_t length = strlen(text);
    if (strcmp(text, "Tensor") == 0 || strcmp(text, "Tensor[]") == 0) {
        schema->output_is_list = length > strlen("Tensor");
        schema->output_names[0] = "";
        schema->output_count = schema->output_is_list ? 0 : 1;
        return OPSCOPE_OK;
    }
    if (length < 2 || text[0] != '(' || text[length - 1] != ')') {
        return OPSCOPE_ERR_INVALID;
    }
    text[length - 1] = '\0';
    text++;
    for (char *piece = next_piece(&text); piece; piece = next_piece(&text)) {
        if (strncmp(piece, "Tensor", 6) != 0 || (piece[6] != ' ' && piece[6] != '\0')) {
            return OPSCOPE_ERR_INVALID;
        }
        if (schema->output_count == OPSCOPE_OUTPUT_LIMIT) {
            return OPSCOPE_ERR_FULL;
        }
        schema->output_names[schema->output_count++] = skip_blanks(piece + 6);
    }
    return schema->output_count ? OPSCOPE_OK : OPSCOPE_ERR_INVALID;
}

int opscope__schema_parse(const char *text, struct opscope__schema *out)
{
    char *copy = strdup(text);
    if (!copy) {
        return OPSCOPE_ERR_NO_MEMORY;
    }
    *out = (struct opscope__schema){.text = copy};
    int status = OPSCOPE_ERR_INVALID;
    char *name = skip_blanks(copy);
    char *open = strchr(name, '(');
    char *arrow = strstr(name, "->");
    if (!open || !arrow || arrow < open) {
        goto failed;
    }
    char *close = arrow;
    while (close > open && *close != ')') {
        close--;
    }
    if (close == open) {
        goto failed;
    }
    *open = *close = '\0';
    out->name = name;
    status = parse_parameters(out, open + 1);
    if (status == OPSCOPE_OK) {
        status = parse_outputs(out, skip_blanks(arrow + 2));
    }
    if (status == OPSCOPE_OK) {
        return OPSCOPE_OK;
    }
failed:
    free(copy);
    *out = (struct opscope__schema){0};
    return status;
}
