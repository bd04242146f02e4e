"""``torchrun -m lookhops train``: two processes, one of which is lost."""

import json
import os
import signal
import subprocess
import sys
import time

from torch.distributed import TCPStore

from lookhops.models import Predictor

TRAIN = "hops-1 --task-size 60 --hidden 8 --layers 2 --pool none --seeds 2 --device cpu"


def start_both(folder, *more):
    """Two workers, as torchrun starts them: they meet at a store of the process that does."""
    store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    return store, [start(folder, *more, rank=rank, port=store.port) for rank in (0, 1)]


def start(folder, *more, rank, port):
    told = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": 2, "MASTER_PORT": port}
    told |= {"MASTER_ADDR": "127.0.0.1", "TORCHELASTIC_USE_AGENT_STORE": True}
    told |= {"TORCHELASTIC_RESTART_COUNT": 0, "OMP_NUM_THREADS": 1}
    command = [sys.executable, "-m", "lookhops", "train", *TRAIN.split(), "-o", folder, *more]
    return subprocess.Popen(
        [str(part) for part in command],
        env=os.environ | {name: str(value) for name, value in told.items()},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_lost_worker_is_a_sentence_and_the_training_goes_on(tmp_path):
    folder, endless = tmp_path / "model", ("--epochs", 10**6, "--patience", 10**6)
    _store, (first, second) = start_both(folder, *endless, "--save-every", 0)
    state = folder / "resume" / "11.safetensors"
    while not state.exists() and first.poll() is None:
        time.sleep(0.02)
    second.send_signal(signal.SIGKILL)
    second.communicate()
    _, said = first.communicate(timeout=1200)
    assert first.returncode == 2, said
    assert said.splitlines()[-1].startswith("lookhops: Another worker of this training was lost")
    assert "Traceback" not in said
    assert state.exists()
    # It goes on in one process, or in two; here to an end that is near.
    settings = folder / "resume" / "settings.json"
    begun = json.loads(settings.read_text())
    begun["protocol"] |= {"max_epochs": 2, "patience": 2}
    settings.write_text(json.dumps(begun))
    _store, both = start_both(folder, "--epochs", 2, "--patience", 2, "--resume", "--json")
    (told, said), (nothing, silence) = (one.communicate(timeout=1200) for one in both)
    assert [one.returncode for one in both] == [0, 0], said + silence
    assert json.loads(told)["epochs"].keys() == {"11", "22"}
    assert (nothing, silence) == ("", "")
    assert Predictor(folder, "cpu").seeds == (11, 22)
