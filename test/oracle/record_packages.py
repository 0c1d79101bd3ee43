"""A plugin of pytest for coremltools' own operator tests: where they would run a package on a Mac, package, inputs and
expected outputs are kept instead. RECORDED names the folder; of each parametrised test at most CASES cases run.
"""
import os
import pathlib
import pickle
import random
import shutil

import numpy as np

import coremltools.converters.mil.mil.ops.tests.testing_utils as operator_tests
from coremltools.models import MLModel

FOLDER = pathlib.Path(os.environ["RECORDED"])


def keep(mlmodel, input_key_values, expected_outputs, dtype="fp32", atol=1e-4, rtol=1e-5, **_):
    number = len(list(FOLDER.glob("*.mlpackage")))
    shutil.copytree(mlmodel.package_path, FOLDER / f"{number:05}.mlpackage")
    arrays = [{name: np.asarray(value) for name, value in (values or {}).items()}
              for values in (input_key_values, expected_outputs)]
    test = os.environ["PYTEST_CURRENT_TEST"].rsplit(" (", 1)[0].split("tests/")[-1]
    with open(FOLDER / f"{number:05}.pickle", "wb") as file:
        pickle.dump({"test": test, "inputs": arrays[0], "expected": arrays[1], "half": dtype == "fp16", "atol": atol,
                     "rtol": rtol}, file)


def convert(*arguments, **options):
    return unpatched(*arguments, **{**options, "skip_model_load": True})


unpatched = operator_tests.ct_convert
operator_tests.ct_convert = convert
operator_tests.compare_backend = keep
MLModel.make_state = lambda self: object()  # needs a Mac


def pytest_collection_modifyitems(items):
    functions = {}
    for item in items:
        functions.setdefault((str(item.fspath), item.originalname), []).append(item)
    choose = random.Random(0)
    cases = int(os.environ["CASES"])
    items[:] = [item for found in functions.values() for item in choose.sample(found, min(cases, len(found)))]
