/* tests/native/bridges/marks/test_marks.c -- marks of a fake client of NVTX, which loads the
 * injected library as real ones do: by the name in the environment. */
#include <dlfcn.h>
#include <pthread.h>

#include "bridges/marks/range.h"
#include "bridges/marks/receiver.h"
#include "marked.h"

/* ---- a client of NVTX --------------------------------------------------------------------------- */

enum { PLACES = 16 };

static opscope__nvtx_function core[PLACES], core2[PLACES];
static opscope__nvtx_function *core_places[PLACES], *core2_places[PLACES];
static size_t callbacks_size = sizeof(struct opscope__nvtx_callbacks);

static int give_module(int32_t module, opscope__nvtx_function ***out, unsigned *out_count)
{
    const bool is_core = module == OPSCOPE__NVTX_CORE;
    if (!is_core && module != OPSCOPE__NVTX_CORE2) {
        return 0;
    }
    *out = is_core ? core_places : core2_places;
    *out_count = PLACES;
    return 1;
}

static const void *give_table(uint32_t table)
{
    static struct opscope__nvtx_callbacks callbacks;
    callbacks = (struct opscope__nvtx_callbacks){callbacks_size, give_module};
    return table == OPSCOPE__NVTX_CALLBACKS ? &callbacks : NULL;
}

static int begin_client(void)
{
    for (int i = 0; i < PLACES; i++) {
        core[i] = core2[i] = NULL;
        core_places[i] = i == 0 ? NULL : &core[i];
        core2_places[i] = i == 0 ? NULL : &core2[i];
    }
    void *library = dlopen(getenv("NVTX_INJECTION64_PATH"), RTLD_LAZY);
    CHECK(library != NULL);
    int (*begin_it)(opscope__nvtx_get_table *) =
        (int (*)(opscope__nvtx_get_table *))dlsym(library, "InitializeInjectionNvtx2");
    return begin_it(give_table);
}

static int push(const char *name)
{
    return ((int (*)(const char *))core[OPSCOPE__NVTX_PUSH_A])(name);
}

static int push_wide(const wchar_t *name)
{
    return ((int (*)(const wchar_t *))core[OPSCOPE__NVTX_PUSH_W])(name);
}

static int pop(void)
{
    return ((int (*)(void))core[OPSCOPE__NVTX_POP])();
}

static void *domain(const char *name)
{
    return ((void *(*)(const char *))core2[OPSCOPE__NVTX_DOMAIN_CREATE_A])(name);
}

static void *register_string(void *in, const char *name)
{
    return ((void *(*)(void *, const char *))core2[OPSCOPE__NVTX_REGISTER_STRING_A])(in, name);
}

static void push_ex(void *in, int32_t type, const void *message, size_t size)
{
    const struct opscope__nvtx_attributes attributes = {
        .version = 3, .size = (uint16_t)size, .message_type = type, .message = message};
    ((int (*)(void *, const void *))core2[OPSCOPE__NVTX_DOMAIN_PUSH_EX])(in, &attributes);
}

static void push_in(void *in, const char *name)
{
    push_ex(in, OPSCOPE__NVTX_ASCII, name, sizeof(struct opscope__nvtx_attributes));
}

static void pop_in(void *in)
{
    ((int (*)(void *))core2[OPSCOPE__NVTX_DOMAIN_POP])(in);
}

static uint64_t start(const char *name)
{
    CHECK(core[OPSCOPE__NVTX_START_A] != NULL);
    return ((uint64_t (*)(const char *))core[OPSCOPE__NVTX_START_A])(name);
}

static uint64_t start_ex(void *in, int32_t type, const void *message)
{
    const struct opscope__nvtx_attributes attributes = {
        .version = 3, .size = sizeof attributes, .message_type = type, .message = message};
    return ((uint64_t (*)(void *, const void *))core2[OPSCOPE__NVTX_DOMAIN_START_EX])(in,
                                                                                      &attributes);
}

static void end(uint64_t id)
{
    ((void (*)(uint64_t))core[OPSCOPE__NVTX_END])(id);
}

static void end_in(void *in, uint64_t id)
{
    ((void (*)(void *, uint64_t))core2[OPSCOPE__NVTX_DOMAIN_END])(in, id);
}

