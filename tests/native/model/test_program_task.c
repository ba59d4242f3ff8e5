/* tests/native/model/test_program_task.c -- functions of a model that run as tasks: their results,
 * what they release, how they end, and the limits that they share. */
#include <pthread.h>

#include "program_texts.h"

static const char double_of[] = "graph(%x : Tensor):\n"
                                "  %y : Tensor = core::add(%x, %x)\n"
                                "  return (%y)\n";

/* The sum of 2x over `n` tasks, which all run before the first is waited for. */
static const char sum_of_tasks[] = "graph(%x : Tensor, %n : int):\n"
                                   "  %yes : bool = prim::Constant[value=True]()\n"
                                   "  %one : int = prim::Constant[value=1]()\n"
                                   "  %futures : List[Future[Tensor]] = prim::ListConstruct()\n"
                                   "  prim::Loop(%n, %yes)\n"
                                   "    block0(%i : int):\n"
                                   "      %f : Future[Tensor] = prim::Fork[name=\"double\"](%x)\n"
                                   "      py::append(%futures, %f)\n"
                                   "      -> (%yes)\n"
                                   "  %zero : Tensor = core::sub(%x, %x)\n"
                                   "  %sum : Tensor = prim::Loop(%n, %yes, %zero)\n"
                                   "    block0(%j : int, %before : Tensor):\n"
                                   "      %g : Future[Tensor] = py::getitem(%futures, %j)\n"
                                   "      %part : Tensor = prim::Wait(%g)\n"
                                   "      %after : Tensor = core::add(%before, %part)\n"
                                   "      -> (%yes, %after)\n"
                                   "  return (%sum)\n";

static struct opscope__program *sums(void)
{
    struct opscope__program *program = NULL;
    const char *const texts[] = {"forward", sum_of_tasks, "double", double_of, NULL};
    int status = program_new(texts, &program);
    if (status != OPSCOPE_OK) {
        fprintf(stderr, "%s\n", opscope_tensor_error());
    }
    CHECK_EQUAL(status, OPSCOPE_OK);
    return program;
}

static float sum(const struct opscope__program *program, int64_t tasks)
{
    struct opscope__heap heap = {.limit_bytes = 1 << 20};
    const struct opscope__value inputs[] = {program_tensor(1), opscope__value_int(tasks)};
    struct opscope__value output;
    CHECK_EQUAL(opscope__program_run(program, &heap, inputs, NULL, &output), OPSCOPE_OK);
    float result = *(float *)opscope_tensor_data(output.as.tensor);
    opscope__value_release(&output);
    opscope__value_release(&inputs[0]);
    CHECK_EQUAL(heap.live_bytes, 0);
    CHECK_EQUAL(heap.below_bytes, 0);
    return result;
}

static void tasks_give_their_results(void)
{
    struct opscope__program *program = sums();
    CHECK(sum(program, 0) == 0);
    CHECK(sum(program, 1) == 2);
    CHECK(sum(program, 500) == 1000);
    opscope__program_release(program);
}

static void *sum_often(void *program)
{
    for (int i = 0; i < 50; i++) {
        CHECK(sum(program, 7) == 14);
    }
    return NULL;
}

static void threads_fork_tasks_of_one_program(void)
{
    struct opscope__program *program = sums();
    pthread_t threads[4];
    for (size_t i = 0; i < 4; i++) {
        CHECK_EQUAL(pthread_create(&threads[i], NULL, sum_often, program), 0);
    }
    for (size_t i = 0; i < 4; i++) {
        CHECK_EQUAL(pthread_join(threads[i], NULL), 0);
    }
    opscope__program_release(program);
}

/* ---- lists and texts are copied ------------------------------------------------------------------ */

