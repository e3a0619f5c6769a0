/* Measures functions with the platform's timer. There is one evaluator: a new one replaces it. */
#include <string.h>
#include <tvm/runtime/crt/internal/common/arguments.h>
#include <tvm/runtime/crt/internal/common/errors.h>
#include <tvm/runtime/crt/internal/common/runtime_functions.h>
#include <tvm/runtime/crt/internal/config.h>
#include <tvm/runtime/crt/platform.h>

/* What is measured, and how: repeat times the mean of at least number calls that take at least minimum_seconds. */
static struct {
  TVMFunctionHandle function;
  DLDevice device;
  int64_t number;
  int64_t repeat;
  double minimum_seconds;
} evaluator;

/* A bound of both counts: they come over a wire. */
#define MOST_CALLS 1000000000

int TVMCrtCreateTimeEvaluator(TVMValue* args, int* codes, int count, TVMValue* result, int* result_code,
                              void* resource) {
  TVMFunctionHandle function = NULL;
  /* What callers pass beyond, on cooling down and on caches, has no meaning here. */
  int status = TVMCrtCheckArguments("msiiiii", codes, count > 7 ? 7 : count);
  (void)resource;
  if (status != kTvmErrorNoError) {
    return status;
  }
  if (args[4].v_int64 < 1 || args[4].v_int64 > MOST_CALLS || args[5].v_int64 < 1 || args[5].v_int64 > MOST_CALLS ||
      args[6].v_int64 < 0 || args[6].v_int64 > MOST_CALLS) {
    return TVMCrtError(kTvmErrorFunctionCallInvalidArg, "a time evaluator can't repeat so often", NULL);
  }
  status = TVMModGetFunction(args[0].v_handle, args[1].v_str, 0, &function);
  if (status != kTvmErrorNoError) {
    return status;
  }
  evaluator.function = function;
  evaluator.device.device_type = kDLCPU;
  evaluator.device.device_id = 0;
  evaluator.number = args[4].v_int64;
  evaluator.repeat = args[5].v_int64;
  evaluator.minimum_seconds = (double)args[6].v_int64 / 1000.0;
  result->v_handle = TVMCrtTimeEvaluatorHandle();
  *result_code = kTVMPackedFuncHandle;
  return kTvmErrorNoError;
}

/* Seconds of a number of calls. */
static int Measure(TVMValue* args, int* codes, int count, int64_t number, double* seconds) {
  int64_t i;
  int status = TVMPlatformBeforeMeasurement();
  tvm_crt_error_t stopped;
  if (status != kTvmErrorNoError) {
    return status;
  }
  status = TVMPlatformTimerStart();
  if (status != kTvmErrorNoError) {
    return status;
  }
  for (i = 0; status == kTvmErrorNoError && i < number; ++i) {
    TVMValue value;
    int code = kTVMNullptr;
    status = TVMFuncCall(evaluator.function, args, codes, count, &value, &code);
  }
  /* Also after a failed call: the timer must not stay running. */
  stopped = TVMPlatformTimerStop(seconds);
  if (status == kTvmErrorNoError) {
    status = stopped;
  }
  return status == kTvmErrorNoError ? TVMPlatformAfterMeasurement() : status;
}

/* The mean seconds of a call; as many calls as the minimum time asks for. */
static int MeasureMean(TVMValue* args, int* codes, int count, double* mean) {
  int64_t number = evaluator.number;
  for (;;) {
    double seconds = 0.0;
    double wanted;
    const int status = Measure(args, codes, count, number, &seconds);
    if (status != kTvmErrorNoError) {
      return status;
    }
    *mean = seconds / (double)number;
    if (seconds >= evaluator.minimum_seconds || number >= MOST_CALLS) {
      return kTvmErrorNoError;
    }
    /* A fifth more than the time so far promises, and at least half as many again. */
    wanted = *mean > 0.0 ? 1.2 * evaluator.minimum_seconds / *mean : 0.0;
    if (wanted < (double)number * 1.5 + 1.0) {
      wanted = (double)number * 1.5 + 1.0;
    }
    number = wanted < (double)MOST_CALLS ? (int64_t)wanted : (int64_t)MOST_CALLS;
  }
}

int TVMCrtRunTimeEvaluator(TVMValue* args, int* codes, int count, TVMValue* result, int* result_code,
                           void* resource) {
  const size_t seconds_bytes = (size_t)evaluator.repeat * sizeof(double);
  void* memory = NULL;
  uint8_t* seconds;
  TVMByteArray* bytes;
  int64_t i;
  int status;
  (void)resource;
  if (evaluator.function == NULL) {
    return TVMCrtError(kTvmErrorTimeEvaluatorBadHandle, "no time evaluator was made", NULL);
  }
  status = TVMPlatformMemoryAllocate(sizeof(TVMByteArray) + seconds_bytes, evaluator.device, &memory);
  if (status != kTvmErrorNoError) {
    return status;
  }
  bytes = (TVMByteArray*)memory;
  seconds = (uint8_t*)memory + sizeof(TVMByteArray);
  for (i = 0; status == kTvmErrorNoError && i < evaluator.repeat; ++i) {
    double mean = 0.0;
    status = MeasureMean(args, codes, count, &mean);
    memcpy(seconds + (size_t)i * sizeof(mean), &mean, sizeof(mean));
  }
  if (status != kTvmErrorNoError) {
    (void)TVMPlatformMemoryFree(memory, evaluator.device);
    return status;
  }
  bytes->data = (const char*)seconds;
  bytes->size = seconds_bytes;
  result->v_handle = bytes;
  *result_code = kTVMBytes;
  return kTvmErrorNoError;
}

int TVMByteArrayFree(TVMByteArray* arr) {
  const DLDevice device = {kDLCPU, 0};
  return TVMPlatformMemoryFree(arr, device);
}
