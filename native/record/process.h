/* record/process.h -- starting the library in a process, and what a fork does to it. */
#ifndef OPSCOPE_RECORD_PROCESS_H
#define OPSCOPE_RECORD_PROCESS_H

/* Idempotent and cheap; every entry that takes a lock calls it first. */
void opscope__process_start(void);

#endif
