"""A network of models/ as an ONNX model, exported from PyTorch: onnx_peer.py NET MODE BATCH ENGINE THREADS. ENGINE is
onnxruntime or openvino. Only MODE infer is supported. Another process exports the model, so that the memory of PyTorch
is not counted. The results must agree with PyTorch's."""

import os
import subprocess
import sys

import numpy as np

from steps import answer


def session_of_onnxruntime(path, threads):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads

    def prepare():
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        name = session.get_inputs()[0].name
        return lambda x: session.run(None, {name: x})[0]

    return prepare, onnxruntime.__version__


def session_of_openvino(path, threads):
    import openvino

    core = openvino.Core()

    def prepare():
        settings = {"INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"}
        request = core.compile_model(path, "CPU", settings).create_infer_request()
        return lambda x: request.infer([x])[0]

    return prepare, openvino.__version__.split("-", maxsplit=1)[0]


def main(name, mode, batch, engine, threads):
    if mode != "infer":
        return
    path = os.path.join(os.environ["PEER_FOLDER"], f"{name}.onnx")
    export = os.path.join(os.path.dirname(os.path.abspath(__file__)), "export_onnx.py")
    subprocess.run([sys.executable, "-B", export, name, str(batch), path], check=True, stdout=subprocess.DEVNULL)
    x, expected = np.load(f"{path}.x.npy"), np.load(f"{path}.y.npy")
    open_session, version = (session_of_onnxruntime if engine == "onnxruntime" else session_of_openvino)(path, threads)

    def prepare():
        run = open_session()
        difference, most = float(np.abs(run(x) - expected).max()), float(np.abs(expected).max())
        if difference > 1e-3 * most:
            sys.exit(f"{engine} differs from PyTorch by {difference}, where the greatest result is {most}")
        return lambda: run(x)

    answer(prepare, version=version)


main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4], int(sys.argv[5]))
