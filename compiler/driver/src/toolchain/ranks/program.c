/*
 * Runs all ranks of a model: as threads, or with MLC_MPI one of them as the process that this is. Arguments: the folder of inputs
 * and outputs, the seconds to wait for another rank, the number of runs, and whether to write down what happens when.
 */
#define _POSIX_C_SOURCE 200809L
#include "program.h"

#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#ifdef MLC_MPI
#include "transport_mpi.h"
#else
#include <pthread.h>

#include "transport_threads.h"
#endif

/* Something that happened: a kernel `k`, the start `s` or `r` of a message, a wait `w`, the begin of a run `b`. */
typedef struct {
  char kind;
  size_t number;
  uint64_t begin;
  uint64_t end;
} event_t;

/* A rank that is watched. */
typedef struct {
  const mlc_transport* inner;
  mlc_transport outer;
  size_t rank;
  int tracing;
  event_t* events;
  size_t count;
  size_t room;
  int depth;
  size_t kernel;
  uint64_t began;
} watched_t;

static __thread watched_t* watched;

static uint64_t now(void) {
  struct timespec time;
  (void)clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void note(watched_t* own, char kind, size_t number, uint64_t begin, uint64_t end) {
  if (!own->tracing) {
    return;
  }
  if (own->count == own->room) {
    const size_t room = own->room == 0 ? 1024 : 2 * own->room;
    event_t* const events = (event_t*)realloc(own->events, room * sizeof(event_t));
    if (events == NULL) {
      own->tracing = 0;
      return;
    }
    own->events = events;
    own->room = room;
  }
  own->events[own->count].kind = kind;
  own->events[own->count].number = number;
  own->events[own->count].begin = begin;
  own->events[own->count].end = end;
  ++own->count;
}

/* What the compiler calls at the begin and the end of every function of the kernels' files: kernels are those that the main
 * function of the model calls, in order. */
void __cyg_profile_func_enter(void* function, void* site);
void __cyg_profile_func_exit(void* function, void* site);

void __cyg_profile_func_enter(void* function, void* site) {
  (void)function;
  (void)site;
  if (watched != NULL && ++watched->depth == 2) {
    watched->began = now();
  } else if (watched != NULL && watched->depth == 1) {
    watched->kernel = 0;
  }
}

void __cyg_profile_func_exit(void* function, void* site) {
  (void)function;
  (void)site;
  if (watched != NULL && watched->depth-- == 2) {
    note(watched, 'k', watched->kernel++, watched->began, now());
  }
}

#ifdef MLC_MPI
/* What to say when this process is told to end. */
static char last_words[256];

static void die(int number) {
  ssize_t written = write(2, last_words, strlen(last_words));
  (void)written;
  _exit(128 + number);
}

static void remember(size_t rank, const mlc_message* message) {
  char words[sizeof last_words];
  (void)snprintf(words, sizeof words, "rank %lu was stopped while it waited for \"%.80s\" %s rank %ld\n",
                 (unsigned long)rank, message->tensor, message->sent ? "to be taken by" : "from", (long)message->peer);
  (void)memcpy(last_words, words, sizeof words);
}

static void forget(size_t rank) {
  (void)snprintf(last_words, sizeof last_words, "rank %lu was stopped\n", (unsigned long)rank);
}
#else
/* How many seconds ranks have for their last words when one has failed. */
#define GRACE 2u

static void die(int number) {
  (void)number;
  _exit(1);
}

static void remember(size_t rank, const mlc_message* message) {
  (void)rank;
  (void)message;
}

static void forget(size_t rank) { (void)rank; }
#endif

static int32_t watch_send(void* context, size_t number, const mlc_message* message, const void* data) {
  watched_t* const own = (watched_t*)context;
  note(own, 's', number, now(), 0);
  return own->inner->send(own->inner->context, number, message, data);
}

static int32_t watch_receive(void* context, size_t number, const mlc_message* message, void* data) {
  watched_t* const own = (watched_t*)context;
  note(own, 'r', number, now(), 0);
  return own->inner->receive(own->inner->context, number, message, data);
}

static int32_t watch_wait(void* context, size_t number, const mlc_message* message) {
  watched_t* const own = (watched_t*)context;
  const uint64_t begin = now();
  int32_t status;
  remember(own->rank, message);
  status = own->inner->wait(own->inner->context, number, message);
  forget(own->rank);
  note(own, 'w', number, begin, now());
  return status;
}

static void watch_abort(void* context) {
  watched_t* const own = (watched_t*)context;
  own->inner->abort(own->inner->context);
}

static const char* watch_error(void* context) {
  watched_t* const own = (watched_t*)context;
  return own->inner->error(own->inner->context);
}

static void begin_run(void) { note(watched, 'b', 0, now(), 0); }

static int write_trace(const watched_t* own, const char* folder) {
  char path[4096];
  FILE* file;
  size_t index;
  (void)snprintf(path, sizeof path, "%s/rank%lu.trace", folder, (unsigned long)own->rank);
  file = fopen(path, "w");
  for (index = 0; file != NULL && index < own->count; ++index) {
    const event_t* const event = &own->events[index];
    (void)fprintf(file, "%c %lu %llu %llu\n", event->kind, (unsigned long)event->number,
                  (unsigned long long)event->begin, (unsigned long long)event->end);
  }
  return file == NULL || fclose(file) != 0;
}

/* Runs a rank, and says on standard error what went wrong. */
static int run_rank(const mlc_transport* transport, size_t rank, char** arguments) {
  watched_t own;
  int status;
  (void)memset(&own, 0, sizeof own);
  own.inner = transport;
  own.outer.context = &own;
  own.outer.send = watch_send;
  own.outer.receive = watch_receive;
  own.outer.wait = watch_wait;
  own.outer.abort = watch_abort;
  own.outer.error = watch_error;
  own.rank = rank;
  own.tracing = strcmp(arguments[4], "1") == 0;
  watched = &own;
  forget(rank);
  status = ranks[rank].run(&own.outer, arguments[1], strtoul(arguments[3], NULL, 10), begin_run);
  watched = NULL;
  if (status != 0) {
    const char* const error = transport->error(transport->context);
    if (error[0] != '\0') {
      fprintf(stderr, "%s\n", error);
    } else {
      fprintf(stderr, "rank %lu: the model failed with status %d\n", (unsigned long)rank, status);
    }
    (void)fflush(stderr);
    transport->abort(transport->context);
  } else if (own.tracing && write_trace(&own, arguments[1]) != 0) {
    fprintf(stderr, "rank %lu: can't write what happened\n", (unsigned long)rank);
    status = 2;
  }
  free(own.events);
  return status;
}

#ifdef MLC_MPI
int main(int argc, char** argv) {
  double timeout;
  int rank = 0;
  int processes = 0;
  int status;
  mlc_mpi* mpi;
  if (argc != 5) {
    fprintf(stderr, "wrong number of arguments\n");
    return 2;
  }
  timeout = strtod(argv[2], NULL);
  (void)strcpy(last_words, "a rank was stopped before all ranks were there\n");
  (void)signal(SIGTERM, die);
  (void)signal(SIGALRM, die);
  (void)alarm((unsigned)timeout + 1u);
  if (MPI_Init(&argc, &argv) != MPI_SUCCESS) {
    fprintf(stderr, "can't start MPI\n");
    return 2;
  }
  (void)MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  (void)MPI_Comm_size(MPI_COMM_WORLD, &processes);
  mpi = (size_t)rank < rank_count
            ? mlc_mpi_open(MPI_COMM_WORLD, rank, (int)rank_count, ranks[rank].messages, timeout)
            : NULL;
  (void)alarm(0);
  if (mpi == NULL) {
    fprintf(stderr, "rank %d: the model has %lu ranks, MPI started %d processes, or refuses\n", rank,
            (unsigned long)rank_count, processes);
    (void)MPI_Abort(MPI_COMM_WORLD, 2);
    return 2;
  }
  /* Not before: what MPI sets for itself must not take its place. */
  (void)signal(SIGTERM, die);
  status = run_rank(mlc_mpi_transport(mpi), (size_t)rank, argv);
  mlc_mpi_close(mpi);
  (void)MPI_Finalize();
  return status != 0;
}
#else
typedef struct {
  pthread_t thread;
  const mlc_transport* transport;
  size_t rank;
  char** arguments;
  int status;
} job_t;

static void* work(void* argument) {
  job_t* const job = (job_t*)argument;
  job->status = run_rank(job->transport, job->rank, job->arguments);
  if (job->status != 0) {
    /* One that computes would not notice for long. */
    (void)alarm(GRACE);
  }
  return NULL;
}

int main(int argc, char** argv) {
  size_t* const messages = (size_t*)calloc(rank_count, sizeof(size_t));
  job_t* const jobs = (job_t*)calloc(rank_count, sizeof(job_t));
  mlc_threads* threads;
  int status = 0;
  size_t rank;
  size_t started;
  if (argc != 5 || messages == NULL || jobs == NULL) {
    fprintf(stderr, "wrong number of arguments, or out of memory\n");
    return 2;
  }
  (void)signal(SIGALRM, die);
  for (rank = 0; rank < rank_count; ++rank) {
    messages[rank] = ranks[rank].messages;
  }
  threads = mlc_threads_open(rank_count, messages, strtod(argv[2], NULL));
  if (threads == NULL) {
    fprintf(stderr, "out of memory\n");
    return 2;
  }
  for (started = 0; started < rank_count; ++started) {
    job_t* const job = &jobs[started];
    job->transport = mlc_threads_transport(threads, started);
    job->rank = started;
    job->arguments = argv;
    if (pthread_create(&job->thread, NULL, work, job) != 0) {
      fprintf(stderr, "rank %lu: can't start a thread\n", (unsigned long)started);
      job->transport->abort(job->transport->context);
      status = 2;
      break;
    }
  }
  for (rank = 0; rank < started; ++rank) {
    (void)pthread_join(jobs[rank].thread, NULL);
    status = jobs[rank].status != 0 ? 1 : status;
  }
  mlc_threads_close(threads);
  free(messages);
  free(jobs);
  return status;
}
#endif
