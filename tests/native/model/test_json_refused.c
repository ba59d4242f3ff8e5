/* tests/native/model/test_json_refused.c -- which texts are no JSON that is read, and the reasons.
 */
#include "json_texts.h"

static void texts_that_end_too_early_are_refused(void)
{
    refuse("", "byte 0: the text ends, where there should be a value");
    refuse(" ", "byte 1: the text ends, where there should be a value");
    refuse("[", "byte 1: the text ends, where there should be a value");
    refuse("[1", "byte 2: the text ends, where there should be ',' or ']'");
    refuse("{", "byte 1: the text ends, where there should be a name in quotes");
    refuse("{\"a\"", "byte 4: the text ends, where there should be ':'");
    refuse("{\"a\":", "byte 5: the text ends, where there should be a value");
    refuse("{\"a\":1", "byte 6: the text ends, where there should be ',' or '}'");
    refuse("\"a", "byte 0: a text without an end");
    refuse("\"a\\", "byte 0: a text without an end");
    refuse("\"a\\\"", "byte 0: a text without an end");
    refuse("tru", "byte 0: 't', where there should be a value");
    refuse("-", "byte 0: not a number as JSON writes it");
}

static void what_only_resembles_json_is_refused(void)
{
    refuse("[1,]", "byte 3: ']', where there should be a value");
    refuse("[1 2]", "byte 3: '2', where there should be ',' or ']'");
    refuse("{\"a\":1,}", "byte 7: '}', where there should be a name in quotes");
    refuse("{a:1}", "byte 1: 'a', where there should be a name in quotes");
    refuse("{\"a\" 1}", "byte 5: '1', where there should be ':'");
    refuse("[1}", "byte 2: '}', where there should be ',' or ']'");
    refuse("'a'", "byte 0: ''', where there should be a value");
    refuse("NaN", "byte 0: 'N', where there should be a value");
    refuse("nul", "byte 0: 'n', where there should be a value");
    refuse("1 /* no */", "byte 2: something behind the value");
    refuse("{} {}", "byte 3: something behind the value");
    refuse_bytes("1\0", 2, "byte 1: something behind the value");
    refuse("\xEF\xBB\xBF{}", "byte 0: byte 0xef, where there should be a value");
    refuse("\v1", "byte 0: byte 0x0b, where there should be a value");
}

static void numbers_that_json_does_not_have_are_refused(void)
{
    static const char *const wrong[] = {"01", "-01", "00", "1.", "-.5", "1e", "1e+", "1.e1", "-a"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        refuse(wrong[i], "byte 0: not a number as JSON writes it");
    }
    refuse("+1", "byte 0: '+', where there should be a value");
    refuse(".5", "byte 0: '.', where there should be a value");
    refuse("0x1", "byte 1: something behind the value");
    refuse("[1e309]", "byte 1: a number too large for a double");
    refuse("-1e400", "byte 0: a number too large for a double");
    char digits[1300];
    memset(digits, '1', sizeof digits);
    refuse_bytes(digits, sizeof digits, "byte 0: a number of more than 1200 digits");
}

static void texts_that_are_no_text_are_refused(void)
{
    refuse("\"a\nb\"", "byte 2: a control character in a text");
    refuse("\"\\x41\"", "byte 1: an escape that JSON does not have");
    refuse_bytes("\"\\\0\"", 4, "byte 1: an escape that JSON does not have");
    refuse("\"\\u12\"", "byte 1: \\u without four hexadecimal digits");
    refuse("\"\\u12g4\"", "byte 1: \\u without four hexadecimal digits");
    refuse("\"\\ud800\"", "byte 1: half of a surrogate pair");
    refuse("\"\\udc00\\ud800\"", "byte 1: half of a surrogate pair");
    refuse("\"\\ud800\\u0041\"", "byte 1: half of a surrogate pair");
    refuse("\"\\ud800\\ue000\"", "byte 1: half of a surrogate pair");
    refuse("\"\\ud800x\"", "byte 1: half of a surrogate pair");
}

