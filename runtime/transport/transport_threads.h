/* Messages between ranks that are threads of one process: for tests, and for trying models out. Needs POSIX threads. */
#ifndef MLC_TRANSPORT_THREADS_H_
#define MLC_TRANSPORT_THREADS_H_

#include "mlc/transport.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The mailboxes of all ranks. */
typedef struct mlc_threads mlc_threads;

/* Mailboxes for ranks with so many messages each, which wait for a peer so many seconds. NULL without memory. */
mlc_threads* mlc_threads_open(size_t ranks, const size_t* messages, double timeout);

/* The transport of one rank, for the thread that runs it. */
const mlc_transport* mlc_threads_transport(mlc_threads* threads, size_t rank);

/* Frees the mailboxes. No rank runs any more. */
void mlc_threads_close(mlc_threads* threads);

#ifdef __cplusplus
}
#endif

#endif /* MLC_TRANSPORT_THREADS_H_ */
