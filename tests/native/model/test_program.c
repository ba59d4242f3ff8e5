/* tests/native/model/test_program.c -- programs: what they release, how they end, which are
 * refused, and many threads in one. */
#include <pthread.h>

#include "base/atomics.h"
#include "program_texts.h"

static uint64_t live_bytes(void)
{
    opscope_allocator_stats stats;
    opscope_allocator_read_stats(opscope_allocator_default(), &stats);
    return stats.live_bytes;
}

/* A graph in which values are used by branches, loops, lists and returns, or not at all. */
static const char everything[] =
    "graph(%x : Tensor, %n : int, %flag : bool):\n"
    "  %yes : bool = prim::Constant[value=True]()\n"
    "  %unused : Tensor = core::neg(%x)\n"
    "  %once : Tensor = core::exp(%x)\n"
    "  %names : List[str] = prim::Constant[value=[\"a\", \"b\"]]()\n"
    "  %y : Tensor, %l : List[str] = prim::If(%flag)\n"
    "    block0():\n"
    "      %a : Tensor = core::add(%once, %x)\n"
    "      -> (%a, %names)\n"
    "    block1():\n"
    "      %b : Tensor = core::mul(%x, %x)\n"
    "      %other : List[str] = py::copy(%names)\n"
    "      -> (%b, %other)\n"
    "  %p : Tensor, %q : Tensor, %r : List[Tensor] = prim::If(%yes)\n"
    "    block0():\n"
    "      %empty : List[Tensor] = prim::ListConstruct()\n"
    "      %p1 : Tensor, %q1 : Tensor, %never : Tensor = prim::Loop(%n, %yes, %x, %y, %y)\n"
    "        block0(%i : int, %c : Tensor, %d : Tensor, %e : Tensor):\n"
    "          %f : Tensor = core::add(%c, %d)\n"
    "          py::append(%empty, %f)\n"
    "          %text : str = py::str(%i)\n"
    "          py::append(%l, %text)\n"
    "          -> (%yes, %d, %f, %once)\n"
    "      -> (%p1, %q1, %empty)\n"
    "    block1():\n"
    "      %none : List[Tensor] = prim::ListConstruct(%y)\n"
    "      -> (%x, %x, %none)\n"
    "  %pair : Tuple[Tensor, List[str]] = prim::TupleConstruct(%p, %l)\n"
    "  %back : Tensor, %again : List[str] = prim::TupleUnpack(%pair)\n"
    "  return (%q, %back, %again, %r)\n";

/* Fibonacci's numbers, of the loop's swapped and added values. */
static float run_everything(const struct opscope__program *program, int64_t rounds, bool flag)
{
    struct opscope__heap heap = {0};
    const struct opscope__value inputs[] = {program_tensor(1), opscope__value_int(rounds),
                                            opscope__value_bool(flag)};
    struct opscope__value outputs[4];
    CHECK_EQUAL(opscope__program_run(program, &heap, inputs, NULL, outputs), OPSCOPE_OK);
    float result = *(float *)opscope_tensor_data(outputs[0].as.tensor);
    CHECK_EQUAL(outputs[2].as.sequence->count, 2 + rounds);
    CHECK_EQUAL(outputs[3].as.sequence->count, rounds);
    for (size_t i = 0; i < 4; i++) {
        opscope__value_release(&outputs[i]);
    }
    opscope__value_release(&inputs[0]);
    CHECK_EQUAL(heap.live_bytes, 0);
    return result;
}

static void a_run_releases_all_that_it_made(void)
{
    uint64_t before = live_bytes();
    struct opscope__program *program = program_of(everything);
    for (int64_t rounds = 0; rounds < 6; rounds++) {
        static const float fibonacci[] = {1, 2, 3, 5, 8, 13};
        CHECK(run_everything(program, rounds, false) == fibonacci[rounds]);
        run_everything(program, rounds, true);
    }
    opscope__program_release(program);
    CHECK_EQUAL(live_bytes(), before);
}

static void *run_often(void *program)
{
    for (int i = 0; i < 300; i++) {
        CHECK(run_everything(program, 5, false) == 13);
    }
    return NULL;
}

static void threads_run_one_program_at_once(void)
{
    struct opscope__program *program = program_of(everything);
    pthread_t threads[4];
    for (size_t i = 0; i < 4; i++) {
        CHECK_EQUAL(pthread_create(&threads[i], NULL, run_often, program), 0);
    }
    for (size_t i = 0; i < 4; i++) {
        CHECK_EQUAL(pthread_join(threads[i], NULL), 0);
    }
    opscope__program_release(program);
}

