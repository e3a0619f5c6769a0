/*
 * Mailboxes between threads. A message is copied once, from the sender's memory to the receiver's, by whoever comes second; until
 * then it waits in its own end's slot. All ends share one lock.
 */
#define _POSIX_C_SOURCE 200809L
#include "transport_threads.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* One end of a message that is under way, or was. */
typedef struct {
  const mlc_message* message;
  const void* source;
  void* target;
  /* When it was started, to keep messages of one channel in order; 0 when it waits for no peer. */
  unsigned long ticket;
} end_t;

typedef struct {
  mlc_transport transport;
  mlc_threads* threads;
  size_t rank;
  end_t* ends;
  size_t count;
  char error[320];
} mailbox_t;

struct mlc_threads {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  double timeout;
  unsigned long tickets;
  /* Why nothing goes on any more; empty as long as it does. */
  char failure[224];
  int32_t failed;
  size_t ranks;
  mailbox_t* mailboxes;
};

/* Makes every rank end. The first failure is the one that is told. */
static int32_t fail(mlc_threads* threads, int32_t status) {
  threads->failed = status;
  (void)pthread_cond_broadcast(&threads->changed);
  return status;
}

/* Tells a rank which of its messages will never be complete. */
static int32_t stopped(mailbox_t* own, const mlc_message* message) {
  (void)snprintf(own->error, sizeof own->error, "rank %lu stopped at \"%.40s\" %s rank %ld: %s", (unsigned long)own->rank,
                 message->tensor, message->sent ? "to" : "from", (long)message->peer, own->threads->failure);
  return MLC_TRANSPORT_PEER;
}

/* The oldest end of the peer's that belongs to a message. */
static end_t* partner(mailbox_t* own, const mlc_message* message) {
  mailbox_t* const peer = &own->threads->mailboxes[message->peer];
  end_t* found = NULL;
  size_t index;
  for (index = 0; index < peer->count; ++index) {
    end_t* const end = &peer->ends[index];
    if (end->ticket != 0 && end->message->peer == (int32_t)own->rank && end->message->channel == message->channel &&
        !end->message->sent == !!message->sent && (found == NULL || end->ticket < found->ticket)) {
      found = end;
    }
  }
  return found;
}

/* Copies a message if its other end is there, else leaves it in the mailbox. */
static int32_t start(mailbox_t* own, size_t number, const mlc_message* message, const void* source, void* target) {
  mlc_threads* const threads = own->threads;
  int32_t status = MLC_TRANSPORT_OK;
  end_t* other;
  if (number >= own->count || message->peer < 0 || (size_t)message->peer >= threads->ranks) {
    (void)snprintf(own->error, sizeof own->error, "rank %lu has no message %lu with rank %ld", (unsigned long)own->rank,
                   (unsigned long)number, (long)message->peer);
    return MLC_TRANSPORT_FAILED;
  }
  (void)pthread_mutex_lock(&threads->lock);
  other = partner(own, message);
  own->ends[number].message = message;
  own->ends[number].source = source;
  own->ends[number].target = target;
  own->ends[number].ticket = 0;
  if (threads->failed != 0) {
    status = stopped(own, message);
  } else if (other == NULL) {
    own->ends[number].ticket = ++threads->tickets;
  } else if (other->message->bytes != message->bytes) {
    const mlc_message* const sent = message->sent ? message : other->message;
    const mlc_message* const received = message->sent ? other->message : message;
    (void)snprintf(threads->failure, sizeof threads->failure,
                   "rank %ld sends \"%.40s\" of %lu bytes, which rank %ld receives as \"%.40s\" of %lu bytes",
                   (long)received->peer, sent->tensor, (unsigned long)sent->bytes, (long)sent->peer, received->tensor,
                   (unsigned long)received->bytes);
    (void)snprintf(own->error, sizeof own->error, "%s", threads->failure);
    status = fail(threads, MLC_TRANSPORT_SIZE);
  } else {
    if (message->bytes > 0) {
      (void)memcpy(message->sent ? other->target : target, message->sent ? source : other->source, message->bytes);
    }
    other->ticket = 0;
    (void)pthread_cond_broadcast(&threads->changed);
  }
  (void)pthread_mutex_unlock(&threads->lock);
  return status;
}

static int32_t send_message(void* context, size_t number, const mlc_message* message, const void* data) {
  return start((mailbox_t*)context, number, message, data, NULL);
}

