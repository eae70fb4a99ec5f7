"""Prints as JSON what TensorBoard sees in a directory: for each tag of scalars its [step, value] pairs, and the texts."""
import json
import math
import sys

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

seen = EventAccumulator(sys.argv[1], size_guidance={"scalars": 0, "tensors": 0})
seen.Reload()
tags = seen.Tags()
print(json.dumps({
    "scalars": {tag: [[e.step, e.value if math.isfinite(e.value) else None] for e in seen.Scalars(tag)] for tag in tags["scalars"]},
    "texts": {tag: [e.tensor_proto.string_val[0].decode() for e in seen.Tensors(tag)] for tag in tags["tensors"]},
}))
