/* Registries, handles, calls and the runtime's own global functions. */
#include "expect.h"

#include <tvm/runtime/crt/crt.h>
#include <tvm/runtime/crt/func_registry.h>
#include <tvm/runtime/crt/internal/config.h>
#include <tvm/runtime/crt/module.h>
#include <tvm/runtime/crt/packed_func.h>

static const void* seen_resource = NULL;

static int Sum(TVMValue* args, int* codes, int count, TVMValue* result, int* result_code, void* resource) {
  int i;
  seen_resource = resource;
  result->v_int64 = 0;
  for (i = 0; i < count; ++i) {
    if (codes[i] != kTVMArgInt) {
      return kTvmErrorFunctionCallWrongArgType;
    }
    result->v_int64 += args[i].v_int64;
  }
  *result_code = kTVMArgInt;
  return 0;
}

static int Nothing(TVMValue* args, int* codes, int count, TVMValue* result, int* result_code, void* resource) {
  (void)args;
  (void)codes;
  (void)result;
  (void)result_code;
  (void)resource;
  return count == 0 ? 0 : 7;
}

static const TVMBackendPackedCFunc functions[] = {Sum, Nothing};
static const TVMFuncRegistry registry = {"\002\000sum\000nothing\000", functions};
static const TVMModule module = {&registry};

const TVMModule* TVMSystemLibEntryPoint(void) { return &module; }

static void TestRegistry(void) {
  tvm_function_index_t index = 99;
  TVMBackendPackedCFunc found = NULL;
  EXPECT(TVMFuncRegistry_GetNumFuncs(&registry) == 2);
  EXPECT(strcmp(TVMFuncRegistry_Get0thFunctionName(&registry), "sum") == 0);
  EXPECT_OK(TVMFuncRegistry_Lookup(&registry, "nothing", &index));
  EXPECT(index == 1);
  EXPECT_CODE(TVMFuncRegistry_Lookup(&registry, "noth", &index), kTvmErrorFunctionNameNotFound);
  EXPECT_CODE(TVMFuncRegistry_Lookup(&registry, "", &index), kTvmErrorFunctionNameNotFound);
  EXPECT_OK(TVMFuncRegistry_GetByIndex(&registry, 0, &found));
  EXPECT(found == Sum);
  EXPECT_CODE(TVMFuncRegistry_GetByIndex(&registry, 2, &found), kTvmErrorFunctionIndexInvalid);
}

static void TestMutableRegistry(void) {
  size_t bytes;
  for (bytes = 0; bytes < 200U; ++bytes) {
    size_t shift;
    for (shift = 0; shift < 8U; ++shift) {
      uint8_t* const buffer = (uint8_t*)malloc(bytes + shift + 1U);
      TVMMutableFuncRegistry table;
      size_t added = 0;
      tvm_crt_error_t status = TVMMutableFuncRegistry_Create(&table, buffer + shift, bytes);
      if (bytes < kTvmAverageFuncEntrySizeBytes) {
        EXPECT_CODE(status, kTvmErrorBufferTooSmall);
      }
      while (status == kTvmErrorNoError) {
        char name[16];
        (void)sprintf(name, "function%d", (int)added);
        status = TVMMutableFuncRegistry_Set(&table, name, Sum, 0);
        added += status == kTvmErrorNoError ? 1U : 0U;
      }
      EXPECT(status == kTvmErrorBufferTooSmall || status == kTvmErrorFunctionRegistryFull);
      EXPECT(status == kTvmErrorBufferTooSmall || TVMFuncRegistry_GetNumFuncs(&table.registry) == added);
      EXPECT(bytes < 40U || added > 0U);
      if (added > 0U) {
        tvm_function_index_t index = 99;
        TVMBackendPackedCFunc found = NULL;
        EXPECT_CODE(TVMMutableFuncRegistry_Set(&table, "function0", Nothing, 0), kTvmErrorFunctionAlreadyDefined);
        EXPECT_OK(TVMMutableFuncRegistry_Set(&table, "function0", Nothing, 1));
        EXPECT_OK(TVMFuncRegistry_Lookup(&table.registry, "function0", &index));
        EXPECT_OK(TVMFuncRegistry_GetByIndex(&table.registry, index, &found));
        EXPECT(found == Nothing);
      }
      free(buffer);
    }
  }
}

