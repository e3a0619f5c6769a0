//! What builds the generated code: a Makefile, a CMake project, and an example program.

use super::names::{Names, c_escape};
use crate::loops::spelling::c_type;
use crate::module::{Module, Port};
use crate::target::Target;
use mlc_ir::DType;

/// Warnings that the generated code is free of.
const WARNINGS: &str = "-Wall -Wextra";

/// The Makefile: `make` builds the static library, `make example` the example program.
pub(super) fn makefile(module: &Module, target: &Target) -> String {
    let model = &module.model_name;
    format!(
        "# Builds the model \"{model}\": 'make' the static library, 'make example' a program that runs it once.\n\
         # Generated for the target '{name}'; CC, AR, CFLAGS, CPPFLAGS, LDFLAGS and BUILD can be set from outside.\n\
         {tools}CFLAGS ?= {flags} {WARNINGS}\n\
         BUILD ?= build\n\
         INCLUDES = -Icodegen/host/include -Iruntime/include\n\n\
         SOURCES = $(sort $(wildcard codegen/host/src/*.c))\n\
         OBJECTS = $(SOURCES:codegen/host/src/%.c=$(BUILD)/%.o)\n\
         LIBRARY = $(BUILD)/lib{model}.a\n\n\
         .PHONY: all example clean\n\n\
         all: $(LIBRARY)\n\n\
         example: $(BUILD)/example\n\n\
         $(BUILD):\n\tmkdir -p $(BUILD)\n\n\
         $(BUILD)/%.o: codegen/host/src/%.c codegen/host/include/tvmgen_{model}.h | $(BUILD)\n\
         \t$(CC) $(CPPFLAGS) $(CFLAGS) $(INCLUDES) -c $< -o $@\n\n\
         $(LIBRARY): $(OBJECTS)\n\t$(AR) rcs $@ $(OBJECTS)\n\n\
         $(BUILD)/example: example/main.c $(LIBRARY)\n\
         \t$(CC) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS) $(INCLUDES) example/main.c $(LIBRARY) -lm -o $@\n\n\
         clean:\n\trm -rf $(BUILD)\n",
        name = target.name,
        tools = make_tools(target),
        flags = target.c_flags.join(" "),
    )
}

/// Lines that choose another machine's tools, unless the user did.
fn make_tools(target: &Target) -> String {
    let Some(prefix) = &target.tool_prefix else { return String::new() };
    let tool = |(variable, tool): (&str, &str)| {
        format!("ifeq ($(origin {variable}),default)\n{variable} = {prefix}{tool}\nendif\n")
    };
    [("CC", "gcc"), ("AR", "ar")].into_iter().map(tool).collect()
}

/// Lines that choose another machine's compiler, unless the user or a project around this one did.
fn cmake_tools(target: &Target) -> String {
    let Some(prefix) = &target.tool_prefix else { return String::new() };
    format!(
        "if(NOT CMAKE_TOOLCHAIN_FILE AND NOT CMAKE_C_COMPILER)\n  set(CMAKE_SYSTEM_NAME Generic)\n  \
         set(CMAKE_C_COMPILER {prefix}gcc)\n  # A program needs start-up code, which isn't here.\n  \
         set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)\nendif()\n"
    )
}

