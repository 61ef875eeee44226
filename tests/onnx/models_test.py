"""Real ONNX models against ONNX Runtime: models_test.py SOURCE BUILD [PART-OF-A-NAME]

Each model is compiled for each set of sizes and run with 1 and 7 rows, where the batch is free. An output agrees if the
largest difference is within the case's tolerance of the largest element. SLUICE_TEST_FULL downloads all models; some of
them require a newer ONNX Runtime than that of build/venv: SLUICE_PEERS_PYTHON names a Python that has one.
"""

import os
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]
from environment import enter


def run(command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr.strip().splitlines()[-1:] or [""]


def compare(expected, actual):
    """The largest difference, relative to the largest element; infinite if shapes or non-finite elements differ."""
    import numpy
    if expected.shape != actual.shape:
        return float("inf")
    if expected.size == 0:
        return 0.0
    a, b = expected.astype(numpy.float64), actual.astype(numpy.float64)
    same = (a == b) | (numpy.isnan(a) & numpy.isnan(b))
    if same.all():
        return 0.0
    if not (numpy.isfinite(a) | same).all() or not (numpy.isfinite(b) | same).all():
        return float("inf")
    finite = numpy.isfinite(a)
    return float(numpy.abs(a - b)[finite].max() / max(numpy.abs(a[finite]).max(), 1e-30))


def check(build, path, case, work):
    """Compiles and runs one case; returns a list of problems, and prints a line of figures."""
    import numpy
    import onnxruntime
    import real_models
    program = os.path.join(work, "program")
    start = time.time()
    code, error = run([f"{build}/bin/sluice", "compile", path, "-o", program, *real_models.import_flags(case)])
    seconds = time.time() - start
    name = f"{os.path.basename(path)} {case.dims or ''}"
    if code:
        return [f"{name}: compile: code {code}: {error[0]}"]
    onnxruntime.set_default_logger_severity(3)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    problems = []
    for rows in (1, 7) if case.free else (1,):
        feeds = real_models.feeds(session, case, rows)
        expected = session.run(None, feeds)
        command = [program, "predict"]
        for number, (key, value) in enumerate(feeds.items()):
            if isinstance(case.inputs[key], (int, float)):
                continue
            numpy.save(f"{work}/x{number}.npy", value)
            command += ["--input", f"{key}=@{work}/x{number}.npy"]
        outputs = [output.name for output in session.get_outputs()]
        for number, output in enumerate(outputs):
            command += ["--output", f"{output}=@{work}/y{number}.npy"]
        code, error = run(command)
        if code:
            problems.append(f"{name}, {rows} rows: predict: code {code}: {error[0]}")
            continue
        worst = max(compare(value, numpy.load(f"{work}/y{number}.npy")) for number, value in enumerate(expected))
        print(f"{name:60} rows {rows}  compile {seconds:5.1f} s  error {worst:.1e}", flush=True)
        if not worst <= case.tolerance:
            problems.append(f"{name}, {rows} rows: the largest error is {worst:.1e} of the largest element")
    return problems


def main(source, build, part=""):
    full = os.environ.get("SLUICE_TEST_FULL")
    python = os.environ.get("SLUICE_PEERS_PYTHON") if full else None
    if not python:
        enter(source)
    elif sys.executable != python:  # not their real paths: a virtual environment links to the system's Python
        os.execv(python, [python, "-B", *sys.argv])
    import real_models
    folder = real_models.folder_of(source)
    problems = []
    for path, case in real_models.cases(folder):
        if part in path:
            with tempfile.TemporaryDirectory() as work:
                problems += check(build, path, case, work)
    print("\n".join(problems))
    sys.exit(bool(problems))


if __name__ == "__main__":
    main(*sys.argv[1:])
