/* Modules, functions and calls. */
#include <string.h>
#include <tvm/runtime/c_backend_api.h>
#include <tvm/runtime/c_runtime_api.h>
#include <tvm/runtime/crt/crt.h>
#include <tvm/runtime/crt/func_registry.h>
#include <tvm/runtime/crt/internal/common/arguments.h>
#include <tvm/runtime/crt/internal/common/errors.h>
#include <tvm/runtime/crt/internal/common/runtime_functions.h>
#include <tvm/runtime/crt/internal/config.h>
#include <tvm/runtime/crt/module.h>
#include <tvm/runtime/crt/platform.h>

/* Set in both numbers of a handle, so that a handle is never NULL. */
#define HANDLE_BIT 0x8000U

/* Number of the module that stands for the global functions. */
#define GLOBAL_MODULE ((tvm_module_index_t)TVM_CRT_MAX_REGISTERED_MODULES)

static const TVMModule* modules[TVM_CRT_MAX_REGISTERED_MODULES];
static TVMMutableFuncRegistry globals;
static int globals_ready = 0;
static TVMModuleHandle system_library = NULL;

static TVMModuleHandle EncodeModule(tvm_module_index_t index) {
  return (TVMModuleHandle)(uintptr_t)(index | HANDLE_BIT);
}

/* The module of a handle; NULL when the handle is none. */
static const TVMModule* DecodeModule(TVMModuleHandle handle, tvm_module_index_t* index) {
  const uintptr_t bits = (uintptr_t)handle;
  const uintptr_t number = bits ^ HANDLE_BIT;
  if (number >= TVM_CRT_MAX_REGISTERED_MODULES) {
    return NULL;
  }
  *index = (tvm_module_index_t)number;
  return modules[number];
}

static TVMFunctionHandle EncodeFunction(tvm_module_index_t module, tvm_function_index_t function) {
  return (TVMFunctionHandle)(((uintptr_t)(module | HANDLE_BIT) << 16U) | (uintptr_t)(function | HANDLE_BIT));
}

TVMFunctionHandle TVMCrtTimeEvaluatorHandle(void) { return EncodeFunction(kTvmTimeEvaluatorModule, 0); }

tvm_crt_error_t TVMModCreateFromCModule(const TVMModule* mod, TVMModuleHandle* out_handle) {
  tvm_module_index_t i;
  *out_handle = NULL;
  if (mod == NULL || mod->registry == NULL) {
    return TVMCrtError(kTvmErrorFunctionCallInvalidArg, "the module has no registry", NULL);
  }
  for (i = 0; i < TVM_CRT_MAX_REGISTERED_MODULES; ++i) {
    if (modules[i] == NULL) {
      modules[i] = mod;
      *out_handle = EncodeModule(i);
      return kTvmErrorNoError;
    }
  }
  return TVMCrtError(kTvmErrorFunctionRegistryFull, "there are TVM_CRT_MAX_REGISTERED_MODULES modules already", NULL);
}

int TVMModFree(TVMModuleHandle mod) {
  tvm_module_index_t index = 0;
  if (DecodeModule(mod, &index) == NULL) {
    return TVMCrtError(kTvmErrorFunctionCallInvalidArg, "the handle is that of no module", NULL);
  }
  if (mod != system_library) {
    modules[index] = NULL;
  }
  return kTvmErrorNoError;
}

int TVMModGetFunction(TVMModuleHandle mod, const char* func_name, int query_imports, TVMFunctionHandle* out) {
  tvm_module_index_t module = 0;
  tvm_function_index_t function = 0;
  const TVMModule* const found = DecodeModule(mod, &module);
  (void)query_imports;
  *out = NULL;
  if (found == NULL) {
    return TVMCrtError(kTvmErrorFunctionCallInvalidArg, "the handle is that of no module", NULL);
  }
  if (TVMFuncRegistry_Lookup(found->registry, func_name, &function) != kTvmErrorNoError) {
    return TVMCrtError(kTvmErrorFunctionNameNotFound, "the module has no such function", func_name);
  }
  *out = EncodeFunction(module, function);
  return kTvmErrorNoError;
}

int TVMFuncGetGlobal(const char* name, TVMFunctionHandle* out) {
  tvm_function_index_t function = 0;
  *out = NULL;
  if (globals_ready && TVMFuncRegistry_Lookup(&globals.registry, name, &function) == kTvmErrorNoError) {
    *out = EncodeFunction(GLOBAL_MODULE, function);
  }
  return kTvmErrorNoError;
}

int TVMFuncFree(TVMFunctionHandle func) {
  (void)func;
  return kTvmErrorNoError;
}