/// The CMake project, with the same two targets.
pub(super) fn cmake_lists(module: &Module, target: &Target) -> String {
    let model = &module.model_name;
    format!(
        "# Builds the model \"{model}\" as a static library; -DMLC_EXAMPLE=ON adds a program that runs it once.\n\
         # Generated for the target '{name}'.\n\
         cmake_minimum_required(VERSION 3.10)\n\
         {tools}project(mlc_{model} LANGUAGES C)\n\n\
         option(MLC_EXAMPLE \"build the example program\" OFF)\n\
         set(MLC_C_FLAGS \"{flags}\" CACHE STRING \"options of the C compiler, separated by ';'\")\n\n\
         file(GLOB sources CONFIGURE_DEPENDS \"${{CMAKE_CURRENT_SOURCE_DIR}}/codegen/host/src/*.c\")\n\
         list(SORT sources)\n\
         # The prefix keeps clear of the names that CMake reserves, such as 'test'.\n\
         add_library(tvmgen_{model} STATIC ${{sources}})\n\
         set_target_properties(tvmgen_{model} PROPERTIES OUTPUT_NAME {model})\n\
         target_include_directories(tvmgen_{model} PUBLIC\n  \
         \"${{CMAKE_CURRENT_SOURCE_DIR}}/codegen/host/include\"\n  \
         \"${{CMAKE_CURRENT_SOURCE_DIR}}/runtime/include\")\n\
         target_compile_options(tvmgen_{model} PRIVATE ${{MLC_C_FLAGS}} {WARNINGS})\n\
         if(NOT WIN32)\n  target_link_libraries(tvmgen_{model} PUBLIC m)\nendif()\n\n\
         if(MLC_EXAMPLE)\n  add_executable(example example/main.c)\n  target_link_libraries(example PRIVATE tvmgen_{model})\nendif()\n",
        name = target.name,
        tools = cmake_tools(target),
        flags = target.c_flags.join(";"),
    )
}

/// A program that runs the model once on zeroes and prints the first values of every output.
pub(super) fn example(module: &Module, names: &Names) -> String {
    let model = &module.model_name;
    let mut text = format!(
        "/* Runs the model \"{model}\" once on zeroes and prints the start of every output. */\n\
         #include <stdio.h>\n#include \"tvmgen_{model}.h\"\n\n\
         #if defined(__GNUC__)\n#define ALIGNED __attribute__((aligned(16)))\n#else\n#define ALIGNED\n#endif\n\n"
    );
    for (kind, ports, macros) in [("input", &module.inputs, &names.inputs), ("output", &module.outputs, &names.outputs)]
    {
        for (index, (port, size)) in ports.iter().zip(macros).enumerate() {
            let element = c_type(port.ty.dtype);
            // An empty tensor still needs something to point at.
            let extent = if port.ty.bytes() == 0 { "1".to_owned() } else { format!("{size} / sizeof({element})") };
            text += &format!("static {element} {kind}{index}[{extent}] ALIGNED;\n");
        }
    }
    text += &format!(
        "\nint main(void) {{\n  struct tvmgen_{model}_inputs inputs;\n  struct tvmgen_{model}_outputs outputs;\n"
    );
    if module.outputs.iter().any(|port| port.ty.elements() > 0) {
        text += "  size_t index;\n";
    }
    text += "  int32_t status;\n\n";
    for (kind, ports) in [("input", &module.inputs), ("output", &module.outputs)] {
        for (index, port) in ports.iter().enumerate() {
            text += &format!("  {kind}s.{} = {kind}{index};\n", port.field);
        }
        if ports.is_empty() {
            text += &format!("  {kind}s.none = NULL;\n");
        }
    }
    text += &format!(
        "  status = tvmgen_{model}_run(&inputs, &outputs);\n  if (status != 0) {{\n    \
         fprintf(stderr, \"the model failed with status %ld\\n\", (long)status);\n    return 1;\n  }}\n"
    );
    for (index, port) in module.outputs.iter().enumerate() {
        text += &print_output(index, port);
    }
    text + "  return 0;\n}\n"
}

fn print_output(index: usize, port: &Port) -> String {
    let (conversion, cast) = match port.ty.dtype {
        DType::F32 | DType::F64 => ("%g", "(double)"),
        DType::I64 => ("%lld", "(long long)"),
        DType::U64 => ("%llu", "(unsigned long long)"),
        dtype if dtype.is_signed() && dtype.is_integer() => ("%ld", "(long)"),
        _ => ("%lu", "(unsigned long)"),
    };
    // In a format string a percent sign stands for itself only when doubled.
    let mut text = format!("  printf(\"{}:\");\n", c_escape(&port.name).replace('%', "%%"));
    let shown = port.ty.elements().min(8);
    if shown > 0 {
        text += &format!(
            "  for (index = 0; index < {shown}; ++index) {{\n    \
             printf(\" {conversion}\", {cast}output{index}[index]);\n  }}\n"
        );
    }
    let rest = if port.ty.elements() > shown { " ..." } else { "" };
    text + &format!("  printf(\"{rest}\\n\");\n")
}
