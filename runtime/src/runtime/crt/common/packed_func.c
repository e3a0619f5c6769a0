/* Functions of the packed convention together with their arguments. */
#include <string.h>
#include <tvm/runtime/crt/internal/common/errors.h>
#include <tvm/runtime/crt/packed_func.h>

TVMArgs TVMArgs_Create(TVMValue* values, uint32_t* tcodes, uint32_t values_count) {
  TVMArgs args;
  uint32_t i;
  memset(&args, 0, sizeof(args));
  args.values_count = values_count > TVM_CRT_MAX_ARGS ? (uint32_t)TVM_CRT_MAX_ARGS : values_count;
  for (i = 0; i < args.values_count; ++i) {
    args.values[i] = values[i];
    args.tcodes[i] = (int)tcodes[i];
  }
  return args;
}

TVMModuleHandle TVMArgs_AsModuleHandle(const TVMArgs* args, size_t index) {
  if (index >= args->values_count || args->tcodes[index] != kTVMModuleHandle) {
    return NULL;
  }
  return args->values[index].v_handle;
}

void TVMPackedFunc_Call(TVMPackedFunc* pf) {
  int code = kTVMNullptr;
  const int status = TVMFuncCall(pf->fexec, pf->args.values, pf->args.tcodes, (int)pf->args.values_count,
                                 pf->ret_value.values, &code);
  pf->ret_value.tcodes[0] = code;
  pf->ret_value.values_count = status == 0 ? 1U : 0U;
}

void TVMPackedFunc_SetArgs(TVMPackedFunc* pf, const TVMArgs* args) { pf->args = *args; }

/* Everything but the function's handle. */
static int Init(TVMPackedFunc* pf, const char* name, const TVMArgs* args) {
  memset(pf, 0, sizeof(*pf));
  if (strlen(name) >= sizeof(pf->name)) {
    return TVMCrtError(kTvmErrorBufferTooSmall, "the function's name is too long", name);
  }
  strcpy(pf->name, name);
  pf->Call = TVMPackedFunc_Call;
  pf->SetArgs = TVMPackedFunc_SetArgs;
  if (args != NULL) {
    TVMPackedFunc_SetArgs(pf, args);
  }
  return kTvmErrorNoError;
}

int TVMPackedFunc_InitGlobalFunc(TVMPackedFunc* pf, const char* name, const TVMArgs* args) {
  int status = Init(pf, name, args);
  if (status == kTvmErrorNoError) {
    status = TVMFuncGetGlobal(name, &pf->fexec);
  }
  if (status == kTvmErrorNoError && pf->fexec == NULL) {
    status = TVMCrtError(kTvmErrorFunctionNameNotFound, "there is no such global function", name);
  }
  return status;
}

int TVMPackedFunc_InitModuleFunc(TVMPackedFunc* pf, TVMModuleHandle module, const char* name, const TVMArgs* args) {
  const int status = Init(pf, name, args);
  return status == kTvmErrorNoError ? TVMModGetFunction(module, name, 0, &pf->fexec) : status;
}