static void a_program_may_have_no_operands(void)
{
    struct opscope__program *program = program_of("graph():\n  return ()\n");
    struct opscope__heap heap = {0};
    CHECK_EQUAL(opscope__program_run(program, &heap, NULL, NULL, NULL), OPSCOPE_OK);
    opscope__program_release(program);
}

/* ---- how runs end ------------------------------------------------------------------------------- */

static const char endless[] = "graph(%x : Tensor, %most : int):\n"
                              "  %yes : bool = prim::Constant[value=True]()\n"
                              "  %l : List[Tensor] = prim::ListConstruct(%x)\n"
                              "  prim::Loop(%most, %yes)\n"
                              "    block0(%i : int):\n"
                              "      py::append(%l, %x) # net.py:7:2\n"
                              "      -> (%yes)\n"
                              "  return (%l)\n";

static int run_endless(struct opscope__heap *heap, const struct opscope__run_options *options)
{
    struct opscope__program *program = program_of(endless);
    const struct opscope__value inputs[] = {program_tensor(1), opscope__value_int(INT64_MAX)};
    struct opscope__value output;
    int status = opscope__program_run(program, heap, inputs, options, &output);
    CHECK_EQUAL(heap->live_bytes, 0);
    opscope__value_release(&inputs[0]);
    opscope__program_release(program);
    return status;
}

static void a_heap_without_room_ends_a_run(void)
{
    struct opscope__heap heap = {.limit_bytes = 1 << 20};
    CHECK_EQUAL(run_endless(&heap, NULL), OPSCOPE_ERR_NO_MEMORY);
    CHECK_EQUAL(opscope_tensor_error_kind(), OPSCOPE_ERROR_MEMORY);
    CHECK(strstr(opscope_tensor_error(), "1048576 bytes (net.py:7:2)") != NULL);
}

static void a_limit_of_rounds_ends_a_run(void)
{
    struct opscope__heap heap = {0};
    const struct opscope__run_options options = {.rounds_limit = 1000};
    CHECK_EQUAL(run_endless(&heap, &options), OPSCOPE_ERR_INVALID);
    CHECK(strstr(opscope_tensor_error(), "more than 1000 rounds") != NULL);
}

static uint32_t stop;

static int stop_now(void *user)
{
    ++*(int *)user;
    opscope__store_relaxed(&stop, 1);
    return 0;
}

static void a_stop_flag_ends_a_run(void)
{
    struct opscope__heap heap = {0};
    int polls = 0;
    const struct opscope__run_options options = {.stop = &stop, .poll = stop_now, .user = &polls};
    CHECK_EQUAL(run_endless(&heap, &options), OPSCOPE_ERR_INVALID);
    CHECK(strstr(opscope_tensor_error(), "stopped") != NULL);
    CHECK_EQUAL(polls, 1);
}

