/* model/graph/scan.c -- the tokens of a graph's text, and failures that name a place in it. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/graph/name.h"
#include "model/graph/parser.h"
#include "opscope/tensor.h"

bool opscope__graph_parser_fail(const struct opscope__graph_parser *parser, const char *at,
                                const char *format, ...)
{
    char text[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    size_t line = 1;
    const char *line_start = parser->start;
    for (const char *byte = parser->start; byte < at; byte++) {
        if (*byte == '\n') {
            line++;
            line_start = byte + 1;
        }
    }
    opscope_tensor_fail(OPSCOPE_ERROR_VALUE, "line %zu, column %zu: %s", line,
                        (size_t)(at - line_start) + 1, text);
    return false;
}

bool opscope__graph_parser_place(const struct opscope__graph_parser *parser, const char *at)
{
    static const char byte[] = "byte ";
    if (opscope_tensor_error_kind() == OPSCOPE_ERROR_MEMORY) {
        return false;
    }
    const char *reason = opscope_tensor_error(), *colon = strstr(reason, ": ");
    if (strncmp(reason, byte, sizeof byte - 1) == 0 && colon != NULL) {
        at = parser->start + strtoull(reason + sizeof byte - 1, NULL, 10);
        reason = colon + 2;
    }
    return opscope__graph_parser_fail(parser, at, "%s", reason);
}

bool opscope__graph_parser_wanted(const struct opscope__graph_parser *parser, const char *wanted)
{
    if (parser->at == parser->end) {
        return opscope__graph_parser_fail(parser, parser->at,
                                          "the text ends, where there should be %s", wanted);
    }
    unsigned byte = (uint8_t)*parser->at;
    if (byte > ' ' && byte <= '~') {
        return opscope__graph_parser_fail(parser, parser->at, "'%c', where there should be %s",
                                          (char)byte, wanted);
    }
    return opscope__graph_parser_fail(parser, parser->at, "byte 0x%02x, where there should be %s",
                                      byte, wanted);
}

void opscope__graph_parser_skip(struct opscope__graph_parser *parser)
{
    bool in_comment = false;
    for (; parser->at < parser->end; parser->at++) {
        char byte = *parser->at;
        in_comment = byte != '\n' && (in_comment || byte == '#');
        if (!in_comment && byte != ' ' && byte != '\t' && byte != '\n' && byte != '\r') {
            return;
        }
    }
}

bool opscope__graph_parser_take(struct opscope__graph_parser *parser, const char *token)
{
    size_t bytes = strlen(token);
    opscope__graph_parser_skip(parser);
    bool is_next =
        (size_t)(parser->end - parser->at) >= bytes && memcmp(parser->at, token, bytes) == 0;
    parser->at += is_next ? bytes : 0;
    return is_next;
}

bool opscope__graph_parser_need(struct opscope__graph_parser *parser, const char *token)
{
    char wanted[20];
    if (opscope__graph_parser_take(parser, token)) {
        return true;
    }
    snprintf(wanted, sizeof wanted, "'%s'", token);
    return opscope__graph_parser_wanted(parser, wanted);
}

struct opscope__graph_word opscope__graph_parser_peek(struct opscope__graph_parser *parser,
                                                      bool colons)
{
    opscope__graph_parser_skip(parser);
    struct opscope__graph_word word = {parser->at, 0};
    size_t left = (size_t)(parser->end - parser->at);
    while (word.bytes < left) {
        char byte = word.at[word.bytes];
        if (!opscope__graph_is_letter(byte) && !opscope__graph_is_digit(byte) && byte != '.' &&
            !(colons && byte == ':')) {
            break;
        }
        word.bytes++;
    }
    return word;
}

struct opscope__graph_word opscope__graph_parser_word(struct opscope__graph_parser *parser,
                                                      bool colons)
{
    struct opscope__graph_word word = opscope__graph_parser_peek(parser, colons);
    parser->at += word.bytes;
    return word;
}

bool opscope__graph_word_is(struct opscope__graph_word word, const char *text)
{
    return word.bytes == strlen(text) && memcmp(word.at, text, word.bytes) == 0;
}
