/* tests/native/model/test_pickle.c -- what PyTorch's pickles become, and which pickles are refused.
 *
 * The pickles of PyTorch and the trees that they have to become are made by make_pickles.py.
 */
#include "pickles.h"

/* ---- what PyTorch writes --------------------------------------------------------------------- */

/* To be freed. */
static char *read_file(const char *name, const char *ending, size_t *size)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s.%s", OPSCOPE_TEST_PICKLES, name, ending);
    FILE *file = fopen(path, "rb");
    CHECK(file != NULL);
    CHECK(fseek(file, 0, SEEK_END) == 0);
    *size = (size_t)ftell(file);
    rewind(file);
    char *bytes = calloc(1, *size + 1);
    CHECK(bytes != NULL);
    CHECK_EQUAL(fread(bytes, 1, *size, file), *size);
    fclose(file);
    return bytes;
}

static void pickles_of_pytorch_become_the_trees_that_python_reads(void)
{
    static const char *const names[] = {
        "state_dict", "state_dict_protocol_3", "optimizer", "nested", "script", "trace_constants"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        size_t size, text_size;
        char *bytes = read_file(names[i], "pkl", &size);
        char *wanted = read_file(names[i], "tree", &text_size);
        struct opscope__document *document = parse(bytes, size);
        CHECK_EQUAL(opscope__document_end(document), size);
        opscope__document_release(document);
        becomes(bytes, size, wanted);
        free(wanted);
        free(bytes);
    }
}

static void a_state_dict_is_looked_up_by_name(void)
{
    size_t size;
    char *bytes = read_file("state_dict", "pkl", &size);
    struct opscope__document *document = parse(bytes, size);
    const struct opscope__item *root = opscope__document_root(document);
    CHECK(opscope__item_is_global(root, "collections.OrderedDict"));
    CHECK_EQUAL(root->count, 9);
    CHECK_TEXT(root->as.object->pairs[0].key->as.text, "0.weight");
    const struct opscope__item *weight = opscope__item_find(root, "2.weight");
    CHECK(opscope__item_is_global(weight, "torch._utils._rebuild_tensor_v2"));
    const struct opscope__item *arguments = weight->as.object->arguments;
    CHECK_EQUAL(arguments->count, 6);
    CHECK_EQUAL(arguments->as.items[0]->kind, OPSCOPE__ITEM_PERSISTENT);
    CHECK_TEXT(arguments->as.items[0]->as.id->as.items[0]->as.text, "storage");
    CHECK(opscope__item_find(root, "3.weight") == NULL);
    CHECK(opscope__item_find(root->as.object->state, "_metadata") != NULL);
    opscope__document_release(document);
    free(bytes);
}

static void every_beginning_of_a_pickle_is_refused(void)
{
    size_t size;
    char *bytes = read_file("script", "pkl", &size);
    for (size_t length = 0; length < size; length++) {
        struct opscope__document *document = NULL;
        CHECK_EQUAL(try_parse(bytes, length, &document), OPSCOPE_ERR_INVALID);
        CHECK(strncmp(opscope_tensor_error(), "byte ", 5) == 0);
    }
    free(bytes);
}

/* ---- values ---------------------------------------------------------------------------------- */

static void integers_have_the_value_of_their_bytes(void)
{
    becomes(PICKLE("\x80\2("
                   "K\xff"
                   "M\xff\xff"
                   "J\xff\xff\xff\xff"
                   "J\0\0\0\x80"
                   "\x8a\0"
                   "\x8a\1\x80"
                   "\x8a\2\xff\0"
                   "\x8a\x08\0\0\0\0\0\0\0\x80"
                   "\x8a\x09\xff\xff\xff\xff\xff\xff\xff\x7f\0"
                   "\x8a\x0a\0\0\0\0\0\0\0\x80\xff\xff"
                   "t."),
            "tuple 10\n"
            "  integer 255\n"
            "  integer 65535\n"
            "  integer -1\n"
            "  integer -2147483648\n"
            "  integer 0\n"
            "  integer -128\n"
            "  integer 255\n"
            "  integer -9223372036854775808\n"
            "  integer 9223372036854775807\n"
            "  integer -9223372036854775808\n");
    refuse(PICKLE("\x80\2\x8a\x09\0\0\0\0\0\0\0\x80\0."),
           "byte 2: an integer of more than 64 bits");
    refuse(PICKLE("\x80\2\x8a\x09\xff\xff\xff\xff\xff\xff\xff\x7f\xff."),
           "byte 2: an integer of more than 64 bits");
    refuse(PICKLE("\x80\2\x8a\x09\0\0\0\0\0\0\0\0\1."),
           "byte 2: an integer of 9 bytes, more than 64 bits");
}

