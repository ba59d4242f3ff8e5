/* record/refusal.h -- the ledger entry of a process that cannot have a segment. */
#ifndef OPSCOPE_RECORD_REFUSAL_H
#define OPSCOPE_RECORD_REFUSAL_H

/* Writes down in `directory`, or where it cannot be written in /tmp/opscope-<euid>, why this forked
 * child goes unobserved: an opscope_status. Where neither takes it, nothing. The form and the
 * places are those of opscope/attachment/ledger.py. */
void opscope__refusal_write(const char *directory, int status);

#endif
