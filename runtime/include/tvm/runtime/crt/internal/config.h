/*
 * The project's configuration, crt_config.h, and the default of whatever it leaves out. The runtime's sources and the
 * application must see the same one: sizes of structures depend on it.
 */
#ifndef TVM_RUNTIME_CRT_INTERNAL_CONFIG_H_
#define TVM_RUNTIME_CRT_INTERNAL_CONFIG_H_

#include <crt_config.h>

/* Levels of TVM_CRT_LOG_LEVEL. */
#define TVM_CRT_LOG_LEVEL_ERROR 0
#define TVM_CRT_LOG_LEVEL_WARN 1
#define TVM_CRT_LOG_LEVEL_INFO 2
#define TVM_CRT_LOG_LEVEL_DEBUG 3

/* Highest level that is printed. */
#ifndef TVM_CRT_LOG_LEVEL
#define TVM_CRT_LOG_LEVEL TVM_CRT_LOG_LEVEL_DEBUG
#endif

/* 1: executors say what they run; 2: the graph executor says what it allocates, too. */
#ifndef TVM_CRT_DEBUG
#define TVM_CRT_DEBUG 0
#endif

/* Most axes of a tensor. */
#ifndef TVM_CRT_MAX_NDIM
#define TVM_CRT_MAX_NDIM 6
#endif

/*
 * Most arguments of a function of the packed convention. microTVM's template says 10, which some fused operators of
 * quantised networks exceed; what more costs is 16 bytes of stack each while an operator runs.
 */
#ifndef TVM_CRT_MAX_ARGS
#define TVM_CRT_MAX_ARGS 32
#endif

/* Bytes of the global registry of functions. */
#ifndef TVM_CRT_GLOBAL_FUNC_REGISTRY_SIZE_BYTES
#define TVM_CRT_GLOBAL_FUNC_REGISTRY_SIZE_BYTES 512
#endif

/* Most modules at once. */
#ifndef TVM_CRT_MAX_REGISTERED_MODULES
#define TVM_CRT_MAX_REGISTERED_MODULES 2
#endif

/* Largest packet of the remote protocol, its header included. */
#ifndef TVM_CRT_MAX_PACKET_SIZE_BYTES
#define TVM_CRT_MAX_PACKET_SIZE_BYTES 2048
#endif

/* Bytes of the text of a data type, of a function's name, and of a parameter's name, each with its terminator. */
#ifndef TVM_CRT_MAX_STRLEN_DLTYPE
#define TVM_CRT_MAX_STRLEN_DLTYPE 10
#endif
#ifndef TVM_CRT_MAX_STRLEN_FUNCTION_NAME
#define TVM_CRT_MAX_STRLEN_FUNCTION_NAME 120
#endif
#ifndef TVM_CRT_MAX_STRLEN_PARAM_NAME
#define TVM_CRT_MAX_STRLEN_PARAM_NAME 80
#endif

/* Alignment of what the allocators hand out; a power of two. */
#ifndef TVM_RUNTIME_ALLOC_ALIGNMENT_BYTES
#define TVM_RUNTIME_ALLOC_ALIGNMENT_BYTES 16
#endif

#endif /* TVM_RUNTIME_CRT_INTERNAL_CONFIG_H_ */
