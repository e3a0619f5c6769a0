/* Messages between ranks that are processes, of one machine or of several, by MPI. */
#ifndef MLC_TRANSPORT_MPI_H_
#define MLC_TRANSPORT_MPI_H_

#include <mpi.h>

#include "mlc/transport.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What one rank has of MPI. */
typedef struct mlc_mpi mlc_mpi;

/*
 * Prepares a rank for so many messages, on a communicator of its own that has the processes of the given one. MPI is initialised. A
 * wait for a peer ends after so many seconds. NULL when MPI refuses, there is no memory, this process is another rank, or there are
 * not as many processes as ranks.
 */
mlc_mpi* mlc_mpi_open(MPI_Comm communicator, int rank, int ranks, size_t messages, double timeout);

/* The transport of this process. Its `abort` ends the processes of all ranks. */
const mlc_transport* mlc_mpi_transport(mlc_mpi* mpi);

/* Frees what `mlc_mpi_open` made; before MPI_Finalize, when all messages are complete. */
void mlc_mpi_close(mlc_mpi* mpi);

#ifdef __cplusplus
}
#endif

#endif /* MLC_TRANSPORT_MPI_H_ */
