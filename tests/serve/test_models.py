"""Models that are served: read anew in one step when their folder changes."""

import asyncio
import shutil

import pytest

from lookhops.core.errors import LookHopsError
from lookhops.core.files import changing
from lookhops.serve import models as served
from lookhops.serve.models import Models, ServedModel


def ignore(requests, graphs):
    pass


@pytest.fixture
def folder(molecule_model, tmp_path):
    return shutil.copytree(molecule_model, tmp_path / "mine")


def replace_by(folder, other):
    with changing(folder) as new:
        for path in other.iterdir():
            if path.is_file():
                shutil.copy(path, new / path.name)


def test_a_changed_folder_is_read_and_who_has_begun_stays(folder, task_model):
    model = ServedModel(folder, "cpu", ignore)
    before = model.predictor
    assert not model.reload()
    assert model.predictor is before
    replace_by(folder, task_model)
    assert model.reload()
    assert model.predictor.version != before.version
    assert model.about()["trained_on"] == "hops-1"
    assert before.config["data"]["name"] == "solubility"
    assert not model.reload()
    model.batcher.close()


def test_a_broken_folder_changes_nothing_until_it_is_mended(folder):
    model = ServedModel(folder, "cpu", ignore)
    before = model.predictor
    config = folder / "config.json"
    good = config.read_text()
    for bad in ("{", good.replace('"format"', '"farmat"', 1)):
        config.write_text(bad)
        assert not model.reload()
        assert model.predictor is before
        assert "config.json" in model.about()["trouble"]
    config.unlink()
    assert not model.reload()
    assert model.predictor is before
    config.write_text(good)
    assert not model.reload()  # the same weights
    assert model.about()["trouble"] is None
    again = model.predictor
    (folder / "model.safetensors").unlink()
    assert not model.reload()
    assert model.predictor is again
    assert "model.safetensors" in model.about()["trouble"]
    model.batcher.close()


def test_two_models_of_one_name_are_refused(molecule_model, folder, tmp_path):
    other = shutil.copytree(molecule_model, tmp_path / "deeper" / "mine")
    with pytest.raises(LookHopsError, match="'mine'"):
        Models([folder, other], "cpu", ignore)
    with pytest.raises(LookHopsError, match="nothing"):
        Models([tmp_path / "nothing"], "cpu", ignore)


def test_an_error_of_one_model_does_not_end_the_looking(folder, monkeypatch):
    models = Models([folder], "cpu", ignore)
    model, looked = models.named(None), []

    def reload():
        looked.append(len(looked))
        raise RuntimeError("out of memory")

    async def look():
        task = asyncio.create_task(models.keep_fresh())
        while len(looked) < 3:
            await asyncio.sleep(0.01)
            assert not task.done()
        task.cancel()

    monkeypatch.setattr(served, "LOOK_EVERY", 0)
    monkeypatch.setattr(model, "reload", reload)
    asyncio.run(asyncio.wait_for(look(), 30))
    models.close()
