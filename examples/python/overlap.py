"""Sends gradients while backward() computes others: overlap(worker, model.parameters()), once. Needs PyTorch 2.1."""


def overlap(worker, parameters):
    for index, parameter in enumerate(parameters):
        parameter.register_post_accumulate_grad_hook(lambda _, index=index: worker.ready(index))
