"""What an archive says of a model, and how options and mistakes reach the compiler."""

import html
import json
import re
import subprocess
import sys
import warnings

import models
import onnx
import pytest

import mlc


@pytest.fixture(scope="module")
def archive():
    return mlc.compile(models.convolutions(), model_name="net", target="generic")


def test_archives_say_what_the_command_says(archive):
    assert archive.model_name == "net" and archive.target == "generic"
    assert [(port.name, port.dtype, port.shape) for port in archive.inputs] == [("image", "f32", (1, 3, 16, 16))]
    assert [(port.name, port.shape) for port in archive.outputs] == [("scores", (1, 10))]
    assert "tvmgen_net.h" in archive.sources and "tvmgen_net_run" in archive.sources["tvmgen_net.h"]
    assert archive.sizes.inputs_and_outputs == 4 * (3 * 16 * 16 + 10)
    assert archive.sizes.constants >= 4 * (4 * 27 + 8 * 36 + 8 * 36 * 10)
    assert archive.sizes.ram == archive.sizes.workspace + archive.sizes.inputs_and_outputs
    assert archive.plan.liveness_bound_bytes <= archive.plan.arena_bytes <= archive.sizes.workspace
    assert all(buffer.offset + buffer.bytes <= archive.plan.arena_bytes for buffer in archive.plan.buffers)
    assert sum(kernel.macs for kernel in archive.kernels) >= 4 * 27 * 256
    assert {"conv1", "relu1"} <= {origin for kernel in archive.kernels for origin in kernel.origins}
    assert archive.metadata["version"] == 7
    assert "net" in repr(archive)


def test_archives_are_those_of_the_command(archive, tmp_path):
    path = tmp_path / "net.onnx"
    onnx.save(models.convolutions(), path)
    command = [sys.executable, "-m", "mlc", "compile", str(path), "--model-name", "net", "-o", str(tmp_path / "net.tar")]
    subprocess.run(command, check=True)
    assert mlc.compile(path, model_name="net", target="generic").data == (tmp_path / "net.tar").read_bytes()
    archive.save(tmp_path / "own.tar")
    assert mlc.Archive.open(tmp_path / "own.tar").files == archive.files


def test_options_are_those_of_the_command():
    model = models.convolutions()
    small = mlc.compile(model, target="cortex-m4", optimize="size", ram="64K")
    assert small.target == "cortex-m4"
    with pytest.raises(mlc.Error, match="no_such_option|no-such-option"):
        mlc.compile(model, no_such_option=3)
    with pytest.raises(mlc.Error, match="there is no target 'z80'"):
        mlc.compile(model, target="z80")


def test_open_dimensions_are_given_by_name():
    model = models.convolutions()
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "batch"
    archive = mlc.compile(model, dim={"batch": 1})
    assert archive.inputs[0].shape == (1, 3, 16, 16)
    archive = mlc.compile(model, input_shape={"image": (1, 3, 16, 16)})
    assert archive.inputs[0].shape == (1, 3, 16, 16)


def test_errors_have_code_place_and_help(tmp_path):
    path = tmp_path / "odd.onnx"
    onnx.save(models.unsupported(), path)
    with pytest.raises(mlc.Error) as caught:
        mlc.compile(path)
    error = caught.value
    # Both operators are told at once, each with its place.
    assert {found.place["operator"].split("::")[-1] for found in error.diagnostics} == {"Nonsense", "Gibberish"}
    assert error.code.startswith("MLC") and error.place["file"] == str(path) and error.help
    assert all(str(found) in str(error) for found in error.diagnostics)
    with pytest.raises(mlc.Error) as caught:
        mlc.compile(tmp_path / "missing.onnx")
    assert "missing.onnx" in str(caught.value)
    with pytest.raises(TypeError, match="an ONNX model"):
        mlc.compile(3)


def test_inspect_is_the_command(tmp_path, archive):
    path = tmp_path / "net.onnx"
    onnx.save(models.convolutions(), path)
    printed = subprocess.run([sys.executable, "-m", "mlc", "inspect", "--json", str(path)], check=True, capture_output=True)
    assert mlc.inspect(path) == json.loads(printed.stdout)
    assert mlc.inspect(archive)["models"][0]["model_name"] == "net"


def test_the_command_line_is_the_module():
    def run(*arguments):
        return subprocess.run([sys.executable, "-m", "mlc", *arguments], capture_output=True, text=True)

    version = run("--version").stdout
    assert version.startswith("mlc ") and "\ncommit: " in version and "\nformats: ark, " in version
    assert run("compile").returncode == 2
    missing = run("compile", "missing.onnx")
    assert missing.returncode == 1 and "missing.onnx" in missing.stderr


def test_nothing_is_printed(capfd, archive):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mlc.compile(models.convolutions())
    mlc.inspect(archive)
    assert capfd.readouterr() == ("", "")


def test_reports_are_shown_inline(tmp_path):
    report = mlc.report(models.convolutions(), target="cortex-m4")
    assert report.html.lstrip().lower().startswith("<!doctype html>") and "conv1" in report.html
    shown = report._repr_html_()
    inner = re.fullmatch('<iframe srcdoc="([^"]*)" [^>]*></iframe>', shown)
    assert html.unescape(inner.group(1)) == report.html
    report.save(tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == report.html
    both = mlc.report(models.convolutions(), models.sums(), target="generic").html
    assert "conv1" in both and "product" in both


def test_projects_are_made(tmp_path, archive):
    archive.project(tmp_path / "demo", "cmake")
    assert (tmp_path / "demo" / "CMakeLists.txt").is_file()
    with pytest.raises(mlc.Error, match="isn't empty"):
        archive.project(tmp_path / "demo", "cmake")


def test_a_model_is_a_package_of_its_own(tmp_path):
    made = mlc.compile(models.counter(), state={"before": "total"}, model_name="net", workspace_pools="external")
    made.project(tmp_path / "package", "python")
    install = [sys.executable, "-m", "pip", "install", "-q", "--no-build-isolation", "--no-deps"]
    subprocess.run([*install, "--target", str(tmp_path / "installed"), str(tmp_path / "package")], check=True)
    program = (
        "import numpy, tvmgen_net as net\n"
        "x = numpy.float32([1, 2, 3])\n"
        "results = [net.run(x), net.run(x=x)]\n"
        "net.run.reset()\n"
        "print([result.tolist() for result in [*results, net.run(x)]], 'mlc' in __import__('sys').modules)\n"
    )
    found = subprocess.run([sys.executable, "-c", program], cwd=tmp_path / "installed", check=True, capture_output=True)
    assert found.stdout.decode().strip() == "[[-1.0, -2.0, -3.0], [-2.0, -4.0, -6.0], [-1.0, -2.0, -3.0]] False"
    with pytest.raises(mlc.Error, match="the template 'python'"):
        mlc.compile(models.sums(), target="cortex-m4").project(tmp_path / "other", "python")
