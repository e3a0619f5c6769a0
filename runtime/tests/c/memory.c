/* Both allocators, and tensors. */
#include "expect.h"

#include <tvm/runtime/c_backend_api.h>
#include <tvm/runtime/crt/internal/common/ndarray.h>
#include <tvm/runtime/crt/internal/config.h>
#include <tvm/runtime/crt/packed_func.h>
#include <tvm/runtime/crt/page_allocator.h>
#include <tvm/runtime/crt/stack_allocator.h>

static const DLDevice device = {kDLCPU, 0};

static void TestPages(void) {
  size_t log2;
  size_t bytes;
  for (log2 = 0; log2 <= 10U; log2 += 2U) {
    for (bytes = 0; bytes < 6000U; bytes += 37U) {
      uint8_t* const pool = (uint8_t*)malloc(bytes + 3U);
      const size_t page = (size_t)1 << log2;
      MemoryManagerInterface* manager = NULL;
      void* blocks[64];
      size_t count = 0;
      if (PageMemoryManagerCreate(&manager, pool + 3, bytes, log2) != kTvmErrorNoError) {
        EXPECT(manager == NULL);
        EXPECT(bytes < 2U * page + 200U);
        free(pool);
        continue;
      }
      while (count < 64U && manager->Allocate(manager, page + 1U, device, &blocks[count]) == kTvmErrorNoError) {
        EXPECT((uintptr_t)blocks[count] % (page < 64U ? page : 64U) == 0U);
        memset(blocks[count], 0xff, page + 1U);
        ++count;
      }
      EXPECT(manager->vleak_size == (int)count);
      while (count > 0U) {
        EXPECT_OK(manager->Free(manager, blocks[--count], device));
      }
      free(pool);
    }
  }
}

static void TestPagesJoin(void) {
  static uint8_t pool[16 * 256 + 1024];
  MemoryManagerInterface* manager = NULL;
  void* blocks[16];
  void* large = NULL;
  void* untouched = pool;
  int i;
  EXPECT_OK(PageMemoryManagerCreate(&manager, pool, 16U * 256U + 256U, 8));
  for (i = 0; i < 16; ++i) {
    EXPECT_OK(manager->Allocate(manager, 256, device, &blocks[i]));
  }
  EXPECT_CODE(manager->Allocate(manager, 1, device, &untouched), kTvmErrorPlatformNoMemory);
  EXPECT(untouched == pool);
  for (i = 0; i < 16; i += 2) {
    EXPECT_OK(manager->Free(manager, blocks[i], device));
  }
  EXPECT_CODE(manager->Allocate(manager, 257, device, &large), kTvmErrorPlatformNoMemory);
  EXPECT_OK(manager->Free(manager, blocks[5], device));
  EXPECT_OK(manager->Allocate(manager, 3 * 256, device, &large));
  EXPECT(large == blocks[4]);
  EXPECT_CODE(manager->Free(manager, blocks[5], device), kTvmErrorPlatformCheckFailure);
  EXPECT_CODE(manager->Free(manager, (uint8_t*)large + 1, device), kTvmErrorPlatformCheckFailure);
  EXPECT_CODE(manager->Free(manager, NULL, device), kTvmErrorPlatformCheckFailure);
  EXPECT_CODE(manager->Free(manager, &manager, device), kTvmErrorPlatformCheckFailure);
  EXPECT_OK(manager->Free(manager, large, device));
  EXPECT_CODE(manager->Free(manager, large, device), kTvmErrorPlatformCheckFailure);
  for (i = 1; i < 16; i += 2) {
    if (i != 5) {
      EXPECT_OK(manager->Free(manager, blocks[i], device));
    }
  }
  EXPECT(manager->vleak_size == 0);
  EXPECT_OK(manager->Allocate(manager, 16 * 256, device, &large));
  EXPECT_CODE(manager->Allocate(manager, SIZE_MAX, device, &large), kTvmErrorPlatformNoMemory);
  EXPECT_CODE(PageMemoryManagerCreate(&manager, NULL, 100, 8), kTvmErrorFunctionCallInvalidArg);
  EXPECT_CODE(PageMemoryManagerCreate(&manager, pool, sizeof(pool), 64), kTvmErrorFunctionCallInvalidArg);
  EXPECT_CODE(PageMemoryManagerCreate(&manager, pool, 10, 8), kTvmErrorPlatformNoMemory);
}

static void TestStack(void) {
  static uint8_t block[64 + 16];
  tvm_workspace_t workspace;
  void* first;
  void* second;
  EXPECT_OK(StackMemoryManager_Init(&workspace, block + 1, 64 + 15));
  EXPECT(workspace.workspace_size >= 64U);
  EXPECT_OK(StackMemoryManager_Allocate(&workspace, 20, &first));
  EXPECT((uintptr_t)first % 16U == 0U);
  EXPECT_CODE(StackMemoryManager_Allocate(&workspace, 40, &second), kTvmErrorPlatformNoMemory);
  EXPECT_CODE(StackMemoryManager_Allocate(&workspace, -1, &second), kTvmErrorPlatformNoMemory);
  EXPECT_OK(StackMemoryManager_Allocate(&workspace, 12, &second));
#ifdef TVM_CRT_STACK_ALLOCATOR_ENABLE_LIFO_CHECK
  EXPECT_CODE(StackMemoryManager_Free(&workspace, first), kTvmErrorPlatformStackAllocBadFree);
#endif
  EXPECT_OK(StackMemoryManager_Free(&workspace, second));
  EXPECT_OK(StackMemoryManager_Free(&workspace, first));
  EXPECT_CODE(StackMemoryManager_Free(&workspace, block + 79), kTvmErrorPlatformStackAllocBadFree);
}

