"""``torchrun -m lookhops train``: two processes, one of which is lost."""

import json
import os
import signal
import socket
import subprocess
import sys
import time

from lookhops.models import Predictor

TRAIN = "hops-1 --task-size 60 --hidden 8 --layers 2 --pool none --seeds 2 --device cpu"


def start(folder, *more, rank, port):
    """One worker, as torchrun starts it."""
    told = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": 2, "MASTER_PORT": port}
    told |= {"MASTER_ADDR": "127.0.0.1", "OMP_NUM_THREADS": 1}
    command = [sys.executable, "-m", "lookhops", "train", *TRAIN.split(), "-o", folder, *more]
    return subprocess.Popen(
        [str(part) for part in command],
        env=os.environ | {name: str(value) for name, value in told.items()},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def test_a_lost_worker_is_a_sentence_and_the_training_goes_on(tmp_path):
    folder, port = tmp_path / "model", free_port()
    first, second = (
        start(folder, "--epochs", 3000, "--patience", 3000, "--save-every", 0, rank=r, port=port)
        for r in (0, 1)
    )
    state = folder / "resume" / "11.safetensors"
    for _ in range(1200):
        if state.exists() or first.poll() is not None:
            break
        time.sleep(0.05)
    second.send_signal(signal.SIGKILL)
    second.communicate()
    _, said = first.communicate(timeout=60)
    assert first.returncode == 2, said
    assert said.splitlines()[-1].startswith("lookhops: Another worker of this training was lost")
    assert "Traceback" not in said
    assert state.exists()
    # It goes on in one process, or in two; here to an end that is near.
    settings = folder / "resume" / "settings.json"
    begun = json.loads(settings.read_text())
    begun["protocol"] |= {"max_epochs": 2, "patience": 2}
    settings.write_text(json.dumps(begun))
    port = free_port()
    both = [
        start(folder, "--epochs", 2, "--patience", 2, "--resume", "--json", rank=rank, port=port)
        for rank in (0, 1)
    ]
    (told, said), (nothing, silence) = (one.communicate(timeout=120) for one in both)
    assert [one.returncode for one in both] == [0, 0], said + silence
    assert json.loads(told)["epochs"].keys() == {"11", "22"}
    assert (nothing, silence) == ("", "")
    assert Predictor(folder, "cpu").checkpoint.seeds == (11, 22)