/* ---- NVTX ---------------------------------------------------------------------------------------- */

static void without_the_bridge_the_library_refuses(void)
{
    CHECK_EQUAL(setenv("NVTX_INJECTION64_PATH", OPSCOPE_TEST_MARKS, 1), 0);
    CHECK_EQUAL(begin_client(), 0);
    CHECK(core[OPSCOPE__NVTX_POP] == NULL);
    CHECK_EQUAL(unsetenv("NVTX_INJECTION64_PATH"), 0);
}

static void another_tool_keeps_its_place(void)
{
    CHECK_EQUAL(setenv("NVTX_INJECTION64_PATH", "/opt/tool/libtool.so", 1), 0);
    CHECK_EQUAL(opscope_marks_attach(OPSCOPE_MARKS_NVTX, OPSCOPE_TEST_MARKS), OPSCOPE_ERR_BUSY);
    CHECK_TEXT(getenv("NVTX_INJECTION64_PATH"), "/opt/tool/libtool.so");
    opscope_marks_detach(OPSCOPE_MARKS_NVTX);
    CHECK_TEXT(getenv("NVTX_INJECTION64_PATH"), "/opt/tool/libtool.so");
    CHECK_EQUAL(unsetenv("NVTX_INJECTION64_PATH"), 0);
}

static void *attach_beside(void *out)
{
    *(int *)out = opscope_marks_attach(OPSCOPE_MARKS_NVTX, OPSCOPE_TEST_MARKS);
    return NULL;
}

static void the_environment_stays_as_it_is_while_other_threads_run(void)
{
    pthread_t thread;
    int status = 0;
    CHECK_EQUAL(pthread_create(&thread, NULL, attach_beside, &status), 0);
    CHECK_EQUAL(pthread_join(thread, NULL), 0);
    CHECK_EQUAL(status, OPSCOPE_ERR_WOULD_DEADLOCK);
    CHECK(getenv("NVTX_INJECTION64_PATH") == NULL);
}

static void a_missing_library_is_not_named(void)
{
    CHECK_EQUAL(opscope_marks_attach(OPSCOPE_MARKS_NVTX, "/none/libopscope_marks.so"),
                OPSCOPE_ERR_NOT_FOUND);
    CHECK(getenv("NVTX_INJECTION64_PATH") == NULL);
}

static void the_library_of_another_opscope_is_replaced(void)
{
    CHECK_EQUAL(setenv("NVTX_INJECTION64_PATH", "/gone/libopscope_marks.so", 1), 0);
    attach(OPSCOPE_MARKS_NVTX);
    CHECK_TEXT(getenv("NVTX_INJECTION64_PATH"), OPSCOPE_TEST_MARKS);
}

static void a_client_that_is_not_as_expected_is_refused(void)
{
    callbacks_size = 8;
    CHECK_EQUAL(begin_client(), 0);
    CHECK_EQUAL(opscope_marks_clients(OPSCOPE_MARKS_NVTX), 0);
    callbacks_size = sizeof(struct opscope__nvtx_callbacks);
    CHECK_EQUAL(begin_client(), 1);
    CHECK_EQUAL(opscope_marks_clients(OPSCOPE_MARKS_NVTX), 1);
}

static void marks_are_ranges_by_their_names(void)
{
    observe();
    CHECK_EQUAL(push("a"), 0);
    CHECK_EQUAL(push("b"), 1);
    CHECK_EQUAL(pop(), 1);
    CHECK_EQUAL(pop(), 0);
    push(NULL);
    pop();
    push_wide(L"\u00e9\u20ac\U0001f600");
    pop();
    CHECK_TEXT(journal, "+nvtx::a +nvtx::b -nvtx::b -nvtx::a +nvtx::unnamed -nvtx::unnamed "
                        "+nvtx::\u00e9\u20ac\U0001f600 -nvtx::\u00e9\u20ac\U0001f600 ");
}

