//! What builds the generated code: a Makefile and a CMake project.

use crate::execution::Interface;
use crate::module::Module;
use crate::target::{System, Target, Tools};

/// Warnings that the generated code is free of.
const WARNINGS: &str = "-Wall -Wextra";

/// Name of the library, and for comments what is in it, as the subject and the object of a sentence.
fn library(modules: &[&Module]) -> (String, String, &'static str) {
    match modules {
        [module] => (module.model_name.clone(), format!("the model \"{}\"", module.model_name), "it"),
        _ => {
            let names: Vec<String> = modules.iter().map(|module| format!("\"{}\"", module.model_name)).collect();
            ("models".to_owned(), format!("the models {}", names.join(", ")), "each")
        }
    }
}

/// Sources of the runtime that a program with these models needs: none for ahead-of-time code.
fn runtime_sources(modules: &[&Module]) -> Vec<String> {
    if modules.iter().all(|module| module.graph.is_none()) {
        return Vec::new();
    }
    let wanted = ["common", "memory", "graph_executor"].map(|library| format!("src/runtime/crt/{library}/"));
    let is_wanted = |path: &str| {
        path.ends_with(".c")
            && (path == "platform/posix/platform.c" || wanted.iter().any(|folder| path.starts_with(folder)))
    };
    let paths = mlc_runtime::FILES.iter().map(|file| file.path).filter(|path| is_wanted(path));
    paths.map(|path| format!("runtime/{path}")).collect()
}

/// Definitions that the runtime needs to run the models: how many arguments a call has.
fn definitions(modules: &[&Module]) -> Vec<String> {
    /// What the runtime allows by itself.
    const USUAL: usize = 10;
    let most = modules.iter().filter_map(|module| module.graph.as_ref()).map(|graph| graph.most_arguments() + 1).max();
    most.filter(|&most| most > USUAL).map(|most| format!("-DTVM_CRT_MAX_ARGS={most}")).into_iter().collect()
}

