/* model/graph/parse_type.c -- types, read from a graph's text. */
#include "model/document/build.h"
#include "model/graph/name.h"
#include "model/graph/parser.h"

/* The parts between brackets, on the stack of types. */
static bool parse_parts(struct opscope__graph_parser *parser)
{
    if (!opscope__graph_parser_need(parser, "[")) {
        return false;
    }
    if (opscope__graph_parser_take(parser, "]")) {
        return true;
    }
    do {
        const struct opscope__graph_type *part = opscope__graph_parse_type(parser);
        if (part == NULL || !opscope__graph_buffer_push(&parser->types, &part, sizeof part)) {
            return false;
        }
    } while (opscope__graph_parser_take(parser, ","));
    return opscope__graph_parser_take(parser, "]") ||
           opscope__graph_parser_wanted(parser, "',' or ']'");
}

static const struct opscope__graph_type *parse_compound(struct opscope__graph_parser *parser,
                                                        enum opscope__graph_type_kind kind,
                                                        const char *at)
{
    size_t base = parser->types.bytes;
    if (parser->level == OPSCOPE__GRAPH_TYPE_DEPTH_LIMIT) {
        opscope__graph_parser_fail(parser, at, "a type of more than %d levels",
                                   OPSCOPE__GRAPH_TYPE_DEPTH_LIMIT);
        return NULL;
    }
    parser->level++;
    if (!parse_parts(parser)) {
        return NULL;
    }
    parser->level--;
    size_t count = (parser->types.bytes - base) / sizeof(void *);
    if (kind != OPSCOPE__GRAPH_TUPLE && count != 1) {
        opscope__graph_parser_fail(parser, at, "a %s of %zu types, not of one",
                                   opscope__graph_type_kind_name(kind), count);
        return NULL;
    }
    parser->types.bytes = base;
    const struct opscope__graph_type *type = opscope__graph_type_of(
        parser->graph, kind,
        count > 0 ? (const struct opscope__graph_type **)(void *)(parser->types.at + base) : NULL,
        count);
    if (type == NULL) {
        opscope__graph_parser_place(parser, at);
    }
    return type;
}

const struct opscope__graph_type *opscope__graph_parse_type(struct opscope__graph_parser *parser)
{
    struct opscope__graph_word word = opscope__graph_parser_word(parser, false);
    if (word.bytes == 0) {
        opscope__graph_parser_wanted(parser, "a type");
        return NULL;
    }
    for (unsigned kind = 0; kind < OPSCOPE__GRAPH_CLASS; kind++) {
        if (opscope__graph_word_is(word, opscope__graph_type_kind_name(kind))) {
            return kind < OPSCOPE__GRAPH_SIMPLE_COUNT ? opscope__graph_simple_type(kind)
                                                      : parse_compound(parser, kind, word.at);
        }
    }
    if (!opscope__graph_is_dotted(word.at, word.bytes)) {
        opscope__graph_parser_fail(parser, word.at, "no type is named \"%s\"",
                                   opscope__printable(word.at, word.bytes).text);
        return NULL;
    }
    const struct opscope__graph_type *type =
        opscope__graph_class_type(parser->graph, word.at, word.bytes);
    if (type == NULL) {
        opscope__graph_parser_place(parser, word.at);
    }
    return type;
}
