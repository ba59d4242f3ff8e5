/* model/graph/parse_constant.c -- constants, read from a graph's text.
 *
 * Numbers and strings are those of JSON, read by its functions.
 */
#include <math.h>
#include <string.h>

#include "model/document/json_text.h"
#include "model/graph/parser.h"

/* The place of a failure is that of the text as a whole. */
static bool parse_json(struct opscope__graph_parser *parser, struct opscope__graph_constant *out)
{
    const char *at = parser->at;
    struct opscope__document *document =
        opscope__document_new((size_t)(parser->end - parser->start));
    if (document == NULL) {
        return false;
    }
    struct opscope__json_input input = {document, (const uint8_t *)parser->start,
                                        (const uint8_t *)parser->at, (const uint8_t *)parser->end};
    const struct opscope__item *item =
        *at == '"' ? opscope__json_text(&input) : opscope__json_number(&input);
    const char *behind = (const char *)input.at;
    bool done = item != NULL;
    if (done && item->kind == OPSCOPE__ITEM_TEXT) {
        done = opscope__graph_string(parser->graph, item->as.text, item->count, out) == 0;
    } else if (done && item->kind == OPSCOPE__ITEM_INT) {
        *out = (struct opscope__graph_constant){.kind = OPSCOPE__GRAPH_CONSTANT_INT,
                                                .as.integer = item->as.integer};
    } else if (done) {
        *out = (struct opscope__graph_constant){.kind = OPSCOPE__GRAPH_CONSTANT_FLOAT,
                                                .as.real = item->as.real};
    }
    opscope__document_release(document);
    if (!done) {
        return opscope__graph_parser_place(parser, at);
    }
    parser->at = behind;
    size_t written = (size_t)(behind - at);
    if (out->kind == OPSCOPE__GRAPH_CONSTANT_FLOAT && memchr(at, '.', written) == NULL &&
        memchr(at, 'e', written) == NULL && memchr(at, 'E', written) == NULL) {
        return opscope__graph_parser_fail(parser, at, "an integer that does not fit 64 bits");
    }
    return true;
}

static bool parse_items(struct opscope__graph_parser *parser)
{
    if (opscope__graph_parser_take(parser, "]")) {
        return true;
    }
    do {
        struct opscope__graph_constant item;
        if (!opscope__graph_parse_constant(parser, &item) ||
            !opscope__graph_buffer_push(&parser->constants, &item, sizeof item)) {
            return false;
        }
    } while (opscope__graph_parser_take(parser, ","));
    return opscope__graph_parser_take(parser, "]") ||
           opscope__graph_parser_wanted(parser, "',' or ']'");
}

static bool parse_list(struct opscope__graph_parser *parser, const char *at,
                       struct opscope__graph_constant *out)
{
    size_t base = parser->constants.bytes;
    if (parser->level == OPSCOPE__GRAPH_CONSTANT_DEPTH_LIMIT) {
        return opscope__graph_parser_fail(parser, at, "a list of more than %d levels",
                                          OPSCOPE__GRAPH_CONSTANT_DEPTH_LIMIT);
    }
    parser->level++;
    if (!parse_items(parser)) {
        return false;
    }
    parser->level--;
    size_t count = (parser->constants.bytes - base) / sizeof *out;
    parser->constants.bytes = base;
    const struct opscope__graph_constant *items =
        count > 0 ? (const struct opscope__graph_constant *)(void *)(parser->constants.at + base)
                  : NULL;
    return opscope__graph_list(parser->graph, items, count, out) == 0 ||
           opscope__graph_parser_place(parser, at);
}

static bool parse_word(struct opscope__graph_parser *parser, struct opscope__graph_constant *out)
{
    static const struct {
        const char *text;
        struct opscope__graph_constant meaning;
    } words[] = {
        {"None", {.kind = OPSCOPE__GRAPH_CONSTANT_NONE}},
        {"True", {.kind = OPSCOPE__GRAPH_CONSTANT_BOOL, .as.boolean = true}},
        {"False", {.kind = OPSCOPE__GRAPH_CONSTANT_BOOL, .as.boolean = false}},
        {"inf", {.kind = OPSCOPE__GRAPH_CONSTANT_FLOAT, .as.real = INFINITY}},
        {"nan", {.kind = OPSCOPE__GRAPH_CONSTANT_FLOAT, .as.real = NAN}},
    };
    struct opscope__graph_word word = opscope__graph_parser_peek(parser, false);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (opscope__graph_word_is(word, words[i].text)) {
            *out = words[i].meaning;
            parser->at += word.bytes;
            return true;
        }
    }
    return opscope__graph_parser_wanted(parser, "a constant");
}

bool opscope__graph_parse_constant(struct opscope__graph_parser *parser,
                                   struct opscope__graph_constant *out)
{
    opscope__graph_parser_skip(parser);
    const char *at = parser->at;
    char byte = at < parser->end ? *at : '\0';
    if (opscope__graph_parser_take(parser, "[")) {
        return parse_list(parser, at, out);
    }
    if (opscope__graph_parser_take(parser, "-inf")) {
        *out = (struct opscope__graph_constant){.kind = OPSCOPE__GRAPH_CONSTANT_FLOAT,
                                                .as.real = -INFINITY};
        return true;
    }
    return byte == '"' || byte == '-' || (byte >= '0' && byte <= '9') ? parse_json(parser, out)
                                                                      : parse_word(parser, out);
}
