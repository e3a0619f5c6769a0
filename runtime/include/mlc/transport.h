/* What a model that is one of several ranks exchanges messages by: a table of functions that the program gives to every run. */
#ifndef MLC_TRANSPORT_H_
#define MLC_TRANSPORT_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A message of a rank, as it is known at compile time. */
typedef struct mlc_message {
  int32_t peer;       /* the rank at the other end */
  int32_t channel;    /* tells messages between two ranks in one direction apart, from 0 on */
  size_t bytes;       /* its size; both ends must say the same */
  int32_t sent;       /* 1 when it goes to the peer, 0 when it comes from there */
  const char* tensor; /* the model's name of the tensor, for errors */
} mlc_message;

/* Errors that the functions return, and that the model's run function passes on. */
enum {
  MLC_TRANSPORT_OK = 0,
  MLC_TRANSPORT_TIMEOUT = -16, /* the peer did not come in time */
  MLC_TRANSPORT_SIZE = -17,    /* the ends disagree about the size */
  MLC_TRANSPORT_PEER = -18,    /* another rank has given up */
  MLC_TRANSPORT_FAILED = -19   /* the engine below failed */
};

/*
 * Messages of one channel between two ranks arrive in the order in which they were sent. `number` is the message's place in the
 * rank's list; one message is under way under each number at a time. Nothing blocks but `wait`.
 */
typedef struct mlc_transport {
  void* context;
  /* Starts to send; the data must stay until the message has been waited for. */
  int32_t (*send)(void* context, size_t number, const mlc_message* message, const void* data);
  /* Starts to receive; the data are there when the message has been waited for. */
  int32_t (*receive)(void* context, size_t number, const mlc_message* message, void* data);
  /* Waits until a message that was started is complete. */
  int32_t (*wait)(void* context, size_t number, const mlc_message* message);
  /* Tells the other ranks that this one gives up, so that none of them waits for it. */
  void (*abort)(void* context);
  /* What went wrong last, with the rank and the tensor. */
  const char* (*error)(void* context);
} mlc_transport;

#ifdef __cplusplus
}
#endif

#endif /* MLC_TRANSPORT_H_ */
