/* model/program/program.h -- models as programs, and how they are run.
 *
 * A program is made of graphs (GRAPHS.md) and attributes. Calls between its functions are inlined,
 * each node is checked, and the result is a flat list of instructions (code.h), which never
 * changes. Any number of threads may run one program at once: a run has its own registers.
 *
 * A run never reads out of bounds, whatever graph the program was made of. It ends by itself, by a
 * failure, or when its stop flag is set; texts and lists take no more memory than its heap allows.
 */
#ifndef OPSCOPE_MODEL_PROGRAM_H
#define OPSCOPE_MODEL_PROGRAM_H

#include "model/graph/passes/inline_calls.h"
#include "model/program/value.h"

struct opscope__program;
struct opscope__forked;

struct opscope__program_attribute {
    const char *name;
    opscope_tensor *tensor;
};

struct opscope__program_source {
    const struct opscope__graph_function *functions;
    size_t function_count;
    const struct opscope__program_attribute *attributes;
    size_t attribute_count;
    const char *entry;
    bool is_as_written;  /* run the graphs without passes (optimize.h) */
    bool keeps_operands; /* no result takes the memory of an operand that is not needed any more */
    /* Of a function that the program of another source forks; else NULL. */
    const struct opscope__program_source *outer;
    struct opscope__forked **forked;
};

/* The program keeps copies of the graphs that it needs, and references to the tensors. */
OPSCOPE_API int opscope__program_new(const struct opscope__program_source *source,
                                     struct opscope__program **out);
OPSCOPE_API void opscope__program_release(struct opscope__program *program); /* NULL is allowed */
/* The entry's graph as it runs, after all calls were inlined, and after the passes: its inputs and
 * outputs are the program's. */
OPSCOPE_API const struct opscope__model_graph *opscope__program_graph(
    const struct opscope__program *program);

/* What a run and its tasks share. */
struct opscope__run_scope {
    uint32_t is_stopped; /* atomic: asks the tasks to stop, and the tasks of those */
    uint64_t rounds;     /* atomic: in the outermost, if rounds are limited, those of all */
    struct opscope__run_scope *outer; /* of the run that forked this one; NULL: none did */
};

/* Zero is a run without limits that prints to standard output. Tasks have the options of the run
 * that forked them: `poll` and `print` are called on their threads too. */
struct opscope__run_options {
    const uint32_t *stop;    /* any thread may set it, atomically; NULL: none */
    uint64_t rounds_limit;   /* of all loops together, those of tasks too; 0: none */
    int (*poll)(void *user); /* called now and then by loops; a negative status ends the run */
    int (*print)(void *user, const struct opscope__value *values, size_t count);
    void *user;
    struct opscope__run_scope *outer; /* of the run that forked this one; NULL: none did */
};

/* `inputs` are borrowed, and as many as the program takes; those whose type is wrong are refused.
 * Texts and lists among them and in `outputs` belong to `heap`. `outputs` has room for what the
 * program returns: new references. */
OPSCOPE_API int opscope__program_run(const struct opscope__program *program,
                                     struct opscope__heap *heap,
                                     const struct opscope__value *inputs,
                                     const struct opscope__run_options *options,
                                     struct opscope__value *outputs);
/* Whether a value is of a type. */
OPSCOPE_API bool opscope__value_is_of(const struct opscope__value *value,
                                      const struct opscope__graph_type *type);

#endif
