# Models in CMake projects:
#
#   include(mlc.cmake)
#   mlc_add_model(kws kws.onnx TARGET cortex-m4 OPTIONS --optimize size)
#   target_link_libraries(firmware PRIVATE kws)
#
# compiles the model when the project is configured, again whenever its file has changed, and makes a static library of its C. The
# program mlc is that of the PATH, or of -DMLC=PATH.

# mlc_add_model(<library> <model> [TARGET <machine>] [NAME <name in C>] [C_FLAGS <option>...] [OPTIONS <option>...])
#
# NAME is the library's name unless it is given: the header is tvmgen_<name>.h. TARGET and OPTIONS are those of 'mlc compile'; C_FLAGS
# take the place of the options that mlc has for the target's C compiler.
function(mlc_add_model library model)
  cmake_parse_arguments(PARSE_ARGV 2 MODEL "" "TARGET;NAME" "C_FLAGS;OPTIONS")
  if(MODEL_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "mlc_add_model doesn't know ${MODEL_UNPARSED_ARGUMENTS}")
  endif()
  find_program(MLC mlc DOC "the compiler of models")
  if(NOT MLC)
    message(FATAL_ERROR "there is no mlc on the PATH: install it, or say -DMLC=PATH")
  endif()
  if(NOT MODEL_NAME)
    set(MODEL_NAME "${library}")
  endif()
  set(options ${MODEL_OPTIONS})
  if(MODEL_TARGET)
    list(APPEND options --target "${MODEL_TARGET}")
  endif()
  get_filename_component(model "${model}" ABSOLUTE)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${model}" "${MLC}")
  set(archive "${CMAKE_CURRENT_BINARY_DIR}/mlc/${library}")
  # Of a model with fewer kernels' files than before, none may stay.
  file(REMOVE_RECURSE "${archive}")
  execute_process(
    COMMAND "${MLC}" --quiet compile "${model}" --model-name "${MODEL_NAME}" --emit dir -o "${archive}" ${options}
    RESULT_VARIABLE status ERROR_VARIABLE said)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "mlc can't compile ${model}:\n${said}")
  endif()
  # The archive's own option is one for all archives.
  unset(MLC_C_FLAGS CACHE)
  if(MODEL_C_FLAGS)
    set(MLC_C_FLAGS "${MODEL_C_FLAGS}" CACHE STRING "" FORCE)
  endif()
  add_subdirectory("${archive}" "${archive}-build" EXCLUDE_FROM_ALL)
  unset(MLC_C_FLAGS CACHE)
  string(TOLOWER "${MODEL_NAME}" name)
  add_library(${library} INTERFACE)
  target_link_libraries(${library} INTERFACE tvmgen_${name})
endfunction()
