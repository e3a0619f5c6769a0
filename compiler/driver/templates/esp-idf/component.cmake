# The model as a component: the archive in ../../model as it is.
set(root "${CMAKE_CURRENT_LIST_DIR}/../..")
set(sources @MODEL_SOURCES@)
list(TRANSFORM sources PREPEND "${root}/")
idf_component_register(SRCS ${sources}
  INCLUDE_DIRS "${root}/model/codegen/host/include" "${root}/@RUNTIME@/include" "${root}/@RUNTIME@/crt_config")
target_compile_options(${COMPONENT_LIB} PRIVATE -O3 -ffp-contract=fast)