static int32_t receive_message(void* context, size_t number, const mlc_message* message, void* data) {
  return start((mailbox_t*)context, number, message, NULL, data);
}

/* The time that is some seconds away. */
static struct timespec later(double seconds) {
  struct timespec time;
  (void)clock_gettime(CLOCK_MONOTONIC, &time);
  time.tv_sec += (time_t)seconds;
  time.tv_nsec += (long)((seconds - (double)(time_t)seconds) * 1e9);
  if (time.tv_nsec >= 1000000000L) {
    time.tv_nsec -= 1000000000L;
    ++time.tv_sec;
  }
  return time;
}

static int32_t wait_for_message(void* context, size_t number, const mlc_message* message) {
  mailbox_t* const own = (mailbox_t*)context;
  mlc_threads* const threads = own->threads;
  const struct timespec end = later(threads->timeout);
  int32_t status = MLC_TRANSPORT_OK;
  (void)pthread_mutex_lock(&threads->lock);
  while (status == MLC_TRANSPORT_OK && own->ends[number].ticket != 0) {
    if (threads->failed != 0) {
      status = stopped(own, message);
    } else if (pthread_cond_timedwait(&threads->changed, &threads->lock, &end) != 0) {
      (void)snprintf(threads->failure, sizeof threads->failure, "rank %lu waited %g seconds for \"%.40s\" %s rank %ld",
                     (unsigned long)own->rank, threads->timeout, message->tensor,
                     message->sent ? "to be taken by" : "from", (long)message->peer);
      (void)snprintf(own->error, sizeof own->error, "%s", threads->failure);
      status = fail(threads, MLC_TRANSPORT_TIMEOUT);
    }
  }
  (void)pthread_mutex_unlock(&threads->lock);
  return status;
}

static void give_up(void* context) {
  mailbox_t* const own = (mailbox_t*)context;
  mlc_threads* const threads = own->threads;
  (void)pthread_mutex_lock(&threads->lock);
  if (threads->failed == 0) {
    (void)snprintf(threads->failure, sizeof threads->failure, "rank %lu gave up", (unsigned long)own->rank);
    (void)fail(threads, MLC_TRANSPORT_PEER);
  }
  (void)pthread_mutex_unlock(&threads->lock);
}

static const char* last_error(void* context) { return ((mailbox_t*)context)->error; }

mlc_threads* mlc_threads_open(size_t ranks, const size_t* messages, double timeout) {
  mlc_threads* const threads = (mlc_threads*)calloc(1, sizeof(mlc_threads));
  pthread_condattr_t attributes;
  size_t rank;
  if (threads == NULL) {
    return NULL;
  }
  (void)pthread_mutex_init(&threads->lock, NULL);
  (void)pthread_condattr_init(&attributes);
  (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  (void)pthread_cond_init(&threads->changed, &attributes);
  (void)pthread_condattr_destroy(&attributes);
  threads->timeout = timeout;
  threads->mailboxes = (mailbox_t*)calloc(ranks, sizeof(mailbox_t));
  threads->ranks = threads->mailboxes == NULL ? 0 : ranks;
  for (rank = 0; rank < threads->ranks; ++rank) {
    mailbox_t* const own = &threads->mailboxes[rank];
    const mlc_transport transport = {own, send_message, receive_message, wait_for_message, give_up, last_error};
    own->transport = transport;
    own->threads = threads;
    own->rank = rank;
    own->count = messages[rank];
    own->ends = (end_t*)calloc(messages[rank] + 1, sizeof(end_t));
    if (own->ends == NULL) {
      mlc_threads_close(threads);
      return NULL;
    }
  }
  if (threads->ranks != ranks) {
    mlc_threads_close(threads);
    return NULL;
  }
  return threads;
}

const mlc_transport* mlc_threads_transport(mlc_threads* threads, size_t rank) {
  return &threads->mailboxes[rank].transport;
}

void mlc_threads_close(mlc_threads* threads) {
  size_t rank;
  for (rank = 0; rank < threads->ranks; ++rank) {
    free(threads->mailboxes[rank].ends);
  }
  free(threads->mailboxes);
  (void)pthread_cond_destroy(&threads->changed);
  (void)pthread_mutex_destroy(&threads->lock);
  free(threads);
}
