/*
 * Error codes of the C runtime: category << 8 | code, 0 for success. Values are those of microTVM, so that a project's
 * handling of them stays right.
 */
#ifndef TVM_RUNTIME_CRT_ERROR_CODES_H_
#define TVM_RUNTIME_CRT_ERROR_CODES_H_

#ifdef __cplusplus
extern "C" {
#endif

#define TVM_CRT_ERROR_CATEGORY_Pos 8U
#define TVM_CRT_ERROR_CATEGORY_Msk (0xffU << TVM_CRT_ERROR_CATEGORY_Pos)
#define TVM_CRT_ERROR_CODE_Pos 0U
#define TVM_CRT_ERROR_CODE_Msk (0xffU << TVM_CRT_ERROR_CODE_Pos)
#define DEFINE_TVM_CRT_ERROR(category, code) \
  (((category) << TVM_CRT_ERROR_CATEGORY_Pos) | ((code) << TVM_CRT_ERROR_CODE_Pos))

typedef enum {
  kTvmErrorCategoryFunctionRegistry = 1,
  kTvmErrorCategoryFraming = 2,
  kTvmErrorCategoryWriteStream = 3,
  kTvmErrorCategorySession = 4,
  kTvmErrorCategoryPlatform = 5,
  kTvmErrorCategoryGenerated = 6,
  kTvmErrorCategoryExecutor = 7,
  kTvmErrorCategoryFunctionCall = 8,
  kTvmErrorCategoryTimeEvaluator = 9
} tvm_crt_error_category_t;

typedef enum {
  kTvmErrorNoError = 0,

  kTvmErrorFunctionNameNotFound = 0x100,
  kTvmErrorFunctionIndexInvalid = 0x101,
  kTvmErrorFunctionRegistryFull = 0x102,
  kTvmErrorFunctionAlreadyDefined = 0x103,
  kTvmErrorBufferTooSmall = 0x104,

  kTvmErrorFramingInvalidState = 0x200,
  kTvmErrorFramingShortPacket = 0x201,
  kTvmErrorFramingInvalidEscape = 0x202,
  kTvmErrorFramingPayloadOverflow = 0x203,
  kTvmErrorFramingPayloadIncomplete = 0x204,

  kTvmErrorWriteStreamShortWrite = 0x300,
  kTvmErrorWriteStreamLongWrite = 0x301,

  kTvmErrorSessionInvalidState = 0x400,
  kTvmErrorSessionReceiveBufferBusy = 0x401,
  kTvmErrorSessionReceiveBufferShortWrite = 0x402,

  kTvmErrorPlatformCheckFailure = 0x500,
  kTvmErrorPlatformMemoryManagerInitialized = 0x501,
  kTvmErrorPlatformShutdown = 0x502,
  kTvmErrorPlatformNoMemory = 0x503,
  kTvmErrorPlatformTimerBadState = 0x504,
  kTvmErrorPlatformStackAllocBadFree = 0x505,

  kTvmErrorGeneratedInvalidStorageId = 0x600,

  kTvmErrorExecutorModuleAlreadyCreated = 0x700,
  kTvmErrorExecutorModuleBadContext = 0x701,
  kTvmErrorExecutorModuleNoSuchInput = 0x702,

  kTvmErrorFunctionCallNumArguments = 0x800,
  kTvmErrorFunctionCallWrongArgType = 0x801,
  kTvmErrorFunctionCallNotImplemented = 0x802,
  kTvmErrorFunctionCallInvalidArg = 0x803,

  kTvmErrorTimeEvaluatorBadHandle = 0x900,

  /* Set in errors of the system below: such a value is negative. */
  kTvmErrorSystemErrorMask = -0x7fffffff - 1
} tvm_crt_error_t;

#ifdef __cplusplus
}
#endif

#endif /* TVM_RUNTIME_CRT_ERROR_CODES_H_ */
