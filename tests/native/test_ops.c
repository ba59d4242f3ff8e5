/* tests/native/test_ops.c -- operators: interned once, found by id, at most as many as the
 * limit. */
#include <dlfcn.h>
#include <pthread.h>

#include "check.h"
#include "opscope/record.h"

static void there_is_no_python_in_this_program(void)
{
    void *program = dlopen(NULL, RTLD_LAZY);
    CHECK(program != NULL);
    CHECK(dlsym(program, "Py_IsInitialized") == NULL);
    dlclose(program);
}

static void the_first_id_is_other(void)
{
    CHECK_EQUAL(opscope_op_count(), 0);
    const opscope_op *op;
    CHECK_EQUAL(opscope_op_intern("core::mm", "out", OPSCOPE_FUNCTION, OPSCOPE_FORWARD, &op), 0);
    CHECK_EQUAL(op->id, 2);
    CHECK_EQUAL(opscope_op_other()->id, 1);
    CHECK_TEXT(opscope_op_other()->name, "other");
    CHECK(opscope_op_by_id(1) == opscope_op_other());
    CHECK_TEXT(op->name, "core::mm");
    CHECK_TEXT(op->overload_name, "out");
    CHECK_EQUAL(op->scope, OPSCOPE_FUNCTION);
    CHECK_EQUAL(op->phase, OPSCOPE_FORWARD);
}

static void the_same_name_overload_scope_and_phase_is_the_same_operator(void)
{
    char name[] = "core::add";
    const opscope_op *first, *again, *overloaded, *scoped, *phased;
    CHECK_EQUAL(opscope_op_intern(name, "", OPSCOPE_FUNCTION, OPSCOPE_FORWARD, &first), 0);
    name[0] = 'x'; /* the text was copied */
    CHECK_EQUAL(opscope_op_intern("core::add", "", OPSCOPE_FUNCTION, OPSCOPE_FORWARD, &again), 0);
    CHECK(first == again);
    CHECK_EQUAL(opscope_op_intern("core::add", "b", OPSCOPE_FUNCTION, OPSCOPE_FORWARD, &overloaded),
                0);
    CHECK_EQUAL(opscope_op_intern("core::add", "", OPSCOPE_USER_SCOPE, OPSCOPE_FORWARD, &scoped),
                0);
    CHECK_EQUAL(opscope_op_intern("core::add", "", OPSCOPE_FUNCTION, OPSCOPE_DATA, &phased), 0);
    CHECK(first != overloaded && first != scoped && overloaded != scoped);
    CHECK(phased != first && phased->phase == OPSCOPE_DATA);
    CHECK(opscope_op_by_id(scoped->id) == scoped);
}

static void name_and_overload_do_not_run_into_each_other(void)
{
    const opscope_op *first, *second;
    CHECK_EQUAL(opscope_op_intern("ab", "c", OPSCOPE_FUNCTION, OPSCOPE_FORWARD, &first), 0);
    CHECK_EQUAL(opscope_op_intern("a", "bc", OPSCOPE_FUNCTION, OPSCOPE_FORWARD, &second), 0);
    CHECK(first != second);
}

static void bad_arguments_are_refused_and_leave_the_result_alone(void)
{
    const opscope_op *op = NULL;
    uint32_t count = opscope_op_count();
    CHECK_EQUAL(opscope_op_intern(NULL, "", OPSCOPE_FUNCTION, OPSCOPE_OTHER, &op),
                OPSCOPE_ERR_INVALID);
    CHECK_EQUAL(opscope_op_intern("", "", OPSCOPE_FUNCTION, OPSCOPE_OTHER, &op),
                OPSCOPE_ERR_INVALID);
    CHECK_EQUAL(opscope_op_intern("x", NULL, OPSCOPE_FUNCTION, OPSCOPE_OTHER, &op),
                OPSCOPE_ERR_INVALID);
    CHECK_EQUAL(opscope_op_intern("x", "", OPSCOPE_SCOPE_COUNT, OPSCOPE_OTHER, &op),
                OPSCOPE_ERR_INVALID);
    CHECK_EQUAL(opscope_op_intern("x", "", OPSCOPE_FUNCTION, OPSCOPE_PHASE_COUNT, &op),
                OPSCOPE_ERR_INVALID);
    CHECK(op == NULL);
    CHECK_EQUAL(opscope_op_count(), count);
    CHECK(opscope_op_by_id(0) == NULL);
    CHECK(opscope_op_by_id(count + 1) == NULL);
}

enum { SHARED_NAMES = 300, THREADS = 4 };
static const opscope_op *seen[THREADS][SHARED_NAMES];

static void *intern_all(void *at)
{
    const opscope_op **mine = at;
    for (int i = 0; i < SHARED_NAMES; i++) {
        char name[32];
        snprintf(name, sizeof name, "shared::%d", i);
        CHECK_EQUAL(opscope_op_intern(name, "", OPSCOPE_FUNCTION, OPSCOPE_FORWARD, &mine[i]), 0);
        CHECK(opscope_op_by_id(mine[i]->id) == mine[i]);
    }
    return NULL;
}

static void threads_that_intern_the_same_names_get_the_same_operators(void)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        CHECK_EQUAL(pthread_create(&threads[i], NULL, intern_all, seen[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        CHECK_EQUAL(pthread_join(threads[i], NULL), 0);
    }
    for (int i = 1; i < THREADS; i++) {
        CHECK(memcmp(seen[i], seen[0], sizeof seen[0]) == 0);
    }
}

static void there_are_65536_operators_and_no_more(void)
{
    const opscope_op *op = NULL;
    while (opscope_op_count() < 65536) {
        char name[32];
        snprintf(name, sizeof name, "many::%u", opscope_op_count());
        CHECK_EQUAL(opscope_op_intern(name, "", OPSCOPE_FUNCTION, OPSCOPE_FORWARD, &op), 0);
    }
    const opscope_op *last = op;
    CHECK_EQUAL(last->id, 65536);
    CHECK_EQUAL(opscope_op_intern("one::more", "", OPSCOPE_FUNCTION, OPSCOPE_FORWARD, &op),
                OPSCOPE_ERR_FULL);
    CHECK(op == last);
    for (uint32_t id = 1; id <= 65536; id++) {
        const opscope_op *known = opscope_op_by_id(id);
        CHECK_EQUAL(
            opscope_op_intern(known->name, known->overload_name, known->scope, known->phase, &op),
            0);
        CHECK(op == known);
    }
}

static void every_status_has_a_text_of_its_own(void)
{
    for (int a = OPSCOPE_ERR_LIMITED; a <= OPSCOPE_OK; a++) {
        for (int b = a + 1; b <= OPSCOPE_OK + 1; b++) {
            CHECK(strcmp(opscope_status_text(a), opscope_status_text(b)) != 0);
        }
    }
}

int main(void)
{
    RUN(there_is_no_python_in_this_program);
    RUN(the_first_id_is_other);
    RUN(the_same_name_overload_scope_and_phase_is_the_same_operator);
    RUN(name_and_overload_do_not_run_into_each_other);
    RUN(bad_arguments_are_refused_and_leave_the_result_alone);
    RUN(threads_that_intern_the_same_names_get_the_same_operators);
    RUN(there_are_65536_operators_and_no_more);
    RUN(every_status_has_a_text_of_its_own);
    return 0;
}
