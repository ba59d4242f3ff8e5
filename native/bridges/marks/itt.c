/* marks/itt.c -- ITT's functions as a collector provides them: the tasks of a thread,
 * and those that overlap.
 *
 * A client makes the strings and domains itself that it asks for before its first mark, and asks
 * the collector for later ones. Tasks with clocks of their own, frames, counters and all else are
 * not followed: the client then skips their functions, or they do nothing.
 */
#include "bridges/marks/clients.h"

#include <stdlib.h>
#include <string.h>

#include "base/atomics.h"
#include "bridges/marks/moving.h"
#include "bridges/marks/range.h"
#include "bridges/marks/texts.h"

enum { DOMAIN_LIMIT = 256 };

/* Filled in order, each once, with release. */
static struct opscope__itt_domain *domains[DOMAIN_LIMIT];
static struct opscope__itt_domain other = {.is_on = 1, .name = "other"};

/* ---- strings and domains -------------------------------------------------------------------------- */

static struct opscope__itt_string *create_string(const char *text)
{
    return text != NULL ? opscope__marks_text(text) : NULL;
}

static struct opscope__itt_domain *make_domain(const char *name)
{
    struct opscope__itt_domain *made = malloc(sizeof *made);
    if (made != NULL) {
        *made = (struct opscope__itt_domain){.is_on = 1, .name = opscope__marks_text(name)->text};
    }
    return made;
}

/* A client asks for a domain once, or every time that it marks: the same name gives the same one.
 */
static struct opscope__itt_domain *create_domain(const char *name)
{
    struct opscope__itt_domain *made = NULL;
    if (name == NULL) {
        return NULL;
    }
    for (size_t i = 0; i < DOMAIN_LIMIT; i++) {
        struct opscope__itt_domain *known = opscope__load_acquire(&domains[i]); /* partner: below */
        if (known == NULL) {
            made = made != NULL ? made : make_domain(name);
            if (made == NULL) {
                break;
            }
            if (opscope__replace_release(&domains[i], &known, made)) {
                return made;
            }
            known = opscope__load_acquire(&domains[i]); /* of another thread */
        }
        if (strcmp(known->name, name) == 0) {
            free(made);
            return known;
        }
    }
    free(made);
    return &other;
}

/* ---- tasks ------------------------------------------------------------------------------------- */

static void begin_task(const void *domain, struct opscope__itt_id id, struct opscope__itt_id parent,
                       const struct opscope__itt_string *name)
{
    (void)id;
    (void)parent;
    (void)opscope__marks_push(OPSCOPE_MARKS_ITT, domain, name != NULL ? name->text : NULL);
}

/* A task that is named by the address of its function. */
static void begin_function(const void *domain, struct opscope__itt_id id,
                           struct opscope__itt_id parent, const void *function)
{
    (void)id;
    (void)parent;
    (void)function;
    (void)opscope__marks_push(OPSCOPE_MARKS_ITT, domain, NULL);
}

static void end_task(const void *domain)
{
    (void)opscope__marks_pop(OPSCOPE_MARKS_ITT, domain);
}

static void begin_overlapped(const void *domain, struct opscope__itt_id id,
                             struct opscope__itt_id parent, const struct opscope__itt_string *name)
{
    (void)parent;
    opscope__marks_begin_task(domain, &id, name != NULL ? name->text : NULL);
}

static void end_overlapped(const void *domain, struct opscope__itt_id id)
{
    opscope__marks_end_task(domain, &id);
}

/* A program may report a task long after it ran, by times of its own: the time of the call says
 * nothing then. */
static void begin_overlapped_at(const void *domain, const void *clock, unsigned long long time,
                                struct opscope__itt_id id, struct opscope__itt_id parent,
                                const struct opscope__itt_string *name)
{
    if (clock == NULL && time == 0) { /* now */
        begin_overlapped(domain, id, parent, name);
    }
}

static void end_overlapped_at(const void *domain, const void *clock, unsigned long long time,
                              struct opscope__itt_id id)
{
    (void)clock;
    (void)time;
    end_overlapped(domain, id);
}

/* ---- a client ------------------------------------------------------------------------------------ */

static const struct {
    const char *name;
    opscope__itt_function function;
} provided[] = {
    {"__itt_domain_create", (opscope__itt_function)create_domain},
    {"__itt_string_handle_create", (opscope__itt_function)create_string},
    {"__itt_task_begin", (opscope__itt_function)begin_task},
    {"__itt_task_begin_fn", (opscope__itt_function)begin_function},
    {"__itt_task_end", (opscope__itt_function)end_task},
    {"__itt_task_begin_overlapped", (opscope__itt_function)begin_overlapped},
    {"__itt_task_end_overlapped", (opscope__itt_function)end_overlapped},
    {"__itt_task_begin_overlapped_ex", (opscope__itt_function)begin_overlapped_at},
    {"__itt_task_end_overlapped_ex", (opscope__itt_function)end_overlapped_at},
};

void opscope__marks_take_itt(struct opscope__itt_global *global)
{
    for (const struct opscope__itt_api *api = global->apis; api != NULL && api->name != NULL;
         api++) {
        for (size_t i = 0; i < sizeof provided / sizeof *provided; i++) {
            if (strcmp(api->name, provided[i].name) == 0) {
                *api->function = provided[i].function;
            }
        }
    }
}
