"""Builds the model's C as the package's shared library: 'pip install .'."""

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext


class SharedLibrary(build_ext):
    """A library that is loaded by ctypes: it has no entry point for Python's import."""

    def get_export_symbols(self, ext):
        return ["mlc_prepare", "mlc_run", "mlc_reset"]


setup(
    packages=["tvmgen_@MODEL@"],
    ext_modules=[
        Extension(
            "tvmgen_@MODEL@._code",
            sources=[
                "library.c",
@PYTHON_SOURCES@            ],
            include_dirs=["model/codegen/host/include", "@RUNTIME@/include", "@RUNTIME@/crt_config"],
            extra_compile_args=[@PYTHON_FLAGS@],
            extra_objects=[@PYTHON_OBJECTS@],
            libraries=["m"],
        )
    ],
    cmdclass={"build_ext": SharedLibrary},
)