static void messages_of_all_kinds_name_a_range(void)
{
    void *in = domain("one");
    const size_t size = sizeof(struct opscope__nvtx_attributes);
    observe();
    push_ex(in, OPSCOPE__NVTX_ASCII, "ascii", size);
    push_ex(in, OPSCOPE__NVTX_UNICODE, L"wide", size);
    push_ex(in, OPSCOPE__NVTX_REGISTERED, register_string(in, "registered"), size);
    push_ex(in, 99, "of no kind", size);
    push_ex(in, OPSCOPE__NVTX_ASCII, NULL, size);
    push_ex(in, OPSCOPE__NVTX_ASCII, "of an older client", 16);
    CHECK_TEXT(journal, "+nvtx::ascii +nvtx::wide +nvtx::registered +nvtx::unnamed "
                        "+nvtx::unnamed +nvtx::unnamed ");
    for (int i = 0; i < 6; i++) {
        pop_in(in);
    }
}

static void a_pop_ends_the_range_of_its_own_domain(void)
{
    void *one = domain("one"), *two = domain("two");
    CHECK(one != two && one != NULL && two != NULL);
    observe();
    push_in(one, "a");
    push_in(two, "b");
    push("c");
    pop_in(one);
    pop_in(one); /* of nothing */
    pop();
    pop_in(two);
    CHECK_EQUAL(pop(), 0);
    CHECK_TEXT(journal, "+nvtx::a +nvtx::b +nvtx::c -nvtx::a -nvtx::c -nvtx::b ");
}

static void starts_and_ends_are_ranges_that_may_overlap(void)
{
    observe();
    push("around");
    const uint64_t a = start("a"), b = start("b");
    CHECK(a != 0 && b != 0 && a != b);
    pop();
    end(a);
    end(a); /* no longer open */
    end(0);
    end(b + 1);
    end(UINT64_MAX);
    end(b);
    CHECK_TEXT(journal, "+nvtx::around +nvtx::a +nvtx::b -nvtx::around -nvtx::a -nvtx::b ");
}

static void all_functions_of_starts_name_a_range(void)
{
    void *in = domain("one");
    const struct opscope__nvtx_attributes attributes = {.version = 3,
                                                        .size = sizeof attributes,
                                                        .message_type = OPSCOPE__NVTX_ASCII,
                                                        .message = "ex"};
    observe();
    end(((uint64_t (*)(const void *))core[OPSCOPE__NVTX_START_EX])(&attributes));
    end(((uint64_t (*)(const wchar_t *))core[OPSCOPE__NVTX_START_W])(L"\u20ac"));
    end(start(NULL));
    end_in(in, start_ex(in, OPSCOPE__NVTX_ASCII, "ascii"));
    end_in(in, start_ex(in, OPSCOPE__NVTX_UNICODE, L"wide"));
    end(start_ex(in, OPSCOPE__NVTX_REGISTERED, register_string(in, "registered")));
    end_in(in, start_ex(in, 99, "of no kind"));
    CHECK_TEXT(journal, "+nvtx::ex -nvtx::ex +nvtx::\u20ac -nvtx::\u20ac "
                        "+nvtx::unnamed -nvtx::unnamed +nvtx::ascii -nvtx::ascii "
                        "+nvtx::wide -nvtx::wide +nvtx::registered -nvtx::registered "
                        "+nvtx::unnamed -nvtx::unnamed ");
}

static void mark_own(void)
{
    push("own");
    pop();
}

static void callbacks_may_mark_ranges_themselves(void)
{
    observe();
    mark = mark_own;
    push("a");
    push("b");
    pop();
    pop();
    mark = NULL;
    CHECK_TEXT(journal, "+nvtx::a +nvtx::b -nvtx::b -nvtx::a ");
    CHECK_EQUAL(pop(), 0);
}

static void missing_pops_lose_their_ranges_and_nothing_else(void)
{
    struct calls calls = {0};
    begin();
    add_global(counting(&calls));
    for (int i = 0; i < OPSCOPE__MARKS_OPEN_LIMIT + 1; i++) {
        push("never popped");
    }
    CHECK_EQUAL(calls.ends, OPSCOPE__MARKS_OPEN_LIMIT);
    for (int i = 0; i < 2 * OPSCOPE__MARKS_OPEN_LIMIT; i++) {
        pop();
    }
    CHECK_EQUAL(calls.starts, OPSCOPE__MARKS_OPEN_LIMIT + 1);
    CHECK_EQUAL(calls.ends, OPSCOPE__MARKS_OPEN_LIMIT + 1);
}