static void texts_and_bytes_keep_every_byte(void)
{
    becomes(PICKLE("\x80\3(X\3\0\0\0a\0bU\2\xc3\xa9"
                   "C\2\xff\0B\0\0\0\0G\x3f\xf8\0\0\0\0\0\0t."),
            "tuple 5\n"
            "  text 610062\n"
            "  text c3a9\n"
            "  bytes ff00\n"
            "  bytes \n"
            "  float 1.5\n");
    refuse(PICKLE("\x80\2X\2\0\0\0a\xff."), "byte 8: a text is not UTF-8");
    refuse(PICKLE("\x80\2X\xff\xff\xff\xff."),
           "byte 2: the opcode has an operand of 4294967295 bytes, and 1 are left");
}

static void an_empty_set_is_a_call(void)
{
    becomes(PICKLE("\x80\2\x8f\x8f\x86."), "tuple 2\n"
                                           "  object 0 0\n"
                                           "    global builtins.set\n"
                                           "    tuple 0\n"
                                           "  object 0 0\n"
                                           "    global builtins.set\n"
                                           "    tuple 0\n");
}

static void an_enum_of_torchscript_is_called_with_its_value(void)
{
    becomes(PICKLE("\x80\2c__torch__\nColor\nK\2R."), "object 0 0\n"
                                                      "  global __torch__.Color\n"
                                                      "  integer 2\n");
    refuse(PICKLE("\x80\2ctorch\nSize\nK\2R."), "byte 16: arguments that are no tuple but integer");
}

static void what_follows_stop_is_not_read(void)
{
    struct opscope__document *document = parse(PICKLE("\x80\2N.abc"));
    CHECK_EQUAL(opscope__document_end(document), 4);
    opscope__document_release(document);
}

/* ---- globals --------------------------------------------------------------------------------- */

static void only_the_given_globals_are_read(void)
{
    refuse(PICKLE("\x80\2cos\nsystem\nX\1\0\0\0a\x85R."),
           "byte 2: os.system is not among the globals that are read");
    refuse(PICKLE("\x80\2c__builtin__\neval\n."),
           "byte 2: builtins.eval is not among the globals that are read");
    refuse(PICKLE("\x80\2c__torch__x\nA\n."),
           "byte 2: __torch__x.A is not among the globals that are read");
    refuse(PICKLE("\x80\2ctorch\nSize\0.evil\n."), "byte 2: Size?.evil is no name of a global");
    refuse(PICKLE("\x80\2c\x1b[31m\nA\n."),
           "byte 2: ?[31m.A is not among the globals that are read");
    refuse(PICKLE("\x80\2c__torch__\nA\xff\n."),
           "byte 2: __torch__.A? is not among the globals that are read");
    refuse(PICKLE("\x80\2ctorch\nSize"), "byte 2: the name of a global has no end");
    becomes(PICKLE("\x80\2c__builtin__\nset\n."), "global builtins.set\n");
    struct opscope__document *document = NULL;
    const struct opscope__pickle_globals none = {NULL, NULL};
    CHECK_EQUAL(opscope__pickle_parse(PICKLE("\x80\2ctorch\nSize\n."), &none, &document),
                OPSCOPE_ERR_INVALID);
}

static void a_long_name_is_cut_in_the_message(void)
{
    char pickle[800] = "\x80\2c";
    memset(pickle + 3, 'a', 480);
    strcpy(pickle + 483, "\nb\n.");
    char wanted[200] = "byte 2: ";
    memset(wanted + 8, 'a', 80);
    strcpy(wanted + 88, "... is not among the globals that are read");
    refuse(pickle, 487, wanted);
    memset(pickle + 3, 'a', 501);
    strcpy(pickle + 504, "\nb\n.");
    strcpy(wanted + 88, "... is no name of a global");
    refuse(pickle, 508, wanted);
}

int main(void)
{
    RUN(pickles_of_pytorch_become_the_trees_that_python_reads);
    RUN(a_state_dict_is_looked_up_by_name);
    RUN(every_beginning_of_a_pickle_is_refused);
    RUN(integers_have_the_value_of_their_bytes);
    RUN(texts_and_bytes_keep_every_byte);
    RUN(an_empty_set_is_a_call);
    RUN(an_enum_of_torchscript_is_called_with_its_value);
    RUN(what_follows_stop_is_not_read);
    RUN(only_the_given_globals_are_read);
    RUN(a_long_name_is_cut_in_the_message);
    return 0;
}