static void a_failure_has_its_kind_and_place(void)
{
    struct opscope__program *program = program_of(
        "graph(%text : str, %name : str):\n  prim::RaiseException(%text, %name) # a.py:1:2\n"
        "  return (%text)\n");
    static const struct {
        const char *name;
        opscope_error_kind kind;
        const char *text;
    } cases[] = {{"AssertionError", OPSCOPE_ERROR_ASSERTION, "why (a.py:1:2)"},
                 {"ZeroDivisionError", OPSCOPE_ERROR_ZERO_DIVISION, "why (a.py:1:2)"},
                 {"OverflowError", OPSCOPE_ERROR_OVERFLOW, "why (a.py:1:2)"},
                 {"KeyError", OPSCOPE_ERROR_RUNTIME, "KeyError: why (a.py:1:2)"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct opscope__heap heap = {0};
        const struct opscope__value inputs[] = {
            opscope__value_text(opscope__text_new(&heap, "why", 3)),
            opscope__value_text(opscope__text_new(&heap, cases[i].name, strlen(cases[i].name)))};
        struct opscope__value output;
        CHECK(opscope__program_run(program, &heap, inputs, NULL, &output) < 0);
        CHECK_EQUAL(opscope_tensor_error_kind(), cases[i].kind);
        CHECK_TEXT(opscope_tensor_error(), cases[i].text);
        opscope__value_release(&inputs[0]);
        opscope__value_release(&inputs[1]);
    }
    opscope__program_release(program);
}

static void an_input_of_another_type_is_refused(void)
{
    struct opscope__program *program = program_of("graph(%x : List[int]):\n  return (%x)\n");
    struct opscope__heap heap = {0};
    struct opscope__sequence *list = opscope__sequence_new(&heap, 1);
    CHECK_EQUAL(opscope__sequence_push(list, opscope__value_float(1)), OPSCOPE_OK);
    const struct opscope__value input = opscope__value_list(list);
    struct opscope__value output;
    CHECK(opscope__program_run(program, &heap, &input, NULL, &output) < 0);
    CHECK_TEXT(opscope_tensor_error(), "input %x is not of type List[int]");
    opscope__value_release(&input);
    opscope__program_release(program);
}

/* ---- what is refused ---------------------------------------------------------------------------- */

static void refused(const char *text, const char *reason)
{
    const char *is = program_refused(text);
    if (strstr(is, reason) == NULL) {
        fprintf(stderr, "\"%s\" has no \"%s\"\n", is, reason);
    }
    CHECK(strstr(is, reason) != NULL);
}

static void a_node_of_wrong_types_is_refused(void)
{
    refused("graph(%x : Tensor, %s : str):\n  %y : Tensor = core::add(%x, %s)\n  return (%y)\n",
            "%y = core::add: %s is str, which the input \"other\" does not take");
    refused("graph(%x : Tensor):\n  %y : int = core::neg(%x)\n  return (%y)\n", "its outputs");
    refused("graph(%x : Tensor):\n  %y : Tensor = core::add(%x)\n  return (%y)\n", "is missing");
    refused("graph(%x : Tensor):\n  %y : Tensor = core::nothing(%x)\n  return (%y)\n",
            "no operator of this name");
    refused("graph(%x : int):\n  %y : int = py::nothing(%x)\n  return (%y)\n", "no kind");
    refused("graph(%x : int, %z : float):\n  %y : int = py::add(%x, %z)\n  return (%y)\n",
            "it takes (int, int) or (float, float)");
    refused("graph(%x : int):\n  %y : float = py::neg(%x)\n  return (%y)\n", "it produces one int");
    refused("graph(%l : List[int], %x : Optional[int]):\n  py::append(%l, %x)\n  return (%l)\n",
            "not (List[int], Optional[int])");
    refused("graph(%x : int):\n  %y : List[str] = prim::ListConstruct(%x)\n  return (%y)\n",
            "%x is int, where it takes str");
    refused("graph(%x : Tuple[int]):\n  %y : int = prim::TupleIndex[index=1](%x)\n  return (%y)\n",
            "\"index\"");
    refused("graph():\n  %y : Tensor = prim::GetAttr[name=\"a.b\"]()\n  return (%y)\n",
            "no attribute \"a.b\"");
    refused("graph():\n  %y : Dtype = prim::Constant[value=\"float8\"]()\n  return (%y)\n",
            "float8");
    refused("graph():\n  %y : Tensor = prim::CallFunction[name=\"g\"]()\n  return (%y)\n",
            "no function \"g\"");
}

static void calls_that_lead_back_are_refused(void)
{
    static const char call_g[] = "graph(%x : int):\n  %y : int = prim::CallFunction[name=\"g\"](%x)"
                                 "\n  return (%y)\n";
    static const char call_f[] = "graph(%x : int):\n  %y : int = prim::CallFunction[name=\"f\"](%x)"
                                 "\n  return (%y)\n";
    struct opscope__program *program = NULL;
    CHECK(program_new((const char *const[]){"f", call_g, "g", call_f, NULL}, &program) < 0);
    CHECK(strstr(opscope_tensor_error(), "leads back to itself") != NULL);
}

/* Each function calls the next one twice. */
static void calls_that_grow_without_bound_are_refused(void)
{
    static char texts[60][160], names[60][8];
    const char *pairs[2 * 60 + 1] = {NULL};
    for (int i = 0; i < 60; i++) {
        snprintf(names[i], sizeof names[i], "f%d", i);
        snprintf(texts[i], sizeof texts[i],
                 "graph(%%x : int):\n  %%y : int = prim::CallFunction[name=\"f%d\"](%%x)\n"
                 "  %%z : int = prim::CallFunction[name=\"f%d\"](%%y)\n  return (%%z)\n",
                 i + 1, i + 1);
        pairs[2 * i] = names[i];
        pairs[2 * i + 1] = texts[i];
    }
    pairs[2 * 59 + 1] = "graph(%x : int):\n  %y : int = py::neg(%x)\n  return (%y)\n";
    struct opscope__program *program = NULL;
    CHECK(program_new(pairs, &program) < 0);
    CHECK(strstr(opscope_tensor_error(), "memory") != NULL);
}

int main(void)
{
    RUN(a_run_releases_all_that_it_made);
    RUN(threads_run_one_program_at_once);
    RUN(a_program_may_have_no_operands);
    RUN(a_heap_without_room_ends_a_run);
    RUN(a_limit_of_rounds_ends_a_run);
    RUN(a_stop_flag_ends_a_run);
    RUN(a_failure_has_its_kind_and_place);
    RUN(an_input_of_another_type_is_refused);
    RUN(a_node_of_wrong_types_is_refused);
    RUN(calls_that_lead_back_are_refused);
    RUN(calls_that_grow_without_bound_are_refused);
    return 0;
}