static void ExpectType(const char* text, int code, int bits, int lanes) {
  const DLDataType type = String2DLDataType(text);
  EXPECT(type.code == code && type.bits == bits && type.lanes == lanes);
}

static void TestTypes(void) {
  const DLDataType boolean = {kDLUInt, 1, 1};
  const DLDataType byte = {kDLUInt, 8, 1};
  const DLDataType int4 = {kDLInt, 4, 1};
  ExpectType("int8", kDLInt, 8, 1);
  ExpectType("uint16", kDLUInt, 16, 1);
  ExpectType("float32x4", kDLFloat, 32, 4);
  ExpectType("bfloat16", kDLBfloat, 16, 1);
  ExpectType("bool", kDLUInt, 1, 1);
  ExpectType("handle", kDLOpaqueHandle, 64, 1);
  ExpectType("", kDLOpaqueHandle, 64, 1);
  ExpectType("int", 0, 0, 0);
  ExpectType("int8x", 0, 0, 0);
  ExpectType("int8x0", 0, 0, 0);
  ExpectType("int256", 0, 0, 0);
  ExpectType("int99999999999", 0, 0, 0);
  ExpectType("int8 ", 0, 0, 0);
  ExpectType("complex", 0, 0, 0);
  EXPECT(TVMDataType_Bytes(boolean) == 1U && TVMDataType_Bytes(int4) == 1U);
  EXPECT(TVMDataType_Alike(boolean, byte) && !TVMDataType_Alike(byte, int4));
}

static void TestArrays(void) {
  const int64_t shape[3] = {2, 3, 4};
  const int64_t huge[3] = {INT64_C(1) << 31, INT64_C(1) << 31, 4};
  const int64_t negative[1] = {-1};
  const DLDataType type = {kDLFloat, 32, 1};
  const DLDataType none = {kDLFloat, 0, 1};
  TVMNDArray a;
  TVMNDArray b;
  int64_t strides[3] = {12, 4, 1};
  EXPECT_OK(TVMNDArray_Empty(3, shape, type, device, &a));
  EXPECT_OK(TVMNDArray_Empty(0, NULL, type, device, &b));
  EXPECT(TVMNDArray_DataSizeBytes(&a) == 96 && TVMNDArray_DataSizeBytes(&b) == 4);
  EXPECT_CODE(TVMDeviceCopyDataFromTo(&a.dl_tensor, &b.dl_tensor, NULL), kTvmErrorFunctionCallInvalidArg);
  EXPECT_OK(TVMNDArray_Release(&b));
  EXPECT_OK(TVMNDArray_Empty(3, shape, type, device, &b));
  memset(a.dl_tensor.data, 0x11, 96);
  a.dl_tensor.strides = strides;
  EXPECT_OK(TVMDeviceCopyDataFromTo(&a.dl_tensor, &b.dl_tensor, NULL));
  EXPECT(memcmp(a.dl_tensor.data, b.dl_tensor.data, 96) == 0);
  strides[0] = 24;
  EXPECT_CODE(TVMDeviceCopyDataFromTo(&a.dl_tensor, &b.dl_tensor, NULL), kTvmErrorFunctionCallInvalidArg);
  a.dl_tensor.strides = NULL;
  a.dl_tensor.dtype.code = kDLInt;
  EXPECT_CODE(TVMDeviceCopyDataFromTo(&a.dl_tensor, &b.dl_tensor, NULL), kTvmErrorFunctionCallWrongArgType);
  EXPECT_OK(TVMNDArray_Release(&a));
  EXPECT_OK(TVMNDArray_Release(&b));
  EXPECT_CODE(TVMNDArray_Empty(3, huge, type, device, &a), kTvmErrorFunctionCallInvalidArg);
  EXPECT_CODE(TVMNDArray_Empty(1, negative, type, device, &a), kTvmErrorFunctionCallInvalidArg);
  EXPECT_CODE(TVMNDArray_Empty(3, shape, none, device, &a), kTvmErrorFunctionCallWrongArgType);
  EXPECT_CODE(TVMNDArray_Empty(TVM_CRT_MAX_NDIM + 1, shape, type, device, &a), kTvmErrorFunctionCallInvalidArg);
  EXPECT_CODE(TVMNDArray_Empty(-1, shape, type, device, &a), kTvmErrorFunctionCallInvalidArg);
  EXPECT(test_allocations == 0);
  test_allocations_left = 1;
  EXPECT_CODE(TVMNDArray_Empty(3, shape, type, device, &a), kTvmErrorPlatformNoMemory);
  test_allocations_left = -1;
  EXPECT(test_allocations == 0);
}

static int Task(int task, TVMParallelGroupEnv* environment, void* data) {
  *(int*)data += 10 * task + environment->num_task;
  return 0;
}

static void TestBackend(void) {
  void* const first = TVMBackendAllocWorkspace(kDLCPU, 0, 1000, kDLFloat, 32);
  int tasks = 0;
  EXPECT(first != NULL);
  EXPECT_OK(TVMBackendFreeWorkspace(kDLCPU, 0, first));
  EXPECT_OK(TVMBackendParallelLaunch(Task, &tasks, 4));
  EXPECT(tasks == 1);
  EXPECT(test_allocations == 0);
}

int main(void) {
  TestPages();
  TestPagesJoin();
  TestStack();
  TestTypes();
  TestArrays();
  TestBackend();
  puts("done");
  return 0;
}