static void bytes_that_are_no_utf8_are_refused(void)
{
    static const char *const wrong[] = {"\x80",
                                        "\xC0\xAF",
                                        "\xC1\xBF",
                                        "\xC3",
                                        "\xC3\x28",
                                        "\xE0\x9F\xBF",
                                        "\xE2\x82",
                                        "\xED\xA0\x80",
                                        "\xED\xBF\xBF",
                                        "\xF0\x8F\xBF\xBF",
                                        "\xF4\x90\x80\x80",
                                        "\xF5\x80\x80\x80",
                                        "\xF0\x9F\x98",
                                        "\xFE",
                                        "\xFF"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char json[16];
        sprintf(json, "\"a%s\"", wrong[i]);
        refuse(json, "byte 2: not UTF-8");
    }
}

static void a_name_twice_in_one_object_is_refused(void)
{
    refuse("{\"a\":1,\"b\":2,\"a\":3}", "byte 13: key \"a\" a second time");
    refuse("[{\"\\u0061\":1,\"a\":2}]", "byte 13: key \"a\" a second time");
    refuse("{\"\":1,\"\":2}", "byte 6: key \"\" a second time");
    opscope__document_release(parse("[{\"a\":{\"a\":1}},{\"a\":2}]"));
}

static void depth_is_limited(void)
{
    char json[2 * (OPSCOPE__DEPTH_LIMIT + 1) + 1];
    for (int depth = OPSCOPE__DEPTH_LIMIT; depth <= OPSCOPE__DEPTH_LIMIT + 1; depth++) {
        memset(json, '[', (size_t)depth);
        memset(json + depth, ']', (size_t)depth);
        json[2 * depth] = '\0';
        if (depth == OPSCOPE__DEPTH_LIMIT) {
            opscope__document_release(parse(json));
        }
    }
    refuse(json, "byte 200: more than 200 levels");
    /* A value in the innermost one is a level too. */
    memset(json, '[', OPSCOPE__DEPTH_LIMIT);
    sprintf(json + OPSCOPE__DEPTH_LIMIT, "1");
    memset(json + OPSCOPE__DEPTH_LIMIT + 1, ']', OPSCOPE__DEPTH_LIMIT);
    refuse_bytes(json, 2 * OPSCOPE__DEPTH_LIMIT + 1, "byte 200: more than 200 levels");
}

static void very_deep_texts_need_no_stack(void)
{
    enum { DEPTH = 1000000 };
    char *json = malloc(DEPTH);
    CHECK(json != NULL);
    memset(json, '[', DEPTH);
    refuse_bytes(json, DEPTH, "byte 200: more than 200 levels");
    free(json);
}

static void containers_beside_each_other_are_no_depth(void)
{
    char json[3 * 300 + 2] = "[";
    for (int i = 0; i < 300; i++) {
        memcpy(json + 1 + 3 * i, i % 2 ? "[]," : "{},", 3);
    }
    json[3 * 300] = ']';
    json[3 * 300 + 1] = '\0';
    struct opscope__document *document = parse(json);
    CHECK_EQUAL(opscope__document_root(document)->count, 300);
    CHECK_EQUAL(opscope__document_root(document)->depth, 2);
    opscope__document_release(document);
}

static void the_number_of_items_is_limited(void)
{
    size_t bytes = 2 * (size_t)OPSCOPE__ITEM_LIMIT + 1;
    char *json = malloc(bytes);
    CHECK(json != NULL);
    for (size_t i = 1; i < bytes; i += 2) {
        json[i] = '1';
        json[i + 1] = ',';
    }
    json[0] = '[';
    json[bytes - 1] = ']';
    refuse_bytes(json, bytes, "byte 0: more than 8388608 items");
    json[bytes - 3] = ']';
    json[bytes - 2] = json[bytes - 1] = ' ';
    struct opscope__document *document = NULL;
    CHECK_EQUAL(opscope__json_parse(json, bytes, &document), OPSCOPE_OK);
    tree_check_memory(document, bytes);
    opscope__document_release(document);
    free(json);
}

int main(void)
{
    RUN(texts_that_end_too_early_are_refused);
    RUN(what_only_resembles_json_is_refused);
    RUN(numbers_that_json_does_not_have_are_refused);
    RUN(texts_that_are_no_text_are_refused);
    RUN(bytes_that_are_no_utf8_are_refused);
    RUN(a_name_twice_in_one_object_is_refused);
    RUN(depth_is_limited);
    RUN(very_deep_texts_need_no_stack);
    RUN(containers_beside_each_other_are_no_depth);
    RUN(the_number_of_items_is_limited);
    return 0;
}