static void a_task_has_lists_of_its_own(void)
{
    static const char caller[] =
        "graph(%l : List[str]):\n"
        "  %text : str = prim::Constant[value=\"caller\"]()\n"
        "  %f : Future[List[str]] = prim::Fork[name=\"g\"](%l)\n"
        "  py::append(%l, %text)\n"
        "  %one : List[str] = prim::Wait(%f)\n"
        "  py::append(%one, %text)\n"
        "  %two : List[str] = prim::Wait(%f)\n"
        "  %counts : Tuple[List[str], List[str], List[str]] = prim::TupleConstruct(%l, %one, %two)\n"
        "  return (%counts)\n";
    static const char task[] = "graph(%l : List[str]):\n"
                               "  %text : str = prim::Constant[value=\"task\"]()\n"
                               "  py::append(%l, %text)\n"
                               "  py::append(%l, %text)\n"
                               "  return (%l)\n";
    struct opscope__program *program = NULL;
    const char *const texts[] = {"forward", caller, "g", task, NULL};
    CHECK_EQUAL(program_new(texts, &program), OPSCOPE_OK);
    struct opscope__heap heap = {0};
    struct opscope__sequence *list = opscope__sequence_new(&heap, 0);
    const struct opscope__value input = opscope__value_list(list);
    struct opscope__value output;
    CHECK_EQUAL(opscope__program_run(program, &heap, &input, NULL, &output), OPSCOPE_OK);
    CHECK_EQUAL(output.as.sequence->items[0].as.sequence->count, 1);
    CHECK_EQUAL(output.as.sequence->items[1].as.sequence->count, 3);
    CHECK_EQUAL(output.as.sequence->items[2].as.sequence->count, 2);
    opscope__value_release(&output);
    opscope__value_release(&input);
    CHECK_EQUAL(heap.live_bytes, 0);
    opscope__program_release(program);
}

/* ---- how tasks end -------------------------------------------------------------------------------- */

static const char endless[] = "graph(%most : int):\n"
                              "  %yes : bool = prim::Constant[value=True]()\n"
                              "  %last : int = prim::Loop(%most, %yes, %most)\n"
                              "    block0(%i : int, %before : int):\n"
                              "      %after : int = py::neg(%before)\n"
                              "      -> (%yes, %after)\n"
                              "  return (%last)\n";

static int run_endless(const char *caller, const struct opscope__run_options *options)
{
    struct opscope__program *program = NULL;
    const char *const texts[] = {"forward", caller, "endless", endless, NULL};
    CHECK_EQUAL(program_new(texts, &program), OPSCOPE_OK);
    struct opscope__heap heap = {0};
    const struct opscope__value input = opscope__value_int(INT64_MAX);
    struct opscope__value output;
    int status = opscope__program_run(program, &heap, &input, options, &output);
    CHECK_EQUAL(heap.live_bytes, 0);
    opscope__program_release(program);
    return status;
}

static void a_run_that_fails_stops_its_tasks(void)
{
    CHECK(run_endless("graph(%n : int):\n"
                      "  %text : str = prim::Constant[value=\"the caller's\"]()\n"
                      "  %name : str = prim::Constant[value=\"ValueError\"]()\n"
                      "  %f : Future[int] = prim::Fork[name=\"endless\"](%n)\n"
                      "  %g : Future[int] = prim::Fork[name=\"endless\"](%n)\n"
                      "  prim::RaiseException(%text, %name)\n"
                      "  return (%n)\n",
                      NULL) < 0);
    CHECK_TEXT(opscope_tensor_error(), "the caller's (prim::RaiseException)");
}

static void rounds_of_tasks_count_together(void)
{
    const struct opscope__run_options options = {.rounds_limit = 1000};
    CHECK(run_endless("graph(%n : int):\n"
                      "  %m : int = prim::Constant[value=600]()\n"
                      "  %f : Future[int] = prim::Fork[name=\"endless\"](%m)\n"
                      "  %g : Future[int] = prim::Fork[name=\"endless\"](%m)\n"
                      "  return (%n)\n",
                      &options) < 0);
    CHECK(strstr(opscope_tensor_error(), "more than 1000 rounds") != NULL);
}