static void TestModules(void) {
  TVMModuleHandle handles[TVM_CRT_MAX_REGISTERED_MODULES];
  TVMModuleHandle extra = NULL;
  TVMFunctionHandle sum = NULL;
  TVMFunctionHandle missing = &extra;
  TVMValue args[2];
  int codes[2] = {kTVMArgInt, kTVMArgInt};
  TVMValue result;
  int result_code = kTVMStr;
  size_t i;
  for (i = 0; i < TVM_CRT_MAX_REGISTERED_MODULES; ++i) {
    EXPECT_OK(TVMModCreateFromCModule(&module, &handles[i]));
    EXPECT(handles[i] == (TVMModuleHandle)(uintptr_t)(i | 0x8000U));
  }
  EXPECT_CODE(TVMModCreateFromCModule(&module, &extra), kTvmErrorFunctionRegistryFull);
  EXPECT_OK(TVMModGetFunction(handles[1], "sum", 0, &sum));
  EXPECT(sum == (TVMFunctionHandle)(uintptr_t)0x80018000U);
  EXPECT_CODE(TVMModGetFunction(handles[1], "product", 0, &missing), kTvmErrorFunctionNameNotFound);
  EXPECT(missing == NULL);
  EXPECT(strcmp(TVMGetLastError(), "the module has no such function: 'product'") == 0);
  EXPECT_CODE(TVMModGetFunction(NULL, "sum", 0, &missing), kTvmErrorFunctionCallInvalidArg);
  EXPECT_CODE(TVMModGetFunction(&args, "sum", 0, &missing), kTvmErrorFunctionCallInvalidArg);
  args[0].v_int64 = 40;
  args[1].v_int64 = 2;
  EXPECT_OK(TVMFuncCall(sum, args, codes, 2, &result, &result_code));
  EXPECT(result.v_int64 == 42 && result_code == kTVMArgInt && seen_resource == &registry);
  EXPECT_OK(TVMModGetFunction(handles[0], "nothing", 0, &sum));
  EXPECT_OK(TVMFuncCall(sum, args, codes, 0, &result, &result_code));
  EXPECT(result_code == kTVMNullptr);
  EXPECT_CODE(TVMFuncCall(sum, args, codes, 1, &result, &result_code), 7);
  EXPECT_CODE(TVMFuncCall(NULL, args, codes, 1, &result, &result_code), kTvmErrorFunctionIndexInvalid);
  EXPECT_CODE(TVMFuncCall(&args, args, codes, 1, &result, &result_code), kTvmErrorFunctionIndexInvalid);
  for (i = 0; i < TVM_CRT_MAX_REGISTERED_MODULES; ++i) {
    EXPECT_OK(TVMModFree(handles[i]));
  }
  EXPECT_CODE(TVMModFree(handles[0]), kTvmErrorFunctionCallInvalidArg);
  EXPECT_CODE(TVMFuncCall(sum, args, codes, 0, &result, &result_code), kTvmErrorFunctionIndexInvalid);
}

/* Calls a global function. */
static TVMValue Call(const char* name, TVMArgs* args, int code) {
  TVMPackedFunc function;
  EXPECT_OK(TVMPackedFunc_InitGlobalFunc(&function, name, args));
  function.Call(&function);
  EXPECT(function.ret_value.values_count == 1U);
  EXPECT(function.ret_value.tcodes[0] == code);
  return function.ret_value.values[0];
}