/// The Makefile: `make` builds the static library, `make example` the example program.
pub(super) fn makefile(modules: &[&Module], target: &Target) -> String {
    let (library, models, them) = library(modules);
    let headers: Vec<String> = modules
        .iter()
        .filter(|module| module.execution.aot == Some(Interface::C))
        .map(|module| format!(" codegen/host/include/tvmgen_{}.h", module.model_name))
        .collect();
    let runtime = runtime_sources(modules);
    let c_library = make_c_library(target);
    let is_threaded = modules.iter().any(|module| module.execution.threads > 1);
    let mut includes = "-Icodegen/host/include -Iruntime/include".to_owned();
    let (mut runtime_list, mut runtime_rule, mut runtime_objects) = (String::new(), String::new(), "");
    if !runtime.is_empty() {
        includes += " -Iruntime/crt_config";
        for definition in definitions(modules) {
            includes += &format!(" {definition}");
        }
        runtime_list = format!(
            "\n# The runtime with its functions for POSIX systems: a project for another machine takes its own platform.c.\n\
             RUNTIME_SOURCES = \\\n  {}\nRUNTIME_OBJECTS = $(RUNTIME_SOURCES:runtime/%.c=$(BUILD)/runtime/%.o)\n",
            runtime.join(" \\\n  ")
        );
        runtime_rule = "$(BUILD)/runtime/%.o: runtime/%.c\n\tmkdir -p $(@D)\n\t$(CC) $(CPPFLAGS) $(CFLAGS)@LIBRARY@ $(INCLUDES) -c $< -o $@\n\n".replace("@LIBRARY@", c_library);
        runtime_objects = " $(RUNTIME_OBJECTS)";
    }
    // Ranks exchange messages, and their programs do by MPI.
    let is_rank = modules.iter().any(|module| module.ranks.is_some());
    let (example_compiler, transport, mpi) = match is_rank {
        true => ("MPICC", " -Iruntime/transport runtime/transport/mpi.c", "MPICC ?= mpicc\n"),
        false => ("CC", "", ""),
    };
    let (pool, pool_list, pool_objects, pool_rule, pool_link) = match is_threaded {
        true => (
            POOL_FOR_MAKE,
            "POOL_OBJECT = $(patsubst %.c,$(BUILD)/%.pool.o,$(notdir $(POOL)))\n",
            " $(POOL_OBJECT)",
            format!(
                "$(POOL_OBJECT): $(POOL) | $(BUILD)\n\t$(CC) $(CPPFLAGS) $(CFLAGS){c_library} $(INCLUDES) -c $< -o $@\n\n"
            ),
            " -pthread",
        ),
        false => ("", "", "", String::new(), ""),
    };
    format!(
        "# Builds {models}: 'make' the static library, 'make example' a program that runs {them} once.\n\
         # Generated for the target '{name}'; CC, AR, CFLAGS, CPPFLAGS, LDFLAGS and BUILD can be set from outside.\n\
         {tools}{mpi}CFLAGS ?= {flags} {WARNINGS}\n\
         BUILD ?= build\n\
         INCLUDES = {includes}\n\n\
         SOURCES = $(sort $(wildcard codegen/host/src/*.c))\n\
         # Two endings, so that no member of the library has the name of an object file of the archive.\n\
         OBJECTS = $(SOURCES:codegen/host/src/%.c=$(BUILD)/%.c.o) $(sort $(wildcard codegen/host/lib/*.o))\n\
         LIBRARY = $(BUILD)/lib{library}.a\n{runtime_list}{pool}{pool_list}\n\
         .PHONY: all example clean\n\n\
         all: $(LIBRARY)\n\n\
         example: $(BUILD)/example\n\n\
         $(BUILD):\n\tmkdir -p $(BUILD)\n\n\
         {levels}$(BUILD)/%.c.o: codegen/host/src/%.c{headers} | $(BUILD)\n\
         \t$(CC) $(CPPFLAGS) $(CFLAGS){level}{c_library} $(INCLUDES) -c $< -o $@\n\n{runtime_rule}\
         {pool_rule}$(LIBRARY): $(OBJECTS){pool_objects}\n\t$(AR) rcs $@ $(OBJECTS){pool_objects}\n\n\
         $(BUILD)/example: example/main.c $(LIBRARY){runtime_objects}\n\
         \t$({example_compiler}) $(CPPFLAGS) $(CFLAGS){c_library} $(LDFLAGS) $(INCLUDES) example/main.c{transport}{runtime_objects} $(LIBRARY) -lm{pool_link} -o $@\n\n\
         clean:\n\trm -rf $(BUILD)\n",
        name = target.name,
        tools = make_tools(target),
        levels = make_levels(target, "$(BUILD)/"),
        level = make_level(target),
        flags = target.c_flags.join(" "),
        headers = headers.concat(),
    )
}

/// Lines of a Makefile that say which pool of threads is part of the library.
const POOL_FOR_MAKE: &str = "
# The pool of threads: a project for another system takes its own, or an empty POOL and links one.
POOL ?= runtime/threads/posix.c
";

/// Lines of a Makefile that choose another machine's tools, unless the user did, and their C library; empty for this machine's.
pub fn make_tools(target: &Target) -> String {
    let Some(tools) = &target.tools else { return String::new() };
    let tool = |(variable, tool): (&str, &String)| {
        format!("ifeq ($(origin {variable}),default)\n{variable} = {tool}\nendif\n")
    };
    let chosen: String = [("CC", &tools.compiler), ("AR", &tools.archiver)].into_iter().map(tool).collect();
    chosen + if tools.are_bare_metal() { PICOLIBC_FOR_MAKE } else { "" }
}

/// Lines of a Makefile that say how the files of each level of a machine are compiled, whose objects are in a folder; empty where there is one.
pub fn make_levels(target: &Target, folder: &str) -> String {
    if target.levels.is_empty() {
        return String::new();
    }
    let line = |level: &Target| {
        format!("{folder}%{}.o: LEVEL_FLAGS = {}\n", level.level_files(), target.level_flags(level).join(" "))
    };
    let lines: String = target.levels.iter().map(line).collect();
    format!("# Kernels for each level of the machine; one is picked at run time.\nLEVEL_FLAGS =\n{lines}\n")
}

