/* marks/attach.c -- names the injected library in the environment, and counts its clients. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* RTLD_NODELETE */
#endif
#include <dirent.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/atomics.h"
#include "bridges/marks/clients.h"
#include "bridges/marks/range.h"
#include "bridges/marks/receiver.h"
#include "private/marks.h"

static const char *const variables[] = {"NVTX_INJECTION64_PATH", "INTEL_LIBITTNOTIFY64"};
static const char LIBRARY[] = "/libopscope_marks.so";

static uint32_t client_counts[OPSCOPE_MARKS_KIND_COUNT]; /* relaxed */

static int take_nvtx(opscope__nvtx_get_table *get_table)
{
    if (!opscope__marks_take_nvtx(get_table)) {
        return 0;
    }
    (void)opscope__add_relaxed(&client_counts[OPSCOPE_MARKS_NVTX], 1);
    return 1;
}

static void take_itt(struct opscope__itt_global *global)
{
    opscope__marks_take_itt(global);
    (void)opscope__add_relaxed(&client_counts[OPSCOPE_MARKS_ITT], 1);
}

static const struct opscope__marks_receiver receiver = {.nvtx = take_nvtx, .itt = take_itt};

/* ---- the environment ------------------------------------------------------------------------------ */

static bool has_one_thread(void)
{
    DIR *tasks = opendir("/proc/self/task");
    size_t count = 0;
    if (tasks == NULL) {
        return false;
    }
    for (const struct dirent *task; (task = readdir(tasks)) != NULL;) {
        count += task->d_name[0] != '.';
    }
    (void)closedir(tasks);
    return count == 1;
}

/* Whether it names a library of ours, perhaps that of the Opscope that observes the parent. */
static bool is_ours(const char *value)
{
    const size_t bytes = strlen(value);
    return bytes >= sizeof LIBRARY - 1 &&
           strcmp(value + bytes - (sizeof LIBRARY - 1), LIBRARY) == 0;
}

static int name_library(const char *variable, const char *library)
{
    const char *value = getenv(variable);
    if (value != NULL && strcmp(value, library) == 0) {
        return OPSCOPE_OK;
    }
    if (value != NULL && !is_ours(value)) {
        return OPSCOPE_ERR_BUSY;
    }
    if (!has_one_thread()) {
        return OPSCOPE_ERR_WOULD_DEADLOCK;
    }
    return setenv(variable, library, 1) == 0 ? OPSCOPE_OK : OPSCOPE_ERR_NO_MEMORY;
}

/* ---- life ------------------------------------------------------------------------------------ */

static int hand_over(const char *library)
{
    /* Never closed: clients keep the addresses of its functions. */
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (handle == NULL) {
        return OPSCOPE_ERR_NOT_FOUND;
    }
    opscope__marks_receive *receive =
        (opscope__marks_receive *)dlsym(handle, OPSCOPE__MARKS_RECEIVE);
    if (receive == NULL) {
        return OPSCOPE_ERR_NOT_FOUND;
    }
    receive(&receiver);
    return OPSCOPE_OK;
}

int opscope_marks_attach(opscope_marks_kind kind, const char *library)
{
    int status = hand_over(library);
    if (status == OPSCOPE_OK) {
        opscope__marks_measure();
        status = name_library(variables[kind], library);
    }
    if (status == OPSCOPE_OK) {
        opscope__marks_follow(kind, true);
    }
    return status;
}

void opscope_marks_detach(opscope_marks_kind kind)
{
    opscope__marks_follow(kind, false);
    const char *value = getenv(variables[kind]);
    if (value != NULL && is_ours(value) && has_one_thread()) {
        (void)unsetenv(variables[kind]);
    }
}

uint32_t opscope_marks_clients(opscope_marks_kind kind)
{
    return opscope__load_relaxed(&client_counts[kind]);
}
