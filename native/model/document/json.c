/* model/document/json.c -- JSON text as a document.
 *
 * A recursive descent, one level of C for each level of the text. The children of a container wait
 * on a stack until its closing bracket, so that it gets exactly the memory it needs.
 */
#include "model/document/json.h"

#include <string.h>

#include "model/document/json_text.h"
#include "model/document/stack.h"
#include "opscope/status.h"

struct parser {
    struct opscope__json_input input;
    struct opscope__stack stack;
    unsigned level; /* containers that are open */
};

static struct opscope__item *parse_value(struct parser *parser);

static struct opscope__item *fail(const struct parser *parser, const char *wanted)
{
    const struct opscope__json_input *input = &parser->input;
    size_t offset = opscope__json_offset(input);
    if (input->at == input->end) {
        opscope__document_fail(offset, "the text ends, where there should be %s", wanted);
    } else if (*input->at > ' ' && *input->at <= '~') {
        opscope__document_fail(offset, "'%c', where there should be %s", *input->at, wanted);
    } else {
        opscope__document_fail(offset, "byte 0x%02x, where there should be %s", *input->at, wanted);
    }
    return NULL;
}

static void skip_space(struct parser *parser)
{
    struct opscope__json_input *input = &parser->input;
    while (input->at < input->end &&
           (*input->at == ' ' || *input->at == '\t' || *input->at == '\n' || *input->at == '\r')) {
        input->at++;
    }
}

/* Skips white space, and the byte if it is next. */
static bool take(struct parser *parser, char byte)
{
    skip_space(parser);
    bool is_next = parser->input.at < parser->input.end && *parser->input.at == (uint8_t)byte;
    parser->input.at += is_next;
    return is_next;
}

static bool push(struct parser *parser, struct opscope__item *item)
{
    return item != NULL && opscope__stack_push(&parser->stack, item);
}

/* The name and the colon of a member. */
static bool parse_name(struct parser *parser)
{
    skip_space(parser);
    if (parser->input.at == parser->input.end || *parser->input.at != '"') {
        fail(parser, "a name in quotes");
        return false;
    }
    if (!push(parser, opscope__json_text(&parser->input))) {
        return false;
    }
    if (!take(parser, ':')) {
        fail(parser, "':'");
        return false;
    }
    return true;
}

/* Pushes what stands between the brackets, names and values in turn. */
static bool parse_members(struct parser *parser, bool has_names)
{
    char closing = has_names ? '}' : ']';
    parser->input.at++;
    if (take(parser, closing)) {
        return true;
    }
    do {
        if ((has_names && !parse_name(parser)) || !push(parser, parse_value(parser))) {
            return false;
        }
    } while (take(parser, ','));
    if (!take(parser, closing)) {
        fail(parser, has_names ? "',' or '}'" : "',' or ']'");
        return false;
    }
    return true;
}

static struct opscope__item *make_map(struct parser *parser, struct opscope__item *const *items,
                                      size_t count, size_t offset)
{
    struct opscope__document *document = parser->input.document;
    struct opscope__item *map = opscope__item_new(document, OPSCOPE__ITEM_MAP, offset);
    if (map == NULL || count == 0) {
        return map;
    }
    map->count = (uint32_t)(count / 2);
    map->as.pairs = opscope__document_memory(document, map->count * sizeof *map->as.pairs);
    if (map->as.pairs == NULL) {
        return NULL;
    }
    for (uint32_t i = 0; i < map->count; i++) {
        map->as.pairs[i] = (struct opscope__pair){items[2 * i], items[2 * i + 1]};
    }
    return map;
}

static struct opscope__item *parse_container(struct parser *parser)
{
    size_t offset = opscope__json_offset(&parser->input), base = parser->stack.count;
    bool has_names = *parser->input.at == '{';
    if (parser->level == OPSCOPE__DEPTH_LIMIT) {
        opscope__document_fail(offset, "more than %d levels", OPSCOPE__DEPTH_LIMIT);
        return NULL;
    }
    parser->level++;
    if (!parse_members(parser, has_names)) {
        return NULL;
    }
    parser->level--;
    size_t count = parser->stack.count - base;
    parser->stack.count = base;
    struct opscope__item *const *items = count > 0 ? parser->stack.items + base : NULL;
    return has_names ? make_map(parser, items, count, offset)
                     : opscope__item_new_items(parser->input.document, OPSCOPE__ITEM_LIST, items,
                                               count, offset);
}

static struct opscope__item *parse_word(struct parser *parser, const char *word,
                                        struct opscope__item *meaning)
{
    size_t bytes = strlen(word);
    if ((size_t)(parser->input.end - parser->input.at) < bytes ||
        memcmp(parser->input.at, word, bytes) != 0) {
        return fail(parser, "a value");
    }
    parser->input.at += bytes;
    return meaning;
}

static struct opscope__item *parse_value(struct parser *parser)
{
    skip_space(parser);
    if (parser->input.at == parser->input.end) {
        return fail(parser, "a value");
    }
    switch (*parser->input.at) {
    case '{':
    case '[':
        return parse_container(parser);
    case '"':
        return opscope__json_text(&parser->input);
    case 'n':
        return parse_word(parser, "null", &opscope__item_none);
    case 't':
        return parse_word(parser, "true", &opscope__item_true);
    case 'f':
        return parse_word(parser, "false", &opscope__item_false);
    default:
        if (*parser->input.at == '-' || (*parser->input.at >= '0' && *parser->input.at <= '9')) {
            return opscope__json_number(&parser->input);
        }
        return fail(parser, "a value");
    }
}

static int parse(struct parser *parser)
{
    struct opscope__item *root = parse_value(parser);
    if (root == NULL) {
        return opscope__document_failed();
    }
    skip_space(parser);
    if (parser->input.at != parser->input.end) {
        return opscope__document_fail(opscope__json_offset(&parser->input),
                                      "something behind the value");
    }
    return opscope__document_finish(parser->input.document, root,
                                    opscope__json_offset(&parser->input));
}

int opscope__json_parse(const void *bytes, size_t size, struct opscope__document **out)
{
    const uint8_t *start = size > 0 ? bytes : (const uint8_t *)"";
    struct opscope__document *document = opscope__document_new(size);
    if (document == NULL) {
        return opscope__document_failed();
    }
    struct parser parser = {.input = {document, start, start, start + size}};
    int status = parse(&parser);
    opscope__stack_free(&parser.stack);
    if (status < 0) {
        opscope__document_release(document);
        return status;
    }
    *out = document;
    return OPSCOPE_OK;
}
