/* record/process.c -- starting the library in a process, and what a fork does to it.
 *
 * Locks are taken in one order everywhere: settings, segment, window, pool, trace, those of
 * listeners to demand (record/demand.h), registry, operators, usage. A fork takes them all in that
 * order first, so the child finds every structure whole; it then drops what belonged to threads
 * that do not exist there.
 */
#include "record/process.h"

#include <pthread.h>

#include "base/fence.h"
#include "record/metric.h"
#include "record/demand.h"
#include "record/op.h"
#include "record/pool.h"
#include "record/recorder.h"
#include "record/segment.h"
#include "record/thread.h"
#include "record/trace.h"
#include "record/usage.h"
#include "record/window.h"

static pthread_once_t started = PTHREAD_ONCE_INIT;

static void fork_prepare(void)
{
    opscope__settings_lock();
    opscope__segment_lock();
    opscope__window_lock();
    opscope__pool_lock();
    opscope__trace_lock();
    opscope__demand_fork_prepare();
    opscope__registry_lock();
    opscope__ops_lock();
    opscope__usage_lock();
    opscope__metrics_fork_prepare();
}

static void unlock_all(void)
{
    opscope__usage_unlock();
    opscope__ops_unlock();
    opscope__registry_unlock();
    opscope__demand_fork_done();
    opscope__trace_unlock();
    opscope__pool_unlock();
    opscope__window_unlock();
    opscope__segment_unlock();
    opscope__settings_unlock();
}

static void fork_child(void)
{
    opscope__registry_fork_child();
    opscope__pool_fork_child();
    opscope__window_fork_child();
    opscope__recorder_fork_child();
    opscope__trace_fork_child();
    unlock_all();
    opscope__trace_fork_child_done();
    opscope__recorder_fork_child_done();
}

static void start(void)
{
    opscope__fence_start();
    pthread_atfork(fork_prepare, unlock_all, fork_child);
}

void opscope__process_start(void)
{
    pthread_once(&started, start);
}
