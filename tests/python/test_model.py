"""Models in the process, against numpy and onnxruntime."""

import gc
import resource
import threading

import models
import numpy
import onnxruntime
import pytest

import mlc


@pytest.fixture(scope="module")
def network():
    return mlc.compile(models.convolutions()).load()


def image(seed=0):
    return numpy.random.default_rng(seed).standard_normal((1, 3, 16, 16)).astype(numpy.float32)


def reference(model, **inputs):
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, inputs)


def test_models_compute_what_onnxruntime_does(network):
    for seed in range(5):
        scores = network(image(seed))
        assert scores.dtype == numpy.float32 and scores.shape == (1, 10)
        numpy.testing.assert_allclose(scores, reference(models.convolutions(), image=image(seed))[0], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    "options",
    [
        {"target": "generic"},
        {"workspace_pools": "external"},
        {"interface_api": "packed"},
        {"executor": "graph"},
        {"weights_as": "incbin"},
        {"weights_as": "binary"},
    ],
    ids=lambda options: "-".join(options.values()),
)
def test_every_form_of_archive_loads(options):
    model = mlc.compile(models.convolutions(), **options).load()
    for seed in range(3):
        numpy.testing.assert_allclose(
            model(image(seed)), reference(models.convolutions(), image=image(seed))[0], rtol=1e-4, atol=1e-6
        )


def test_inputs_go_by_order_or_name_and_outputs_come_in_order():
    model = mlc.compile(models.sums()).load()
    x, count = numpy.arange(6, dtype=numpy.float32).reshape(2, 3), numpy.int32(3)
    for outputs in (model(x, count), model(x, count=count), model(count=count, x=x)):
        assert [port.name for port in model.outputs] == ["sum", "product"]
        numpy.testing.assert_array_equal(outputs[0], x + 3)
        numpy.testing.assert_array_equal(outputs[1], x * 3)
    for wrong in ((), (x,), (x, count, x)):
        with pytest.raises(TypeError, match="missing|the model's inputs are"):
            model(*wrong)
    with pytest.raises(TypeError, match="'z'"):
        model(x, count, z=x)


def test_arrays_are_read_where_they_are(network):
    x = image()
    x.flags.writeable = False
    assert network._arrays([x], {})[0] is x
    for other in (x.astype(numpy.float64), numpy.asfortranarray(x), x.tolist(), misaligned(x), x.astype(">f4")):
        assert network._arrays([other], {})[0] is not other
        numpy.testing.assert_allclose(network(other), network(x), rtol=1e-6)


def misaligned(x):
    room = numpy.empty(x.nbytes + 32, numpy.uint8)
    start = -room.ctypes.data % 16 + 4
    array = room[start : start + x.nbytes].view(x.dtype).reshape(x.shape)
    array[...] = x
    return array


def test_arrays_that_do_not_fit_are_refused(network):
    with pytest.raises(ValueError, match=r"'image' has the shape \(1, 3, 16, 16\), not \(3, 16, 16\)"):
        network(image()[0])
    with pytest.raises(TypeError, match="complex128"):
        network(image().astype(complex))


def test_results_are_the_callers(network):
    first = network(image(1))
    kept = first.copy()
    network(image(2))
    numpy.testing.assert_array_equal(first, kept)


def test_states_are_kept_and_reset():
    archive = mlc.compile(models.counter(), state={"before": "total"})
    model, other = archive.load(), archive.load()
    x = numpy.float32([1, 2, 3])
    for turn in range(1, 5):
        numpy.testing.assert_array_equal(model(x), -turn * x)
    # Each has states of its own.
    numpy.testing.assert_array_equal(other(x), -x)
    model.reset()
    numpy.testing.assert_array_equal(model(x), -x)


def test_thousands_of_runs_take_no_memory(network):
    x = image()
    for _ in range(200):
        network(x)
    gc.collect()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(20_000):
        network(x)
    # 20,000 leaked outputs alone would take 800 kB.
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 400


def test_threads_take_turns(network):
    expected = [network(image(seed)) for seed in range(4)]
    wrong = []

    def work(seed):
        for _ in range(200):
            if not numpy.array_equal(network(image(seed)), expected[seed]):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=[seed]) for seed in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert not wrong


def test_code_for_other_machines_is_refused():
    with pytest.raises(mlc.Error, match="isn't this machine"):
        mlc.compile(models.sums(), target="cortex-m4").load()
    with pytest.raises(mlc.Error, match="can't start the C compiler 'no-such-compiler'"):
        mlc.compile(models.sums()).load(compiler="no-such-compiler")


def test_models_are_verified():
    model = models.sums()
    found = mlc.verify(model)
    assert found and [output.name for output in found.outputs] == ["sum", "product"]
    x, count = numpy.ones((2, 3), numpy.float32), numpy.int32(2)
    right = {"sum": x + 2, "product": x * 2}
    assert mlc.verify(model, [x, count], right).passed
    wrong = mlc.verify(model, {"x": x, "count": count}, {"sum": x, "product": x * 2})
    assert not wrong and [output.passed for output in wrong.outputs] == [False, True]
    assert wrong.outputs[0].mismatches == 6 and wrong.outputs[0].max_absolute == 2


def test_kernels_are_verified():
    found = mlc.verify(models.convolutions(), per_layer=True)
    assert found.passed and len(found.kernels) >= 3 and [output.name for output in found.outputs] == ["scores"]
