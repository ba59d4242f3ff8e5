/* tests/native/model/test_pickle_limits.c -- items that several others contain: sharing, cycles,
 * and the limits of depth, growth and memory. */
#include "pickles.h"

static void an_item_kept_in_the_memo_is_shared(void)
{
    struct opscope__document *document = parse(PICKLE("\x80\2](]q\1K\5h\1e."));
    const struct opscope__item *root = opscope__document_root(document);
    CHECK_EQUAL(root->count, 3);
    CHECK(root->as.items[0] == root->as.items[2]);
    CHECK_EQUAL(root->expanded, 4);
    opscope__document_release(document);
    /* Through either reference, as long as the pickle goes on. */
    becomes(PICKLE("\x80\2]q\1h\1K\5a\x86."), "tuple 2\n"
                                              "  list 1\n"
                                              "    integer 5\n"
                                              "  list 1\n"
                                              "    integer 5\n");
}

static void items_that_contain_themselves_are_refused(void)
{
    refuse(PICKLE("\x80\2]q\1h\1a."), "byte 2: the list that begins at byte 2 contains itself");
    refuse(PICKLE("\x80\2}q\1Nh\1s."), "byte 2: the map that begins at byte 2 contains itself");
    refuse(PICKLE("\x80\2]q\1h\1\x85\x85"
                  "a."),
           "byte 7: the list that begins at byte 2 contains itself");
    refuse(PICKLE("\x80\2c__torch__\nA\n)\x81q\1}X\1\0\0\0ah\1sb."),
           "byte 19: the object that begins at byte 16 contains itself");
    refuse(PICKLE("\x80\2]q\1h\1Qa."), "byte 7: the list that begins at byte 2 contains itself");
}

static void depth_is_limited(void)
{
    char pickle[OPSCOPE__DEPTH_LIMIT + 16] = "\x80\2N";
    memset(pickle + 3, '\x85', OPSCOPE__DEPTH_LIMIT);
    pickle[OPSCOPE__DEPTH_LIMIT + 2] = '.';
    struct opscope__document *document = parse(pickle, OPSCOPE__DEPTH_LIMIT + 3);
    CHECK_EQUAL(opscope__document_root(document)->depth, OPSCOPE__DEPTH_LIMIT);
    opscope__document_release(document);
    pickle[OPSCOPE__DEPTH_LIMIT + 2] = '\x85';
    pickle[OPSCOPE__DEPTH_LIMIT + 3] = '.';
    refuse(pickle, OPSCOPE__DEPTH_LIMIT + 4, "byte 3: more than 200 levels");
}

/* A deep item that is first met near the root counts from where it is deepest. */
static void depth_is_limited_through_shared_items(void)
{
    char pickle[512] = "\x80\2N";
    char *at = pickle + 3;
    memset(at, '\x85', 120);
    at += 120;
    memcpy(at, "q\1h\1", 4);
    at += 4;
    memset(at, '\x85', 100);
    at += 100;
    memcpy(at, "\x86.", 2);
    struct opscope__document *document = NULL;
    CHECK_EQUAL(try_parse(pickle, (size_t)(at + 2 - pickle), &document), OPSCOPE_ERR_INVALID);
    CHECK(strstr(opscope_tensor_error(), "more than 200 levels") != NULL);
}

static void very_deep_pickles_need_no_stack(void)
{
    enum { DEPTH = 1000000 };
    char *pickle = malloc(DEPTH + 4);
    CHECK(pickle != NULL);
    memcpy(pickle, "\x80\2N", 3);
    memset(pickle + 3, '\x85', DEPTH);
    pickle[DEPTH + 3] = '.';
    struct opscope__document *document = NULL;
    CHECK_EQUAL(try_parse(pickle, DEPTH + 4, &document), OPSCOPE_ERR_INVALID);
    CHECK(strstr(opscope_tensor_error(), "more than 200 levels") != NULL);
    free(pickle);
}

/* Each tuple has the one before twice: 2^n items from n opcodes. */
static void growth_by_sharing_is_limited(void)
{
    char pickle[512] = "\x80\2N";
    char *at = pickle + 3;
    for (int i = 0; i < 60; i++) {
        at += sprintf(at, "q%ch%c\x86", i + 1, i + 1);
    }
    *at++ = '.';
    refuse(pickle, (size_t)(at - pickle),
           "byte 122: shared items make this more than 16777216 items");
}