/// What the compiler's options in a Makefile with [`make_levels`] are followed by.
pub fn make_level(target: &Target) -> &'static str {
    if target.levels.is_empty() { "" } else { " $(LEVEL_FLAGS)" }
}

/// Lines of a CMake project that say how the files of each level are compiled, among sources in a folder; empty where there is one level.
pub fn cmake_levels(target: &Target, folder: &str) -> String {
    let lines = |level: &Target| {
        format!(
            "file(GLOB level \"{folder}/*{}\")\nif(level)\n  \
             set_source_files_properties(${{level}} PROPERTIES COMPILE_FLAGS \"{}\")\nendif()\n",
            level.level_files(),
            target.level_flags(level).join(" ")
        )
    };
    let lines: String = target.levels.iter().map(lines).collect();
    match target.levels.is_empty() {
        true => lines,
        false => format!("# Kernels for each level of the machine; one is picked at run time.\n{lines}"),
    }
}

fn is_bare_metal(target: &Target) -> bool {
    target.tools.as_ref().is_some_and(Tools::are_bare_metal)
}

/// What the compiler's options in a Makefile with [`make_tools`] are followed by.
pub fn make_c_library(target: &Target) -> &'static str {
    if is_bare_metal(target) { " $(C_LIBRARY)" } else { "" }
}

/// Debian's cross compilers have no C library of their own.
const PICOLIBC_FOR_MAKE: &str = "\
# A compiler that has no C library by itself takes picolibc where that is installed.
ifeq ($(shell $(CC) $(CPPFLAGS) $(CFLAGS) -E -include math.h -x c /dev/null >/dev/null 2>&1 && echo found),)
ifneq ($(shell $(CC) -print-file-name=picolibc.specs 2>/dev/null),picolibc.specs)
C_LIBRARY = --specs=picolibc.specs
endif
endif
";

/// Lines for behind `project(…)` in a CMake project with [`cmake_tools`]: the C library; empty for this machine's tools.
pub fn cmake_c_library(target: &Target) -> &'static str {
    if is_bare_metal(target) { PICOLIBC_FOR_CMAKE } else { "" }
}