/* The function of a handle, and what it gets as its resource. */
static tvm_crt_error_t Resolve(TVMFunctionHandle handle, TVMBackendPackedCFunc* function, const void** resource) {
  const uintptr_t bits = (uintptr_t)handle;
  const uintptr_t module = (bits >> 16U) ^ HANDLE_BIT;
  const uintptr_t index = (bits & 0xffffU) ^ HANDLE_BIT;
  const TVMFuncRegistry* registry = NULL;
  *resource = NULL;
  if (module == kTvmTimeEvaluatorModule && index == 0U) {
    *function = TVMCrtRunTimeEvaluator;
    return kTvmErrorNoError;
  }
  if (module == GLOBAL_MODULE && globals_ready) {
    registry = &globals.registry;
  } else if (module < TVM_CRT_MAX_REGISTERED_MODULES && modules[module] != NULL) {
    registry = modules[module]->registry;
    *resource = registry;
  }
  if (registry == NULL || index >= HANDLE_BIT) {
    return TVMCrtError(kTvmErrorFunctionIndexInvalid, "the handle is that of no function", NULL);
  }
  return TVMFuncRegistry_GetByIndex(registry, (tvm_function_index_t)index, function);
}

int TVMFuncCall(TVMFunctionHandle func, TVMValue* arg_values, int* type_codes, int num_args, TVMValue* ret_val,
                int* ret_type_code) {
  TVMBackendPackedCFunc function = NULL;
  union {
    const void* read;
    void* handed;
  } resource;
  const tvm_crt_error_t status = Resolve(func, &function, &resource.read);
  *ret_type_code = kTVMNullptr;
  if (status != kTvmErrorNoError) {
    return status;
  }
  return function(arg_values, type_codes, num_args, ret_val, ret_type_code, resource.handed);
}

int TVMFuncRegisterGlobal(const char* name, TVMFunctionHandle f, int override_existing) {
  TVMBackendPackedCFunc function;
  tvm_crt_error_t status;
  if (!globals_ready) {
    return TVMCrtError(kTvmErrorFunctionRegistryFull, "TVMInitializeRuntime was not called", NULL);
  }
  /* C has no conversion between pointers to functions and to objects; POSIX and every ABI here have equal ones. */
  memcpy(&function, &f, sizeof(function));
  status = TVMMutableFuncRegistry_Set(&globals, name, function, override_existing);
  return status == kTvmErrorNoError ? 0 : TVMCrtError(status, "the global function can't be registered", name);
}

int TVMBackendRegisterSystemLibSymbol(const char* name, void* ptr) { return TVMFuncRegisterGlobal(name, ptr, 0); }

int TVMBackendGetFuncFromEnv(void* mod_node, const char* func_name, TVMFunctionHandle* out) {
  if (mod_node != NULL && TVMModGetFunction(mod_node, func_name, 0, out) == kTvmErrorNoError) {
    return kTvmErrorNoError;
  }
  (void)TVMFuncGetGlobal(func_name, out);
  if (*out == NULL) {
    return TVMCrtError(kTvmErrorFunctionNameNotFound, "there is no such function", func_name);
  }
  return kTvmErrorNoError;
}

int TVMCrtSystemLibrary(TVMValue* args, int* codes, int count, TVMValue* result, int* result_code, void* resource) {
  tvm_crt_error_t status = TVMCrtCheckArguments("", codes, count);
  (void)args;
  (void)resource;
  if (status == kTvmErrorNoError && system_library == NULL) {
    const TVMModule* const library = TVMSystemLibEntryPoint();
    if (library == NULL) {
      return TVMCrtError(kTvmErrorFunctionNameNotFound, "the program has no system library", NULL);
    }
    status = TVMModCreateFromCModule(library, &system_library);
  }
  if (status != kTvmErrorNoError) {
    return status;
  }
  result->v_handle = system_library;
  *result_code = kTVMModuleHandle;
  return kTvmErrorNoError;
}

tvm_crt_error_t TVMInitializeRuntime(void) {
  static const struct {
    const char* name;
    TVMBackendPackedCFunc function;
  } kFunctions[] = {
      {"runtime.SystemLib", TVMCrtSystemLibrary},
      {"tvm.rpc.server.ModuleGetFunction", TVMCrtModuleGetFunction},
      {"runtime.RPCTimeEvaluator", TVMCrtCreateTimeEvaluator},
      {"tvm.rpc.server.GetCRTMaxPacketSize", TVMCrtMaxPacketSize},
      {"tvm.contrib.random.random_fill", TVMCrtRandomFill},
  };
  const DLDevice device = {kDLCPU, 0};
  void* memory = NULL;
  size_t i;
  tvm_crt_error_t status;
  if (globals_ready) {
    return kTvmErrorNoError;
  }
  status = TVMPlatformMemoryAllocate(TVM_CRT_GLOBAL_FUNC_REGISTRY_SIZE_BYTES, device, &memory);
  if (status != kTvmErrorNoError) {
    return status;
  }
  status = TVMMutableFuncRegistry_Create(&globals, (uint8_t*)memory, TVM_CRT_GLOBAL_FUNC_REGISTRY_SIZE_BYTES);
  for (i = 0; status == kTvmErrorNoError && i < sizeof(kFunctions) / sizeof(kFunctions[0]); ++i) {
    status = TVMMutableFuncRegistry_Set(&globals, kFunctions[i].name, kFunctions[i].function, 0);
  }
  if (status != kTvmErrorNoError) {
    (void)TVMPlatformMemoryFree(memory, device);
    return TVMCrtError(status, "TVM_CRT_GLOBAL_FUNC_REGISTRY_SIZE_BYTES is too small", NULL);
  }
  globals_ready = 1;
  return kTvmErrorNoError;
}
