/*
 * A pool of POSIX threads behind TVMBackendParallelLaunch. Threads are made at the first launch, as many as it asks for beside the
 * one that calls, and stay. They look for work for a short time before they sleep, so that the launches of one run find them awake.
 *
 * Tasks are taken one by one, by the caller too: nobody waits for a thread that hasn't begun, and who computes a task doesn't change its
 * result. While one launch is under way, another one's tasks run in the thread that calls.
 *
 * Who looks for something lets others run every now and then: where threads outnumber free cores, what they wait for needs the core.
 */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <sched.h>
#include <time.h>
#include <tvm/runtime/c_backend_api.h>

/* Most threads beside the one that calls. */
#ifndef MLC_MOST_WORKERS
#define MLC_MOST_WORKERS 63
#endif

/* How long a thread looks for work before it sleeps. */
#ifndef MLC_LOOK_NANOSECONDS
#define MLC_LOOK_NANOSECONDS 200000
#endif

/* How often a thread looks before it lets others run. */
#ifndef MLC_LOOKS
#define MLC_LOOKS 32
#endif

#if defined(__x86_64__) || defined(__i386__)
#define PAUSE() __builtin_ia32_pause()
#elif defined(__aarch64__)
#define PAUSE() __asm__ volatile("yield")
#else
#define PAUSE() ((void)0)
#endif

/* What is launched. It is written between launches, when no thread is inside. */
static struct {
  FTVMParallelLambda task;
  void* data;
  TVMParallelGroupEnv environment;
} launch;

/* The number of the launch in the upper half, and of its tasks that nobody has taken in the lower one. */
static uint64_t open_tasks;
/* Tasks that have ended, and the first error. */
static int32_t ended_tasks;
static int32_t first_error;
static int32_t is_busy;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static pthread_t workers[MLC_MOST_WORKERS];
static int32_t worker_count;
static int32_t wanted_workers;
static int32_t sleepers;
static int32_t is_ending;

static int64_t nanoseconds(void) {
  struct timespec now;
  (void)clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static uint32_t launch_number(uint64_t tasks) { return (uint32_t)(tasks >> 32); }

/* Takes tasks of a launch as long as there are any. */
static void work(uint32_t number) {
  uint64_t tasks = __atomic_load_n(&open_tasks, __ATOMIC_ACQUIRE);
  while (launch_number(tasks) == number && (uint32_t)tasks > 0) {
    if (__atomic_compare_exchange_n(&open_tasks, &tasks, tasks - 1, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
      /* The launch can't end, and so there can't be another one, before this task has ended. */
      const int status = launch.task((int)(uint32_t)tasks - 1, &launch.environment, launch.data);
      if (status != 0) {
        __atomic_store_n(&first_error, status, __ATOMIC_RELAXED);
      }
      (void)__atomic_add_fetch(&ended_tasks, 1, __ATOMIC_RELEASE);
      tasks = __atomic_load_n(&open_tasks, __ATOMIC_ACQUIRE);
    }
  }
}

/* Looks for another launch than one that was seen; says whether there is one. */
static int is_found(uint32_t seen) {
  const int64_t start = nanoseconds();
  do {
    int32_t looks;
    for (looks = 0; looks < MLC_LOOKS; ++looks) {
      if (launch_number(__atomic_load_n(&open_tasks, __ATOMIC_ACQUIRE)) != seen) {
        return 1;
      }
      PAUSE();
    }
    (void)sched_yield();
  } while (nanoseconds() - start < MLC_LOOK_NANOSECONDS);
  return 0;
}

/* Sleeps until there is another launch than one that was seen; says whether the threads end. */
static int sleep_until_launch(uint32_t seen) {
  int ends;
  (void)pthread_mutex_lock(&lock);
  (void)__atomic_add_fetch(&sleepers, 1, __ATOMIC_SEQ_CST);
  while (launch_number(__atomic_load_n(&open_tasks, __ATOMIC_SEQ_CST)) == seen && !is_ending) {
    (void)pthread_cond_wait(&changed, &lock);
  }
  (void)__atomic_sub_fetch(&sleepers, 1, __ATOMIC_SEQ_CST);
  ends = is_ending;
  (void)pthread_mutex_unlock(&lock);
  return ends;
}

static void* worker(void* argument) {
  uint32_t seen = 0;
  (void)argument;
  for (;;) {
    if (!is_found(seen) && sleep_until_launch(seen)) {
      return NULL;
    }
    seen = launch_number(__atomic_load_n(&open_tasks, __ATOMIC_ACQUIRE));
    work(seen);
  }
}

/* Makes threads until there are enough; fewer are slower, not wrong. */
static void make_workers(int32_t count) {
  if (count <= wanted_workers) {
    return;
  }
  wanted_workers = count;
  while (worker_count < count && worker_count < MLC_MOST_WORKERS &&
         pthread_create(&workers[worker_count], NULL, worker, NULL) == 0) {
    ++worker_count;
  }
}

/* Ends the threads: code of a shared library must not run when it is unloaded. */
__attribute__((destructor)) static void end_workers(void) {
  int32_t number;
  (void)pthread_mutex_lock(&lock);
  is_ending = 1;
  (void)pthread_cond_broadcast(&changed);
  (void)pthread_mutex_unlock(&lock);
  for (number = 0; number < worker_count; ++number) {
    (void)pthread_join(workers[number], NULL);
  }
  worker_count = 0;
}

int TVMBackendParallelLaunch(FTVMParallelLambda flambda, void* cdata, int num_task) {
  uint32_t number;
  int32_t looks = 0;
  int status;
  if (num_task <= 1 || __atomic_exchange_n(&is_busy, 1, __ATOMIC_ACQUIRE) != 0) {
    TVMParallelGroupEnv alone;
    alone.sync_handle = NULL;
    alone.num_task = 1;
    return flambda(0, &alone, cdata);
  }
  make_workers(num_task - 1);
  launch.task = flambda;
  launch.data = cdata;
  launch.environment.sync_handle = NULL;
  launch.environment.num_task = num_task;
  __atomic_store_n(&ended_tasks, 0, __ATOMIC_RELAXED);
  __atomic_store_n(&first_error, 0, __ATOMIC_RELAXED);
  number = launch_number(__atomic_load_n(&open_tasks, __ATOMIC_RELAXED)) + 1;
  __atomic_store_n(&open_tasks, (uint64_t)number << 32 | (uint32_t)num_task, __ATOMIC_SEQ_CST);
  if (__atomic_load_n(&sleepers, __ATOMIC_SEQ_CST) > 0) {
    (void)pthread_mutex_lock(&lock);
    (void)pthread_cond_broadcast(&changed);
    (void)pthread_mutex_unlock(&lock);
  }
  work(number);
  while (__atomic_load_n(&ended_tasks, __ATOMIC_ACQUIRE) != num_task) {
    PAUSE();
    if (++looks % MLC_LOOKS == 0) {
      (void)sched_yield();
    }
  }
  status = __atomic_load_n(&first_error, __ATOMIC_RELAXED);
  __atomic_store_n(&is_busy, 0, __ATOMIC_RELEASE);
  return status;
}
