/* tests/native/model/test_json.c -- what JSON becomes. */
#include <locale.h>

#include "json_texts.h"

static void is_text(const char *json, const char *wanted, size_t bytes)
{
    struct opscope__document *document = parse(json);
    const struct opscope__item *root = opscope__document_root(document);
    CHECK_EQUAL(root->kind, OPSCOPE__ITEM_TEXT);
    CHECK_EQUAL(root->count, bytes);
    CHECK(memcmp(root->as.text, wanted, bytes + 1) == 0);
    opscope__document_release(document);
}

static void is_int(const char *json, int64_t wanted)
{
    struct opscope__document *document = parse(json);
    const struct opscope__item *root = opscope__document_root(document);
    CHECK_EQUAL(root->kind, OPSCOPE__ITEM_INT);
    CHECK_EQUAL(root->as.integer, wanted);
    opscope__document_release(document);
}

static void is_float(const char *json, double wanted)
{
    struct opscope__document *document = parse(json);
    const struct opscope__item *root = opscope__document_root(document);
    CHECK_EQUAL(root->kind, OPSCOPE__ITEM_FLOAT);
    CHECK(memcmp(&root->as.real, &wanted, sizeof wanted) == 0);
    opscope__document_release(document);
}

/* ---- what values become ---------------------------------------------------------------------- */

static void values_of_every_kind_become_items_in_order(void)
{
    struct opscope__document *document =
        parse(" { \"b\" : [ null , true,false ,[],{}] ,\r\n\t\"a\":-1.5e1,\"\":\"x\" } ");
    char *text = tree_text(document);
    CHECK_TEXT(text, "map 3\n"
                     "  text 62\n"
                     "  list 5\n"
                     "    none\n"
                     "    bool 1\n"
                     "    bool 0\n"
                     "    list 0\n"
                     "    map 0\n"
                     "  text 61\n"
                     "  float -15\n"
                     "  text \n"
                     "  text 78\n");
    free(text);
    opscope__document_release(document);
}

static void an_item_says_where_it_begins(void)
{
    struct opscope__document *document = parse("[1, [\"a\", {\"k\": 2.5}]]");
    const struct opscope__item *root = opscope__document_root(document);
    const struct opscope__item *inner = root->as.items[1];
    CHECK_EQUAL(root->as.items[0]->offset, 1);
    CHECK_EQUAL(inner->offset, 4);
    CHECK_EQUAL(inner->as.items[0]->offset, 5);
    CHECK_EQUAL(inner->as.items[1]->offset, 10);
    CHECK_EQUAL(opscope__item_find(inner->as.items[1], "k")->offset, 16);
    opscope__document_release(document);
}

static void integers_that_fit_64_bits_are_int(void)
{
    is_int("0", 0);
    is_int("-0", 0);
    is_int("9223372036854775807", INT64_MAX);
    is_int("-9223372036854775808", INT64_MIN);
    is_float("9223372036854775808", 0x1p63);
    is_float("-9223372036854775809", -0x1p63);
    is_float("123456789012345678901234567890", 123456789012345678901234567890.0);
}

static void other_numbers_are_float(void)
{
    is_float("0.0", 0.0);
    is_float("-0.0", -0.0);
    is_float("1e2", 100.0);
    is_float("1E+2", 100.0);
    is_float("25e-1", 2.5);
    is_float("0.1", 0.1);
    is_float("1.7976931348623157e308", 1.7976931348623157e308);
    is_float("5e-324", 0x1p-1074);
    is_float("1e-400", 0.0);
}

/* Where the machine has one of these locales: "1,5" is a number there, and "1.5" is not. */
static void the_locale_of_the_program_changes_no_number(void)
{
    static const char *const names[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE.utf8", "fr_FR.utf8"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        (void)setlocale(LC_NUMERIC, names[i]);
    }
    is_float("1.5", 1.5);
    (void)setlocale(LC_NUMERIC, "C");
}

static void escapes_and_utf8_become_utf8(void)
{
    is_text("\"\"", "", 0);
    is_text("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t", 8);
    is_text("\"\\u0041\\u00e9\\u20AC\"", "A\xC3\xA9\xE2\x82\xAC", 6);
    is_text("\"\\ud83d\\uDE00\"", "\xF0\x9F\x98\x80", 4);
    is_text("\"\\udbff\\udfff\"", "\xF4\x8F\xBF\xBF", 4);
    is_text("\"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\x7F\"",
            "\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\x7F", 10);
    is_text("\"a\\u0000b\"", "a\0b", 3);
}

static void a_key_is_found_among_many(void)
{
    enum { COUNT = 10000 };
    char *json = malloc(COUNT * 32), *at = json, name[32];
    CHECK(json != NULL);
    *at++ = '{';
    for (int i = 0; i < COUNT; i++) {
        at += sprintf(at, "%s\"layer.%d.weight\":%d", i > 0 ? "," : "", i, i);
    }
    sprintf(at, "}");
    struct opscope__document *document = parse(json);
    const struct opscope__item *root = opscope__document_root(document);
    CHECK_EQUAL(root->count, COUNT);
    for (int i = 0; i < COUNT; i++) {
        sprintf(name, "layer.%d.weight", i);
        CHECK_EQUAL(opscope__item_find(root, name)->as.integer, i);
        CHECK_TEXT(root->as.pairs[i].key->as.text, name);
    }
    CHECK(opscope__item_find(root, "layer.1.bias") == NULL);
    CHECK(opscope__item_find(root, "") == NULL);
    CHECK(opscope__item_find(root->as.pairs[0].value, "layer.0.weight") == NULL);
    opscope__document_release(document);
    free(json);
}

int main(void)
{
    RUN(values_of_every_kind_become_items_in_order);
    RUN(an_item_says_where_it_begins);
    RUN(integers_that_fit_64_bits_are_int);
    RUN(other_numbers_are_float);
    RUN(the_locale_of_the_program_changes_no_number);
    RUN(escapes_and_utf8_become_utf8);
    RUN(a_key_is_found_among_many);
    return 0;
}