/* Each task returns a text of 40,960 bytes, which nobody takes. */
static void tasks_share_the_limit_of_memory(void)
{
    static const char caller[] = "graph(%n : int):\n"
                                 "  %yes : bool = prim::Constant[value=True]()\n"
                                 "  prim::Loop(%n, %yes)\n"
                                 "    block0(%i : int):\n"
                                 "      %f : Future[str] = prim::Fork[name=\"g\"]()\n"
                                 "      -> (%yes)\n"
                                 "  return (%n)\n";
    static const char task[] = "graph():\n"
                               "  %yes : bool = prim::Constant[value=True]()\n"
                               "  %n : int = prim::Constant[value=12]()\n"
                               "  %text : str = prim::Constant[value=\"0123456789\"]()\n"
                               "  %long : str = prim::Loop(%n, %yes, %text)\n"
                               "    block0(%i : int, %before : str):\n"
                               "      %after : str = py::add(%before, %before)\n"
                               "      -> (%yes, %after)\n"
                               "  return (%long)\n";
    struct opscope__program *program = NULL;
    const char *const texts[] = {"forward", caller, "g", task, NULL};
    CHECK_EQUAL(program_new(texts, &program), OPSCOPE_OK);
    for (int64_t tasks = 1; tasks <= 10; tasks += 9) {
        struct opscope__heap heap = {.limit_bytes = 200000};
        const struct opscope__value input = opscope__value_int(tasks);
        struct opscope__value output;
        int status = opscope__program_run(program, &heap, &input, NULL, &output);
        CHECK_EQUAL(status, tasks == 1 ? OPSCOPE_OK : OPSCOPE_ERR_NO_MEMORY);
        CHECK_EQUAL(heap.live_bytes, 0);
        CHECK_EQUAL(heap.below_bytes, 0);
    }
    CHECK(strstr(opscope_tensor_error(), "200000 bytes") != NULL);
    opscope__program_release(program);
}

/* ---- what is refused ------------------------------------------------------------------------------ */

static void refused(const char *caller, const char *reason)
{
    struct opscope__program *program = NULL;
    const char *const texts[] = {"forward", caller, "double", double_of, NULL};
    CHECK(program_new(texts, &program) < 0);
    if (strstr(opscope_tensor_error(), reason) == NULL) {
        fprintf(stderr, "\"%s\" has no \"%s\"\n", opscope_tensor_error(), reason);
    }
    CHECK(strstr(opscope_tensor_error(), reason) != NULL);
}

static void what_is_no_task_is_refused(void)
{
    refused("graph(%x : Tensor):\n  %f : Future[Tensor] = prim::Fork[name=\"g\"](%x)\n"
            "  return (%x)\n",
            "no function \"g\"");
    refused("graph(%x : Tensor):\n  %f : Future[Tensor] = prim::Fork(%x)\n  return (%x)\n",
            "no attribute \"name\"");
    refused("graph(%x : Tensor):\n  %f : Tensor = prim::Fork[name=\"double\"](%x)\n"
            "  return (%x)\n",
            "one output, a Future");
    refused("graph(%x : Tensor):\n  %f : Future[int] = prim::Fork[name=\"double\"](%x)\n"
            "  return (%x)\n",
            "a future of int, where \"double\" returns Tensor");
    refused("graph(%x : int):\n  %f : Future[Tensor] = prim::Fork[name=\"double\"](%x)\n"
            "  return (%x)\n",
            "input 0 is int, where \"double\" takes Tensor");
    refused("graph(%x : Tensor):\n  %f : Future[Tensor] = prim::Fork[name=\"double\"]()\n"
            "  return (%x)\n",
            "0 inputs, where \"double\" has 1");
    refused("graph(%x : Tensor):\n  %f : Future[Tensor] = prim::Fork[name=\"forward\"](%x)\n"
            "  return (%x)\n",
            "leads back to itself");
    refused("graph(%x : Tensor):\n  %f : Future[Tensor] = prim::Fork[name=\"double\"](%x)\n"
            "  return (%f)\n",
            "result 0 has a future");
    refused("graph(%f : Future[Tensor]):\n  %x : Tensor = prim::Wait(%f)\n  return (%x)\n",
            "input 0 has a future");
    refused("graph(%x : Tensor):\n  %y : Tensor = prim::Wait(%x)\n  return (%y)\n",
            "a wait takes one Future");
}

int main(void)
{
    RUN(tasks_give_their_results);
    RUN(threads_fork_tasks_of_one_program);
    RUN(a_task_has_lists_of_its_own);
    RUN(a_run_that_fails_stops_its_tasks);
    RUN(rounds_of_tasks_count_together);
    RUN(tasks_share_the_limit_of_memory);
    RUN(what_is_no_task_is_refused);
    return 0;
}
