"""Runs DIR/MODEL.onnx in onnxruntime on DIR/MODEL-x.npy (NCHW) and writes DIR/MODEL-y.npy. onnx_graph.py DIR MODEL..."""
import json
import sys

import numpy
import onnxruntime

options = onnxruntime.SessionOptions()
options.intra_op_num_threads = 2
for name in sys.argv[2:]:
    path = f"{sys.argv[1]}/{name}"
    session = onnxruntime.InferenceSession(path + ".onnx", options, providers=["CPUExecutionProvider"])
    (given,), (result,) = session.get_inputs(), session.get_outputs()
    assert (given.name, given.shape[0]) == ("images", "batch"), given
    assert (result.name, result.shape[0]) == ("logits", "batch"), result
    said = session.get_modelmeta().custom_metadata_map
    assert said["model"] == name and len(json.loads(said["classes"])) == result.shape[1], said
    x = numpy.load(path + "-x.npy")
    numpy.save(path + "-y.npy", session.run(["logits"], {"images": x})[0])