/// As [`PICOLIBC_FOR_MAKE`].
const PICOLIBC_FOR_CMAKE: &str = "\
# A compiler that has no C library by itself takes picolibc where that is installed.
include(CheckIncludeFile)
check_include_file(math.h MLC_MATH_H)
execute_process(COMMAND ${CMAKE_C_COMPILER} -print-file-name=picolibc.specs
  OUTPUT_VARIABLE MLC_PICOLIBC OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(NOT MLC_MATH_H AND IS_ABSOLUTE \"${MLC_PICOLIBC}\")
  set(CMAKE_C_FLAGS \"${CMAKE_C_FLAGS} --specs=picolibc.specs\")
endif()
";

/// Lines of a CMake project that choose another machine's compiler, unless the user or a project around this one did; empty
/// for this machine's.
pub fn cmake_tools(target: &Target) -> String {
    let Some(Tools { compiler, system, .. }) = &target.tools else { return String::new() };
    let (name, more) = match system {
        System::None => (
            "Generic",
            "  # A program needs start-up code, which isn't here.\n  set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)\n",
        ),
        System::Linux => ("Linux", ""),
        System::Wasi => (
            "WASI",
            "  set(CMAKE_C_COMPILER_TARGET wasm32-wasi)\n  set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)\n",
        ),
    };
    format!(
        "if(NOT CMAKE_TOOLCHAIN_FILE AND NOT CMAKE_C_COMPILER)\n  set(CMAKE_SYSTEM_NAME {name})\n  \
         set(CMAKE_C_COMPILER {compiler})\n{more}endif()\n"
    )
}

/// The CMake project, with the same two targets.
pub(super) fn cmake_lists(modules: &[&Module], target: &Target) -> String {
    let (library, models, them) = library(modules);
    let runtime = runtime_sources(modules);
    let mut text = format!(
        "# Builds {models} as a static library; -DMLC_EXAMPLE=ON adds a program that runs {them} once.\n\
         # Generated for the target '{name}'.\n\
         cmake_minimum_required(VERSION 3.10)\n\
         {tools}project(mlc_{library} LANGUAGES C)\n{c_library}\n\
         option(MLC_EXAMPLE \"build the example program\" OFF)\n\
         set(MLC_C_FLAGS \"{flags}\" CACHE STRING \"options of the C compiler, separated by ';'\")\n\n\
         file(GLOB sources CONFIGURE_DEPENDS \"${{CMAKE_CURRENT_SOURCE_DIR}}/codegen/host/src/*.c\"\n  \
         \"${{CMAKE_CURRENT_SOURCE_DIR}}/codegen/host/lib/*.o\")\n\
         list(SORT sources)\n\
         # The prefix keeps clear of the names that CMake reserves, such as 'test'.\n\
         add_library(tvmgen_{library} STATIC ${{sources}})\n\
         set_target_properties(tvmgen_{library} PROPERTIES OUTPUT_NAME {library})\n\
         target_include_directories(tvmgen_{library} PUBLIC\n  \
         \"${{CMAKE_CURRENT_SOURCE_DIR}}/codegen/host/include\"\n  \
         \"${{CMAKE_CURRENT_SOURCE_DIR}}/runtime/include\")\n\
         target_compile_options(tvmgen_{library} PRIVATE ${{MLC_C_FLAGS}} {WARNINGS})\n\
         {levels}if(NOT WIN32)\n  target_link_libraries(tvmgen_{library} PUBLIC m)\nendif()\n\n",
        levels = cmake_levels(target, "${CMAKE_CURRENT_SOURCE_DIR}/codegen/host/src"),
        name = target.name,
        tools = cmake_tools(target),
        c_library = cmake_c_library(target),
        flags = target.c_flags.join(";"),
    );
    if modules.iter().any(|module| module.execution.threads > 1) {
        text += &format!(
            "# The pool of threads: a project for another system takes its own, or an empty one and links it.\n\
             set(MLC_POOL runtime/threads/posix.c CACHE STRING \"source of the pool of threads\")\n\
             target_sources(tvmgen_{library} PRIVATE ${{MLC_POOL}})\n\
             find_package(Threads REQUIRED)\ntarget_link_libraries(tvmgen_{library} PUBLIC Threads::Threads)\n\n"
        );
    }
    if modules.iter().any(|module| module.ranks.is_some()) {
        let example = "  find_package(MPI REQUIRED COMPONENTS C)\n  add_executable(example example/main.c runtime/transport/mpi.c)\n  \
             target_include_directories(example PRIVATE runtime/transport)\n";
        let link = format!("  target_link_libraries(example PRIVATE tvmgen_{library} MPI::MPI_C)\n");
        return text + &format!("if(MLC_EXAMPLE)\n{example}{link}endif()\n");
    }
    let mut example = format!(
        "  add_executable(example example/main.c)\n  target_link_libraries(example PRIVATE tvmgen_{library})\n"
    );
    if !runtime.is_empty() {
        text += &format!(
            "# The runtime with its functions for POSIX systems: a project for another machine takes its own platform.c.\n\
             add_library(tvmgen_{library}_runtime STATIC EXCLUDE_FROM_ALL\n  {}\n)\n\
             target_include_directories(tvmgen_{library}_runtime PUBLIC\n  runtime/include runtime/crt_config)\n",
            runtime.join("\n  ")
        );
        let definitions = definitions(modules);
        if !definitions.is_empty() {
            text += &format!("target_compile_options(tvmgen_{library}_runtime PUBLIC {})\n", definitions.join(" "));
        }
        text += &format!(
            "# Each needs the other: the code allocates memory, the runtime looks up functions.\n\
             target_link_libraries(tvmgen_{library}_runtime PUBLIC tvmgen_{library})\n\n"
        );
        example += &format!("  target_link_libraries(example PRIVATE tvmgen_{library}_runtime tvmgen_{library})\n");
    }
    text + &format!("if(MLC_EXAMPLE)\n{example}endif()\n")
}
