/* recorder/ledger.h -- the ledger entry of a process that cannot have a segment. */
#ifndef OPSCOPE_RECORDER_LEDGER_H
#define OPSCOPE_RECORDER_LEDGER_H

/* Writes into `directory`, or if that fails into /tmp/opscope-<euid>, why this forked child is not
 * observed: an opscope_status. If both fail, it writes nothing. opscope/attachment/ledger.py
 * defines the format and the places. */
void opscope__ledger_write(const char *directory, int status);

#endif
