"""What runs where heavy packages are not installed, and what is said of the rest."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import lookhops.cli

#: Refuses the packages, trains and predicts in this process, then asks for what needs one of them.
SCRIPT = """
import sys

for package in ("rdkit plotly matplotlib ray fastapi uvicorn prometheus_client optuna onnx "
                "onnxruntime onnxscript").split():
    sys.modules[package] = None  # as if it were not installed

if __name__ == "__main__":
    from lookhops.cli import main

    for words in (
        ["train", "hops-1", "--task-size", "30", "--epochs", "1", "--hidden", "4",
         "--seeds", "1", "-o", "model"],
        ["predict", "model", "hops-1", "--task-size", "30", "-o", "answers.csv"],
        ["predict", "model", "-"],
    ):
        sys.argv = ["lookhops", *words]
        try:
            main()
        except SystemExit as stop:
            print("ended with", stop.code or 0)
    print("torch's compiler was imported:", "torch._dynamo" in sys.modules)
"""


def test_training_and_predicting_need_none_of_them(tmp_path):
    source = str(Path(lookhops.cli.__file__).parents[2])
    environment = {**os.environ, "PYTHONPATH": source, "OMP_NUM_THREADS": "1"}
    (tmp_path / "script.py").write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, "script.py"],
        cwd=tmp_path,
        env=environment,
        input="CCO ethanol",
        capture_output=True,
        text=True,
        check=True,
    )
    ends = [line for line in done.stdout.splitlines() if "ended with" in line]
    assert ends == ["ended with 0", "ended with 0", "ended with 2"], done.stderr
    assert (tmp_path / "answers.csv").is_file()
    assert "torch's compiler was imported: False" in done.stdout  # it takes seconds
    assert done.stderr.endswith("lookhops: Molecules are read with RDKit: pip install rdkit.\n")


@pytest.mark.parametrize(
    ("name", "extra"), [("ray", "ray"), ("onnx", "export"), ("optuna", "tune")]
)
def test_a_missing_package_is_a_sentence(monkeypatch, capsys, name, extra):
    def app(standalone_mode):
        raise ModuleNotFoundError(f"No module named {name!r}", name=f"{name}.part")

    monkeypatch.setattr(lookhops.cli, "app", app)
    with pytest.raises(SystemExit) as stop:
        lookhops.cli.main()
    assert stop.value.code == 2
    assert f'pip install "lookhops[{extra}]"' in capsys.readouterr().err


def test_a_module_of_our_own_that_is_missing_is_a_bug(monkeypatch):
    def app(standalone_mode):
        raise ModuleNotFoundError("No module named 'lookhops.none'", name="lookhops.none")

    monkeypatch.setattr(lookhops.cli, "app", app)
    with pytest.raises(ModuleNotFoundError):
        lookhops.cli.main()
