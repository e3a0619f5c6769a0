//! Projects for tools that the tests can't reach are laid out as the tools' own pages have it.

use super::{Template, project};
use crate::bundle::Bundle;
use crate::pipeline::{CompileOptions, compile};
use crate::targets;
use indexmap::IndexMap;
use mlc_ir::ops::Unary;
use mlc_ir::scalar::UnaryFunction;
use mlc_ir::{DType, Graph, TensorType};

/// The text files of a project for a model `net` on a target.
fn texts(template: Template, target: &str) -> IndexMap<String, String> {
    let mut graph = Graph::new("g");
    let x = graph.add_input("x", TensorType::new(DType::F32, [4]));
    let y = graph.add(Unary { function: UnaryFunction::Sigmoid }, &[x], "sigmoid").unwrap();
    graph.add_output("y", y.into());
    let target = targets::find(target).unwrap();
    let options = CompileOptions { model_name: "net".into(), target, ..CompileOptions::default() };
    let archive = compile(&graph, &options, &mut |_, _| {}).unwrap().archive().unwrap();
    let files = project(&Bundle::parse(&archive).unwrap(), template).unwrap();
    files.into_iter().filter_map(|(path, bytes)| Some((path, String::from_utf8(bytes).ok()?))).collect()
}

/// Whether texts come one after the other.
fn in_order(text: &str, parts: &[&str]) -> bool {
    let mut rest = text;
    parts.iter().all(|part| {
        let found = rest.find(part);
        rest = found.map_or("", |at| &rest[at + part.len()..]);
        found.is_some()
    })
}

/// The C sources and the folders of headers that a text names are in the project; `root` is what the names count from.
fn names_exist(files: &IndexMap<String, String>, text: &str) -> bool {
    let separators = |c: char| c.is_whitespace() || "()\"<>".contains(c);
    let named = text.split(separators).map(|word| word.trim_start_matches("${root}/").trim_start_matches("-I"));
    let mut named = named.filter(|word| word.starts_with("model/")).peekable();
    assert!(named.peek().is_some(), "{text}");
    named.all(|word| files.keys().any(|path| path == word || path.starts_with(&format!("{word}/"))))
}

/// `key=value` lines.
fn properties(text: &str) -> IndexMap<&str, &str> {
    text.lines().filter_map(|line| line.split_once('=')).map(|(key, value)| (key.trim(), value.trim())).collect()
}

/// Zephyr's page "Application Development": an application is `CMakeLists.txt`, `prj.conf` and `src/`; the package is found before the
/// project is named, and sources go to the target `app`.
#[test]
fn zephyr_applications_are_as_documented() {
    for target in ["generic", "cortex-m4", "riscv32"] {
        let files = texts(Template::Zephyr, target);
        let lists = &files["CMakeLists.txt"];
        let order = ["cmake_minimum_required(VERSION 3.20", "find_package(Zephyr REQUIRED HINTS $ENV{ZEPHYR_BASE})"];
        assert!(in_order(lists, &[&order[..], &["project(net)", "target_sources(app PRIVATE src/main.c)"]].concat()));
        assert!(names_exist(&files, lists));
        let options = properties(files["prj.conf"].as_str());
        assert!(options.iter().all(|(key, value)| key.starts_with("CONFIG_") && !value.is_empty()), "{options:?}");
        assert!(files["src/main.c"].contains("int main(void)"));
    }
}

/// ESP-IDF's page "Build System": three mandatory lines in this order, and components that register themselves.
#[test]
fn esp_idf_projects_are_as_documented() {
    for target in ["generic", "riscv32-soft"] {
        let files = texts(Template::EspIdf, target);
        let mandatory =
            ["cmake_minimum_required(", "include($ENV{IDF_PATH}/tools/cmake/project.cmake)", "project(net)"];
        assert!(in_order(&files["CMakeLists.txt"], &mandatory));
        assert!(files["main/CMakeLists.txt"].contains("idf_component_register(SRCS \"main.c\" REQUIRES tvmgen_net)"));
        assert!(files["main/main.c"].contains("void app_main(void)"));
        let component = &files["components/tvmgen_net/CMakeLists.txt"];
        assert!(in_order(component, &["idf_component_register(SRCS ", "INCLUDE_DIRS "]));
        assert!(names_exist(&files, component));
    }
}

/// Arduino's library specification: properties, of them a category from its list; code in `src/`, a sketch in a folder of its name.
#[test]
fn arduino_libraries_are_as_specified() {
    const KEYS: [&str; 9] =
        ["name", "version", "author", "maintainer", "sentence", "paragraph", "category", "url", "architectures"];
    for target in ["generic", "cortex-m0plus", "riscv32-soft"] {
        let files = texts(Template::Arduino, target);
        let properties = properties(files["library.properties"].as_str());
        assert!(KEYS.iter().all(|key| properties.get(key).is_some_and(|value| !value.is_empty())), "{properties:?}");
        assert_eq!(properties["category"], "Data Processing");
        let is_letter = |c: char| c.is_ascii_alphanumeric() || " _.-".contains(c);
        assert!(properties["name"].len() <= 63 && properties["name"].chars().all(is_letter));
        let header = properties["includes"];
        assert!(files.contains_key(&format!("src/{header}")));
        let sketch = &files["examples/run/run.ino"];
        assert!(in_order(sketch, &[&format!("#include <{header}>"), "void setup()", "void loop()"]));
        // What the sources include lies where Arduino looks: in src/, or is of the C library.
        for (path, text) in files.iter().filter(|(path, _)| path.starts_with("src/") && path.ends_with(".c")) {
            let included = text.lines().filter_map(|line| line.strip_prefix("#include \"")?.split('"').next());
            included.for_each(|name| assert!(files.contains_key(&format!("src/{name}")), "{path}: {name}"));
        }
    }
}

/// PlatformIO's page on `platformio.ini`: an environment names its platform, and with a board, the board and its framework.
#[test]
fn platformio_projects_are_as_documented() {
    for (target, board) in [("generic", "native"), ("cortex-m4", "nucleo_f446re"), ("riscv32-soft", "hifive1-revb")] {
        let files = texts(Template::Platformio, target);
        let text = &files["platformio.ini"];
        let environment = text.split(&format!("\n[env:{board}]\n")).nth(1).unwrap();
        let options = properties(environment.split("\n[").next().unwrap());
        assert!(options.contains_key("platform"), "{text}");
        assert_eq!(options.contains_key("framework"), board != "native");
        assert_eq!(options.get("board"), (board != "native").then_some(&board));
        // Sources count from src/.
        let sources = text.lines().find_map(|line| line.strip_prefix("build_src_filter = +<*> ")).unwrap();
        for source in sources.split(' ') {
            let path = source.trim_start_matches("+<../").trim_end_matches('>');
            assert!(files.contains_key(path), "{source}");
        }
        assert!(files["src/main.c"].contains("int main("));
    }
}
