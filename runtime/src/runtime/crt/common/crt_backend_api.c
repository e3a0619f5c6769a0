/* The functions of tvm/runtime/c_backend_api.h: scratch memory comes from the platform. */
#include <tvm/runtime/c_backend_api.h>
#include <tvm/runtime/crt/error_codes.h>
#include <tvm/runtime/crt/platform.h>

void* TVMBackendAllocWorkspace(int device_type, int device_id, uint64_t nbytes, int dtype_code_hint,
                               int dtype_bits_hint) {
  void* memory = NULL;
  tvm_crt_error_t status = kTvmErrorPlatformNoMemory;
  DLDevice device;
  (void)dtype_code_hint;
  (void)dtype_bits_hint;
  device.device_type = (DLDeviceType)device_type;
  device.device_id = device_id;
  if (nbytes <= SIZE_MAX) {
    status = TVMPlatformMemoryAllocate((size_t)nbytes, device, &memory);
  }
  if (status != kTvmErrorNoError) {
    TVMPlatformAbort(status);
    return NULL;
  }
  return memory;
}

int TVMBackendFreeWorkspace(int device_type, int device_id, void* ptr) {
  DLDevice device;
  device.device_type = (DLDeviceType)device_type;
  device.device_id = device_id;
  return TVMPlatformMemoryFree(ptr, device) == kTvmErrorNoError ? 0 : -1;
}

int TVMBackendParallelLaunch(FTVMParallelLambda flambda, void* cdata, int num_task) {
  TVMParallelGroupEnv environment;
  (void)num_task;
  environment.sync_handle = NULL;
  environment.num_task = 1;
  return flambda(0, &environment, cdata);
}
