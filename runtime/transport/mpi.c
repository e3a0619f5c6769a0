/* Messages by MPI: non-blocking point-to-point operations, the channel as the tag, on a communicator of our own. */
#define _POSIX_C_SOURCE 200809L
#include "transport_mpi.h"

#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* How often a wait asks MPI before it lets other processes have the processor for longer. */
#define EAGER_POLLS 2000

struct mlc_mpi {
  mlc_transport transport;
  MPI_Comm communicator;
  int rank;
  int largest_tag;
  double timeout;
  size_t count;
  MPI_Request* requests;
  char error[MPI_MAX_ERROR_STRING + 192];
};

/* Says what failed at which message. */
static int32_t fault(mlc_mpi* mpi, int32_t status, const mlc_message* message, const char* what) {
  (void)snprintf(mpi->error, sizeof mpi->error, "rank %d, \"%.80s\" %s rank %ld: %s", mpi->rank, message->tensor,
                 message->sent ? "to" : "from", (long)message->peer, what);
  return status;
}

/* Says what MPI says. */
static int32_t check(mlc_mpi* mpi, const mlc_message* message, int code) {
  char text[MPI_MAX_ERROR_STRING + 1];
  int length = 0;
  int kind = MPI_ERR_OTHER;
  if (code == MPI_SUCCESS) {
    return MLC_TRANSPORT_OK;
  }
  (void)MPI_Error_class(code, &kind);
  if (kind == MPI_ERR_TRUNCATE) {
    (void)snprintf(text, sizeof text, "more than the %lu bytes came that are received", (unsigned long)message->bytes);
    return fault(mpi, MLC_TRANSPORT_SIZE, message, text);
  }
  if (MPI_Error_string(code, text, &length) != MPI_SUCCESS) {
    (void)strcpy(text, "MPI failed");
  }
  return fault(mpi, MLC_TRANSPORT_FAILED, message, text);
}

/* Whether MPI can have such a message under such a number. */
static int32_t accept(mlc_mpi* mpi, size_t number, const mlc_message* message) {
  if (number >= mpi->count) {
    return fault(mpi, MLC_TRANSPORT_FAILED, message, "the message's number is too large");
  }
  if (message->bytes > INT_MAX) {
    return fault(mpi, MLC_TRANSPORT_FAILED, message, "MPI counts the bytes of a message in an int");
  }
  if (message->channel > mpi->largest_tag) {
    return fault(mpi, MLC_TRANSPORT_FAILED, message, "there are more channels than tags of MPI");
  }
  return MLC_TRANSPORT_OK;
}

static int32_t send_message(void* context, size_t number, const mlc_message* message, const void* data) {
  mlc_mpi* const mpi = (mlc_mpi*)context;
  const int32_t status = accept(mpi, number, message);
  if (status != MLC_TRANSPORT_OK) {
    return status;
  }
  return check(mpi, message, MPI_Isend(data, (int)message->bytes, MPI_BYTE, message->peer, message->channel,
                                       mpi->communicator, &mpi->requests[number]));
}

static int32_t receive_message(void* context, size_t number, const mlc_message* message, void* data) {
  mlc_mpi* const mpi = (mlc_mpi*)context;
  const int32_t status = accept(mpi, number, message);
  if (status != MLC_TRANSPORT_OK) {
    return status;
  }
  return check(mpi, message, MPI_Irecv(data, (int)message->bytes, MPI_BYTE, message->peer, message->channel,
                                       mpi->communicator, &mpi->requests[number]));
}

/* Whether as many bytes came as are received. */
static int32_t check_size(mlc_mpi* mpi, const mlc_message* message, MPI_Status* status) {
  char text[96];
  int bytes = 0;
  if (message->sent || (MPI_Get_count(status, MPI_BYTE, &bytes) == MPI_SUCCESS && (size_t)bytes == message->bytes)) {
    return MLC_TRANSPORT_OK;
  }
  (void)snprintf(text, sizeof text, "%d bytes came, %lu are received", bytes, (unsigned long)message->bytes);
  return fault(mpi, MLC_TRANSPORT_SIZE, message, text);
}

static int32_t wait_for_message(void* context, size_t number, const mlc_message* message) {
  mlc_mpi* const mpi = (mlc_mpi*)context;
  const struct timespec nap = {0, 50000};
  const double end = MPI_Wtime() + mpi->timeout;
  unsigned long polls = 0;
  char text[64];
  for (;;) {
    MPI_Status status;
    int complete = 0;
    const int32_t code = check(mpi, message, MPI_Test(&mpi->requests[number], &complete, &status));
    if (code != MLC_TRANSPORT_OK) {
      return code;
    }
    if (complete) {
      return check_size(mpi, message, &status);
    }
    if (MPI_Wtime() > end) {
      (void)snprintf(text, sizeof text, "%s after %g seconds", message->sent ? "not taken" : "nothing came", mpi->timeout);
      return fault(mpi, MLC_TRANSPORT_TIMEOUT, message, text);
    }
    if (++polls < EAGER_POLLS) {
      (void)sched_yield();
    } else {
      (void)nanosleep(&nap, NULL);
    }
  }
}

static void give_up(void* context) { (void)MPI_Abort(((mlc_mpi*)context)->communicator, 1); }

static const char* last_error(void* context) { return ((mlc_mpi*)context)->error; }

mlc_mpi* mlc_mpi_open(MPI_Comm communicator, int rank, int ranks, size_t messages, double timeout) {
  mlc_mpi* const mpi = (mlc_mpi*)calloc(1, sizeof(mlc_mpi));
  int processes = 0;
  int found = 0;
  size_t number;
  void* largest = NULL;
  if (mpi == NULL) {
    return NULL;
  }
  mpi->requests = (MPI_Request*)malloc((messages + 1) * sizeof(MPI_Request));
  if (mpi->requests == NULL || MPI_Comm_size(communicator, &processes) != MPI_SUCCESS || processes != ranks ||
      MPI_Comm_rank(communicator, &mpi->rank) != MPI_SUCCESS || mpi->rank != rank ||
      MPI_Comm_dup(communicator, &mpi->communicator) != MPI_SUCCESS) {
    free(mpi->requests);
    free(mpi);
    return NULL;
  }
  (void)MPI_Comm_set_errhandler(mpi->communicator, MPI_ERRORS_RETURN);
  (void)MPI_Comm_get_attr(mpi->communicator, MPI_TAG_UB, &largest, &found);
  mpi->largest_tag = found ? *(const int*)largest : 32767;
  mpi->timeout = timeout;
  mpi->count = messages;
  for (number = 0; number < messages; ++number) {
    mpi->requests[number] = MPI_REQUEST_NULL;
  }
  mpi->transport.context = mpi;
  mpi->transport.send = send_message;
  mpi->transport.receive = receive_message;
  mpi->transport.wait = wait_for_message;
  mpi->transport.abort = give_up;
  mpi->transport.error = last_error;
  return mpi;
}

const mlc_transport* mlc_mpi_transport(mlc_mpi* mpi) { return &mpi->transport; }

void mlc_mpi_close(mlc_mpi* mpi) {
  (void)MPI_Comm_free(&mpi->communicator);
  free(mpi->requests);
  free(mpi);
}