/* A text of a million bytes 2000 times: a walk that copies each would copy 2 GB. */
static void copies_of_a_shared_text_are_limited(void)
{
    enum { BYTES = 1000000, TIMES = 2000 };
    char *pickle = malloc(BYTES + 2 * TIMES + 16), *at = pickle;
    CHECK(pickle != NULL);
    memcpy(at, "\x80\2](X\x40\x42\x0f\0", 9);
    memset(at + 9, 'a', BYTES);
    at += 9 + BYTES;
    memcpy(at, "q\1", 2);
    at += 2;
    for (int i = 1; i < TIMES; i++) {
        at += sprintf(at, "h\1");
    }
    memcpy(at, "e.", 2);
    refuse(pickle, (size_t)(at + 2 - pickle),
           "byte 2: shared items make this more than 16777216 items");
    free(pickle);
}

/* Two dicts may share one key: sorting would compare all of it each time. */
static void long_keys_are_refused(void)
{
    char pickle[OPSCOPE__KEY_BYTES_LIMIT + 32] = "\x80\2}X\0\x10\0";
    memset(pickle + 8, 'a', OPSCOPE__KEY_BYTES_LIMIT + 1);
    memcpy(pickle + 8 + OPSCOPE__KEY_BYTES_LIMIT, "Ns.", 3);
    opscope__document_release(parse(pickle, 8 + OPSCOPE__KEY_BYTES_LIMIT + 3));
    pickle[4] = 1;
    memcpy(pickle + 8 + OPSCOPE__KEY_BYTES_LIMIT, "aNs.", 4);
    refuse(pickle, 8 + OPSCOPE__KEY_BYTES_LIMIT + 4, "byte 3: a key of 4097 bytes, more than 4096");
}

static void memory_stays_in_proportion(void)
{
    /* The opcodes that cost most for a byte of their own, each a thousand times and collected. */
    static const char opcodes[] = {']', '}', '\x8f', 'N'};
    enum { COUNT = 1000 };
    for (size_t i = 0; i < sizeof opcodes; i++) {
        char pickle[COUNT + 5] = "\x80\2(";
        memset(pickle + 3, opcodes[i], COUNT);
        memcpy(pickle + 3 + COUNT, "t.", 2);
        opscope__document_release(parse(pickle, COUNT + 5));
    }
}

/* One item after another, where the opcodes for many at once would do. */
static void a_list_grows_in_proportion(void)
{
    enum { COUNT = 20000 };
    char *pickle = malloc(2 * COUNT + 8), *at = pickle;
    CHECK(pickle != NULL);
    at += sprintf(at, "\x80\2]");
    for (int i = 0; i < COUNT; i++) {
        *at++ = 'N';
        *at++ = 'a';
    }
    *at++ = '.';
    struct opscope__document *document = parse(pickle, (size_t)(at - pickle));
    CHECK_EQUAL(opscope__document_root(document)->count, COUNT);
    opscope__document_release(document);
    free(pickle);
}

static void a_dict_of_a_million_keys_is_read_in_passing(void)
{
    enum { COUNT = 1000000 };
    char *pickle = malloc(COUNT * 8 + 16), *at = pickle;
    CHECK(pickle != NULL);
    memcpy(at, "\x80\2}(", 4);
    at += 4;
    for (uint32_t i = 0; i < COUNT; i++) {
        /* Keys in no order. */
        uint32_t key = i * 2654435761u;
        *at++ = '\x8a';
        *at++ = 5;
        for (int byte = 0; byte < 4; byte++) {
            *at++ = (char)(key >> (8 * byte));
        }
        *at++ = 0;
        *at++ = 'N';
    }
    memcpy(at, "u.", 2);
    struct opscope__document *document = NULL;
    CHECK_EQUAL(try_parse(pickle, (size_t)(at + 2 - pickle), &document), OPSCOPE_OK);
    CHECK_EQUAL(opscope__document_root(document)->count, COUNT);
    opscope__document_release(document);
    free(pickle);
}

int main(void)
{
    RUN(an_item_kept_in_the_memo_is_shared);
    RUN(items_that_contain_themselves_are_refused);
    RUN(depth_is_limited);
    RUN(depth_is_limited_through_shared_items);
    RUN(very_deep_pickles_need_no_stack);
    RUN(growth_by_sharing_is_limited);
    RUN(copies_of_a_shared_text_are_limited);
    RUN(long_keys_are_refused);
    RUN(memory_stays_in_proportion);
    RUN(a_list_grows_in_proportion);
    RUN(a_dict_of_a_million_keys_is_read_in_passing);
    return 0;
}
