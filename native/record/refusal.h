/* record/refusal.h -- the ledger entry of a process that cannot have a segment. */
#ifndef OPSCOPE_RECORD_REFUSAL_H
#define OPSCOPE_RECORD_REFUSAL_H

/* Writes down in `directory` why this forked child goes unobserved: an opscope_status. Where that
 * cannot be written either, nothing. The form is that of opscope/attachment/ledger.py. */
void opscope__refusal_write(const char *directory, int status);

#endif
