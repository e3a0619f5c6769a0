/* Setting the runtime up. */
#ifndef TVM_RUNTIME_CRT_CRT_H_
#define TVM_RUNTIME_CRT_CRT_H_

#include <tvm/runtime/crt/error_codes.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Allocates the registry of global functions and registers those of the runtime: runtime.SystemLib,
 * tvm.rpc.server.ModuleGetFunction, runtime.RPCTimeEvaluator, tvm.rpc.server.GetCRTMaxPacketSize and
 * tvm.contrib.random.random_fill. To be called after TVMPlatformInitialize; a second call does nothing. Modules and
 * executors of one's own work without it, global functions don't.
 */
tvm_crt_error_t TVMInitializeRuntime(void);

#ifdef __cplusplus
}
#endif

#endif /* TVM_RUNTIME_CRT_CRT_H_ */