static void TestGlobals(void) {
  TVMFunctionHandle handle = &handle;
  TVMBackendPackedCFunc sum = Sum;
  TVMArgs args;
  TVMPackedFunc missing;
  TVMModuleHandle library;
  void* pointer;
  memset(&args, 0, sizeof(args));
  memcpy(&pointer, &sum, sizeof(pointer));
  EXPECT_OK(TVMFuncGetGlobal("runtime.SystemLib", &handle));
  EXPECT(handle == NULL);
  EXPECT_CODE(TVMFuncRegisterGlobal("test.sum", pointer, 0), kTvmErrorFunctionRegistryFull);
  test_allocations_left = 0;
  EXPECT_CODE(TVMInitializeRuntime(), kTvmErrorPlatformNoMemory);
  test_allocations_left = -1;
  EXPECT_OK(TVMInitializeRuntime());
  EXPECT_OK(TVMInitializeRuntime());
  EXPECT(test_allocations == 1);
  EXPECT_OK(TVMFuncRegisterGlobal("test.sum", pointer, 0));
  EXPECT_CODE(TVMFuncRegisterGlobal("test.sum", pointer, 0), kTvmErrorFunctionAlreadyDefined);
  EXPECT_OK(TVMFuncRegisterGlobal("test.sum", pointer, 1));
  args.values[0].v_int64 = 5;
  args.tcodes[0] = kTVMArgInt;
  args.values_count = 1;
  EXPECT(Call("test.sum", &args, kTVMArgInt).v_int64 == 5 && seen_resource == NULL);
  EXPECT_CODE(TVMPackedFunc_InitGlobalFunc(&missing, "test.difference", NULL), kTvmErrorFunctionNameNotFound);

  args.values_count = 0;
  library = Call("runtime.SystemLib", &args, kTVMModuleHandle).v_handle;
  EXPECT(Call("runtime.SystemLib", &args, kTVMModuleHandle).v_handle == library);
  EXPECT_OK(TVMModFree(library));
  EXPECT(Call("runtime.SystemLib", &args, kTVMModuleHandle).v_handle == library);
  EXPECT(Call("tvm.rpc.server.GetCRTMaxPacketSize", &args, kTVMArgInt).v_int64 == TVM_CRT_MAX_PACKET_SIZE_BYTES);

  args.values[0].v_handle = library;
  args.tcodes[0] = kTVMModuleHandle;
  args.values[1].v_str = "sum";
  args.tcodes[1] = kTVMStr;
  args.values[2].v_int64 = 0;
  args.tcodes[2] = kTVMArgInt;
  args.values_count = 3;
  EXPECT(Call("tvm.rpc.server.ModuleGetFunction", &args, kTVMPackedFuncHandle).v_handle != NULL);
  args.values[1].v_str = "product";
  EXPECT(Call("tvm.rpc.server.ModuleGetFunction", &args, kTVMNullptr).v_handle == NULL);
  EXPECT_OK(TVMBackendGetFuncFromEnv(library, "sum", &handle));
  EXPECT_OK(TVMBackendGetFuncFromEnv(NULL, "test.sum", &handle));
  EXPECT_CODE(TVMBackendGetFuncFromEnv(library, "product", &handle), kTvmErrorFunctionNameNotFound);
}

static void TestTimeEvaluator(void) {
  TVMArgs args;
  TVMValue none;
  TVMValue result;
  TVMFunctionHandle evaluator;
  const TVMByteArray* bytes;
  double seconds;
  int code = kTVMNullptr;
  int none_code = kTVMArgInt;
  int i;
  memset(&args, 0, sizeof(args));
  args.values[0] = Call("runtime.SystemLib", &args, kTVMModuleHandle);
  args.tcodes[0] = kTVMModuleHandle;
  args.values[1].v_str = "nothing";
  args.tcodes[1] = kTVMStr;
  args.values[2].v_int64 = kDLCPU;
  args.values[3].v_int64 = 0;
  args.values[4].v_int64 = 5;
  args.values[5].v_int64 = 3;
  args.values[6].v_int64 = 200;
  args.values_count = 7;
  for (i = 2; i < 7; ++i) {
    args.tcodes[i] = kTVMArgInt;
  }
  evaluator = Call("runtime.RPCTimeEvaluator", &args, kTVMPackedFuncHandle).v_handle;
  EXPECT_OK(TVMFuncCall(evaluator, &none, &none_code, 0, &result, &code));
  EXPECT(code == kTVMBytes);
  bytes = (const TVMByteArray*)result.v_handle;
  EXPECT(bytes->size == 3U * sizeof(double));
  for (i = 0; i < 3; ++i) {
    memcpy(&seconds, bytes->data + (size_t)i * sizeof(double), sizeof(double));
    EXPECT(seconds > 0.0499 && seconds < 0.0501);
  }
  EXPECT_OK(TVMByteArrayFree((TVMByteArray*)result.v_handle));
  /* The function fails with arguments; nothing may stay allocated, and the timer not running. */
  none.v_int64 = 0;
  EXPECT_CODE(TVMFuncCall(evaluator, &none, &none_code, 1, &result, &code), 7);
  EXPECT(test_allocations == 1);
  EXPECT_OK(TVMFuncCall(evaluator, &none, &none_code, 0, &result, &code));
  EXPECT_OK(TVMByteArrayFree((TVMByteArray*)result.v_handle));
}

static void TestLastError(void) {
  char text[3000];
  memset(text, 'x', sizeof(text));
  text[2999] = '\0';
  TVMAPISetLastError(text);
  EXPECT(strlen(TVMGetLastError()) == 1023U);
  TVMAPISetLastError(TVMGetLastError());
  EXPECT(strlen(TVMGetLastError()) == 1023U);
  TVMAPISetLastError(NULL);
  EXPECT(TVMGetLastError()[0] == '\0');
}

int main(void) {
  TestRegistry();
  TestMutableRegistry();
  TestModules();
  TestGlobals();
  TestTimeEvaluator();
  TestLastError();
  puts("done");
  return 0;
}
