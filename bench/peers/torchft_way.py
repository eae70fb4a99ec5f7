"""torchft's DiLoCo as a way of ddp_worker.py: every worker is a replica group of one process, worker 0 has the lighthouse."""
import os
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torchft.coordination import LighthouseServer
from torchft.local_sgd import DiLoCo
from torchft.manager import Manager
from torchft.process_group import ProcessGroupGloo

RANK, WORLD = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
PATIENCE = timedelta(seconds=60)


class TorchFt:
    def __init__(self, task, pictures, make_model, torch_optimizer):
        self.model, self.pictures = make_model(task["model"]), pictures
        self.optimizer = torch_optimizer(self.model, task)
        outer = torch.optim.SGD(self.model.parameters(), lr=0.7, momentum=0.9, nesterov=True)
        first = os.environ["MASTER_ADDR"]
        own = first if first.startswith("127.") else first[:-1] + str(RANK)  # the hosts of tests/hosts
        if RANK == 0:
            self.lighthouse = LighthouseServer(bind=f"{first}:{task['other_port']}", min_replicas=WORLD)
        dist.barrier()
        self.store = dist.TCPStore(own, 0, is_master=True, wait_for_workers=False)
        state = lambda: {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()}
        self.manager = Manager(pg=ProcessGroupGloo(timeout=PATIENCE), min_replica_size=WORLD, use_async_quorum=False,
                               load_state_dict=self.load, state_dict=state, replica_id=f"worker{RANK}", store_addr=own,
                               store_port=self.store.port, rank=0, world_size=1, hostname=own,
                               lighthouse_addr=f"http://{first}:{task['other_port']}", timeout=PATIENCE, quorum_timeout=PATIENCE,
                               connect_timeout=PATIENCE)
        self.diloco = DiLoCo(self.manager, [self.model], self.optimizer, outer, sync_every=task["round"])
        self.diloco.__enter__()

    def load(self, state):
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])

    def step(self, k):
        images, labels = self.pictures.at(k)
        self.optimizer.zero_grad()
        loss = F.cross_entropy(self.model(images), labels)
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def accuracy(self):
        """Of the workers' models, which are the same right after an exchange."""
        counts = self.pictures.right(self.model)
        dist.all_reduce(counts)
        return 100 * counts[0].item() / counts[1].item()

    def barrier(self):
        dist.barrier()

    def end(self):
        self.manager.shutdown(wait=False)
        dist.barrier()