static void long_names_are_cut_between_characters(void)
{
    char name[600] = "";
    for (int i = 0; i < 199; i++) {
        strcat(name, "\u20ac"); /* three bytes */
    }
    observe();
    push(name);
    pop();
    push(name);
    pop();
    const size_t bytes = strcspn(journal + 1, " ");
    CHECK_EQUAL(bytes, strlen("nvtx::") + 83 * 3);
    CHECK_EQUAL(strlen(journal), 4 * (bytes + 2));
}

static void *push_and_end(void *unused)
{
    push("of a thread that ends");
    return unused;
}

static void the_end_of_a_thread_ends_its_ranges(void)
{
    pthread_t thread;
    observe();
    CHECK_EQUAL(pthread_create(&thread, NULL, push_and_end, NULL), 0);
    CHECK_EQUAL(pthread_join(thread, NULL), 0);
    CHECK_TEXT(journal, "+nvtx::of a thread that ends -nvtx::of a thread that ends ");
}

static void pushes_while_detached_keep_the_nesting(void)
{
    observe();
    push("before");
    opscope_marks_detach(OPSCOPE_MARKS_NVTX);
    CHECK(HAS_OWN_THREAD || getenv("NVTX_INJECTION64_PATH") == NULL);
    push("detached");
    pop();
    CHECK_TEXT(journal, "+nvtx::before ");
    pop();
    attach(OPSCOPE_MARKS_NVTX);
    push("again");
    pop();
    CHECK_TEXT(journal, "+nvtx::before -nvtx::before +nvtx::again -nvtx::again ");
}

static void *push_many(void *out)
{
    char name[16];
    for (int i = 0; i < 2000; i++) {
        snprintf(name, sizeof name, "%d", i);
        push(name);
        pop();
    }
    return out;
}

static void threads_make_each_name_once(void)
{
    pthread_t threads[4];
    struct calls calls = {0};
    begin();
    add_global(counting(&calls));
    const uint32_t before = opscope_op_count();
    for (int i = 0; i < 4; i++) {
        CHECK_EQUAL(pthread_create(&threads[i], NULL, push_many, NULL), 0);
    }
    for (int i = 0; i < 4; i++) {
        CHECK_EQUAL(pthread_join(threads[i], NULL), 0);
    }
    CHECK_EQUAL(opscope_op_count() - before, 2000);
    CHECK_EQUAL(calls.ends, 4 * 2000);
}

static void names_are_bounded_and_those_known_stay(void)
{
    char name[16];
    const uint32_t before = opscope_op_count();
    begin();
    struct calls calls = {0};
    opscope_handle handle = add_global(counting(&calls));
    for (int i = 0; i < 10000; i++) {
        snprintf(name, sizeof name, "step %d", i);
        push(name);
        pop();
    }
    CHECK(opscope_op_count() - before <= OPSCOPE__MARKS_NAME_LIMIT);
    CHECK_EQUAL(opscope_remove_callback(handle, true), OPSCOPE_OK);
    observe();
    push("step 9999");
    pop();
    push("step 0");
    pop();
    CHECK_TEXT(journal, "+nvtx::other -nvtx::other +nvtx::step 0 -nvtx::step 0 ");
}

int main(void)
{
    RUN(without_the_bridge_the_library_refuses);
    RUN(a_missing_library_is_not_named);
    RUN(another_tool_keeps_its_place);
    RUN(the_environment_stays_as_it_is_while_other_threads_run);
    RUN(the_library_of_another_opscope_is_replaced);
    RUN(a_client_that_is_not_as_expected_is_refused);
    RUN(marks_are_ranges_by_their_names);
    RUN(messages_of_all_kinds_name_a_range);
    RUN(a_pop_ends_the_range_of_its_own_domain);
    RUN(starts_and_ends_are_ranges_that_may_overlap);
    RUN(all_functions_of_starts_name_a_range);
    RUN(callbacks_may_mark_ranges_themselves);
    RUN(missing_pops_lose_their_ranges_and_nothing_else);
    RUN(long_names_are_cut_between_characters);
    RUN(the_end_of_a_thread_ends_its_ranges);
    RUN(pushes_while_detached_keep_the_nesting);
    RUN(threads_make_each_name_once);
    RUN(names_are_bounded_and_those_known_stay);
    return 0;
}
